package faults

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
)

// replicated is a service that reads from a standby, which the test can make lag as far as it
// needs.
type replicated struct {
	*e2etest.Harness

	pair *pair
	// link is the proxy in front of the standby.
	link *proxy
	// primary and standby are the test's own connections.
	primary, standby *postgres.DB
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	r := &replicated{pair: newPair(t)}
	address, err := url.Parse(r.pair.standby)
	if err != nil {
		t.Fatal(err)
	}
	r.link = newProxy(t, address.Host)
	address.Host = r.link.listener.Addr().String()
	r.Harness = e2etest.NewOn(t, r.pair.ownPostgres.url())
	r.Env["DRAWBRIDGE_DATABASE_READ_URL"] = address.String()
	r.Env["DRAWBRIDGE_DATABASE_READ_LAG"] = "1h"
	r.primary, r.standby = opened(t, r.pair.server.URL()), opened(t, r.pair.standby)
	return r
}

// opened connects to a server that may still be starting.
func opened(t *testing.T, address string) (db *postgres.DB) {
	t.Helper()
	waittest.Within(t, time.Minute, "the server answers", func() (answers bool) {
		var err error
		db, err = postgres.Open(t.Context(), address)
		return err == nil
	})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// serve starts the service and waits until it uses the standby.
func (r *replicated) serve() *e2etest.Server {
	r.T.Helper()
	s := r.Serve()
	r.uses(s, 1)
	return s
}

// uses waits until the metrics say that the standby is used (1) or not (0).
func (r *replicated) uses(s *e2etest.Server, used float64) {
	r.T.Helper()
	waittest.Within(r.T, 2*time.Minute, "the standby's use changes", func() bool {
		return gauge(r.T, s, "drawbridge_replica_used") == used
	})
}

// freeze stops the standby at its current state, until thaw.
func (r *replicated) freeze() {
	r.T.Helper()
	r.tell(`SELECT pg_wal_replay_pause()`)
	waittest.Within(r.T, time.Minute, "the standby stands still", func() bool {
		return pgtest.Count(r.T, r.standby,
			`SELECT CASE pg_get_wal_replay_pause_state() WHEN 'paused' THEN 1 ELSE 0 END`) == 1
	})
}

func (r *replicated) thaw() {
	r.T.Helper()
	r.tell(`SELECT pg_wal_replay_resume()`)
}

func (r *replicated) tell(statement string) {
	r.T.Helper()
	if _, err := r.standby.ExecContext(r.T.Context(), statement); err != nil {
		r.T.Fatal(err)
	}
}

// published waits until every event is in the feed, and the feed is on the standby.
func (r *replicated) published() {
	r.T.Helper()
	const head = `SELECT position FROM feed_head`
	waittest.Within(r.T, time.Minute, "the events are in both feeds", func() bool {
		return pgtest.Count(r.T, r.primary, `SELECT count(*) FROM outbox`) == 0 &&
			pgtest.Count(r.T, r.primary, head) == pgtest.Count(r.T, r.standby, head)
	})
}

// TestFaultReplicaBehind pauses the replay of a standby: pages and the feed show the state until
// then, except to a user who changed something and to requests that wait for the next event; a
// cursor beyond its end works; and when it is unreachable, everything is read from the primary.
func TestFaultReplicaBehind(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
	data := r.DemoData()
	s := r.serve()
	feed := func(query string) (events []any, cursor string) {
		t.Helper()
		page := e2etest.Send(t, data, http.MethodGet, s.URL+"/api/v2/events?"+query, nil)
		return page["events"].([]any), page["next_cursor"].(string)
	}
	changer, onlooker := visit(t, s.URL), visit(t, s.URL)
	onlooker.forgetsChanges()
	r.published()
	_, start := feed("after=latest")
	r.freeze()

	e2etest.WantDraw(t, s.URL, data, "first_regular")
	waited, next := feed("wait=30&after=" + start)
	if len(waited) == 0 {
		t.Error("anyone who waits for the next event is not told of it")
	}
	if events, cursor := feed("after=" + start); len(events) != 0 || cursor != start {
		t.Errorf("of a standby that stands still the feed has %d events more, up to %s",
			len(events), cursor)
	}
	if events, cursor := feed("after=" + next); len(events) != 0 || cursor < next {
		t.Errorf("after %s, which the standby does not know, the feed has %d events, up to %s",
			next, len(events), cursor)
	}

	changer.fillsIn(paths.PartnerNew, url.Values{"name": {"Latecomers"}})
	if page := changer.read(paths.Partners); !strings.Contains(page, "Latecomers") {
		t.Errorf("anyone who added a partner does not see it: %s", page)
	}
	if page := onlooker.read(paths.Partners); strings.Contains(page, "Latecomers") {
		t.Error("the list of partners is not read from the standby")
	}
	if status, text := probe(s); status != http.StatusOK ||
		!strings.Contains(text, `"replica":"used; the replica is at most `) {
		t.Errorf("the probe says %d: %s", status, text)
	}
	waittest.Within(t, time.Minute, "the lag is in the metrics", func() bool {
		return gauge(t, s, "drawbridge_replica_lag_seconds") > 0
	})

	r.thaw()
	onlooker.says(paths.Partners, "Latecomers")
	waittest.Within(t, time.Minute, "the feed has the event", func() bool {
		events, _ := feed("after=" + start)
		return len(events) == len(waited)
	})
	if found := e2etest.Doctor(t, r.Harness, 0)["replica"]; found.Finding != e2etest.FindingOK {
		t.Errorf("of a standby that follows the doctor says %+v", found)
	}

	nowhere := newProxy(t, "127.0.0.1:1")
	r.link.point(nowhere.listener.Addr().String())
	r.link.cut()
	onlooker.get(paths.Partners)
	feed("after=" + start)
	r.uses(s, 0)
	if status, text := probe(s); status != http.StatusOK || !strings.Contains(text, "not used") {
		t.Errorf("without the standby the probe says %d: %s", status, text)
	}
	found := e2etest.Doctor(t, r.Harness, 0)["replica"]
	if found.Finding != e2etest.FindingWarning || !strings.Contains(found.Detail, "does not answer") {
		t.Errorf("without the standby the doctor says %+v", found)
	}
}

// forgetsChanges drops the cookie that makes users who changed something read from the primary: the
// sign-in sets it, too, for as long as the standby may be behind.
func (v *visitor) forgetsChanges() {
	v.t.Helper()
	base, err := url.Parse(v.base)
	if err != nil {
		v.t.Fatal(err)
	}
	v.client.Jar.SetCookies(base, []*http.Cookie{{
		Name: "drawbridge-changed", Path: "/", MaxAge: -1,
	}})
}

// fillsIn submits the form of a page.
func (v *visitor) fillsIn(path string, fields url.Values) {
	v.t.Helper()
	page, err := goquery.NewDocumentFromReader(strings.NewReader(string(v.get(path))))
	if err != nil {
		v.t.Fatal(err)
	}
	form := page.Find(`main form[method="post"]`)
	fields.Set("token", form.Find(`input[name="token"]`).AttrOr("value", ""))
	answer, err := v.client.PostForm(v.base+form.AttrOr("action", path), fields)
	if err != nil {
		v.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Request.Method != http.MethodGet {
		v.t.Fatalf("the form of %s led to %s with %d", path, answer.Request.URL, answer.StatusCode)
	}
}

// TestFaultFeedOfALaggingReplica follows the feed under load while the standby from which it is
// read pauses and resumes repeatedly: each event comes once.
func TestFaultFeedOfALaggingReplica(t *testing.T) {
	t.Parallel()
	events, stops := scaled(200, 5_000), scaled(3, 20)
	r := newReplicated(t)
	asked, waited := &ledgerOf{bodies: map[string]string{}}, &ledgerOf{bodies: map[string]string{}}
	l := newLoad(r.Harness, newRecordingReceiver(t, 1))
	l.use(r.serve())
	r.published()
	before := pgtest.Count(t, r.primary, `SELECT count(*) FROM feed WHERE kind = 'task.created'`)
	start, err := l.read(t.Context(), "after=latest")
	if err != nil {
		t.Fatal(err)
	}

	following, stop := context.WithCancel(t.Context())
	defer stop()
	var consuming, loading sync.WaitGroup
	for query, known := range map[string]*ledgerOf{
		"limit=7&after=": asked, "limit=7&wait=1&after=": waited,
	} {
		consuming.Go(func() { l.follow(following, known, query, start.Result.Data.NextCursor) })
	}
	loading.Go(func() { l.run(events) })
	for i := range stops {
		waittest.Within(t, 5*time.Minute, "the load goes on", func() bool {
			return l.accepted.Load() >= i*events/stops
		})
		r.freeze()
		waittest.Within(t, 5*time.Minute, "the standby falls behind", func() bool {
			return l.accepted.Load() >= (2*i+1)*events/stops/2
		})
		r.thaw()
	}
	loading.Wait()
	r.published()
	all := pgtest.Count(t, r.primary,
		`SELECT count(*) FROM feed WHERE kind = 'task.created'`) - before
	waittest.Within(t, time.Minute, "both who follow the feed have them", func() bool {
		return asked.size() >= all && waited.size() >= all
	})
	stop()
	consuming.Wait()
	if int64(all) < events || asked.size() != all || waited.size() != all ||
		asked.doubled+waited.doubled > 0 {
		t.Errorf("of %d events %d came to who asks and %d to who waits, %d of them twice",
			all, asked.size(), waited.size(), asked.doubled+waited.doubled)
	}
}
