package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// ledgerOf is what a consumer has stored: the body of each event.
type ledgerOf struct {
	mu     sync.Mutex
	bodies map[string]string
	// doubled counts events that came more than once.
	doubled int
}

// keep stores an event. A repeated event must have the same body.
func (l *ledgerOf) keep(t *testing.T, uid, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, again := l.bodies[uid]; again {
		l.doubled++
		if known != body {
			t.Errorf("event %s came as %s and as %s", uid, known, body)
		}
	}
	l.bodies[uid] = body
}

func (l *ledgerOf) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bodies)
}

// receive stores the events of webhooks.
func (l *ledgerOf) receive(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender died in the middle, and will send it again
		}
		l.keep(t, r.Header.Get("x-drawbridge-event-id"), string(body))
		w.WriteHeader(http.StatusNoContent)
	}
}

// fedPage is a page of the feed.
type fedPage struct {
	Result struct {
		Data struct {
			Events []struct {
				UID  string `json:"event_uid"`
				Body string `json:"body"`
			} `json:"events"`
			NextCursor string `json:"next_cursor"`
		} `json:"data"`
	} `json:"result"`
}

// read requests a page of the feed from one of the load's servers.
func (l *load) read(ctx context.Context, query string) (page fedPage, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		(*l.apis.Load())[0]+"/api/v2/events?event=task.created&"+query, http.NoBody)
	if err != nil {
		return page, err
	}
	request.Header.Set("x-service-client-id", l.client.ID)
	request.Header.Set("x-service-client-secret", l.client.Secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return page, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return page, fmt.Errorf("answered %s", response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&page)
	return page, err
}

// follow stores the events of the feed after a cursor, which is appended to the query, until
// ctx ends, whatever happens to the servers.
func (l *load) follow(ctx context.Context, known *ledgerOf, query, cursor string) {
	for ctx.Err() == nil {
		page, err := l.read(ctx, query+url.QueryEscape(cursor))
		if err != nil {
			<-time.After(20 * time.Millisecond)
			continue
		}
		for _, event := range page.Result.Data.Events {
			known.keep(l.t, event.UID, event.Body)
		}
		cursor = page.Result.Data.NextCursor
	}
}

// TestFeedAndWebhooksAgree lets one consumer follow the feed and one get webhooks while the
// server and the worker are killed: both end with the same bytes of the same events.
func TestFeedAndWebhooksAgree(t *testing.T) {
	t.Parallel()
	events, kills := scaled(300, 10_000), scaled(2, 8)
	delivered, fed := &ledgerOf{bodies: map[string]string{}}, &ledgerOf{bodies: map[string]string{}}
	partner := httptest.NewServer(delivered.receive(t))
	t.Cleanup(partner.Close)
	w := e2etest.New(t)
	l := newLoad(w, &recordingReceiver{url: partner.URL})
	api, worker := w.Serve("--roles", "api"), w.Serve("--roles", "worker")
	l.use(api)
	db := w.Open(t)
	waittest.Within(t, time.Minute, "the demo's events are in the feed", func() bool {
		return pgtest.Count(t, db, `SELECT count(*) FROM outbox`) == 0
	})
	start, err := l.read(t.Context(), "after=latest")
	if err != nil {
		t.Fatal(err)
	}
	before := pgtest.Count(t, db, `SELECT count(*) FROM feed WHERE kind = 'task.created'`)

	following, stop := context.WithCancel(t.Context())
	defer stop()
	var consuming, loading sync.WaitGroup
	consuming.Go(func() { l.follow(following, fed, "wait=5&after=", start.Result.Data.NextCursor) })
	loading.Go(func() { l.run(events) })
	for i := range kills {
		waittest.Within(t, 5*time.Minute, "the load goes on", func() bool {
			return l.accepted.Load() >= (i+1)*events/(kills+1)
		})
		if i%2 == 0 {
			api.Kill()
			api = w.Serve("--roles", "api")
			l.use(api)
		} else {
			worker.Kill()
			worker = w.Serve("--roles", "worker")
		}
	}
	loading.Wait()
	waitUntilSettled(t, db, 5*time.Minute)
	waittest.Within(t, time.Minute, "the events are in the feed", func() bool {
		return pgtest.Count(t, db, `SELECT count(*) FROM outbox`) == 0
	})
	all := pgtest.Count(t, db, `SELECT count(*) FROM feed WHERE kind = 'task.created'`) - before
	waittest.Within(t, time.Minute, "anyone who follows the feed has them", func() bool {
		return fed.size() >= all
	})
	stop()
	consuming.Wait()

	if int64(all) < events || len(delivered.bodies) != all || len(fed.bodies) != all ||
		fed.doubled > 0 {
		t.Errorf("of %d events %d came as webhooks and %d by the feed, %d of them twice",
			all, len(delivered.bodies), len(fed.bodies), fed.doubled)
	}
	for uid, body := range fed.bodies {
		if got := delivered.bodies[uid]; got != body {
			t.Errorf("event %s came as %q by webhook, and by the feed as %q", uid, got, body)
		}
	}
	t.Logf("%d kills, %d events, %d webhooks came twice", kills, all, delivered.doubled)
}
