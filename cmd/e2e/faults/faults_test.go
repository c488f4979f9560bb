package faults

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/processes"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/delivery"
)

// chaos runs the fault tests at full size (make chaos); without it they are small enough
// to run with all the others.
var chaos = flag.Bool("chaos", false, "run the fault tests at full size")

// load creates tasks, each of which records an event, through any API server that is up.
type load struct {
	t        *testing.T
	client   e2etest.DemoClient
	targets  []uuid.UUID
	apis     atomic.Pointer[[]string]
	next     atomic.Int64
	accepted atomic.Int64
	// errors counts requests without a confirmation, failed is when the last of them ended.
	errors atomic.Int64
	failed atomic.Pointer[time.Time]
	mu     sync.Mutex
	titles []string
	// confirmations are the times of the titles' confirmations.
	confirmations []time.Time
	// unanswered are the titles of requests without a response, and refused counts
	// responses other than a confirmation, both by server.
	unanswered map[string][]string
	refused    map[string]int
	// unreached counts requests to a server that did not listen any more.
	unreached map[string]int
}

const (
	// callers is how many make requests at the same time.
	callers = 8
	// repeatAfter is how long they wait before they repeat a failed request. Otherwise they would
	// keep both processors of a small machine busy during an outage.
	repeatAfter = 100 * time.Millisecond
)

// newLoad prepares the demo data, a rate limit that no test reaches, and a subscription
// to the events of the load.
func newLoad(w *e2etest.Harness, r *recordingReceiver) *load {
	w.T.Helper()
	data := w.DemoData()
	l := &load{
		t: w.T, client: data.Partners[0].Clients[0],
		unanswered: map[string][]string{}, refused: map[string]int{}, unreached: map[string]int{},
	}
	if got := w.Run("", "client", "rate", l.client.ID,
		"--rate", "50000", "--burst", "100000"); got.Status != 0 {
		w.T.Fatalf("raising the rate ended with %d: %s", got.Status, got.Stderr)
	}
	w.Subscribe(data, r.url, "--event", "task.created", "--auth", "none")
	for _, loan := range data.Loans {
		if slices.Contains(l.client.Merchants, loan.MerchantUID) || len(l.client.Merchants) == 0 {
			l.targets = append(l.targets, loan.UID)
		}
	}
	l.use()
	return l
}

// use sets the servers that get the requests.
func (l *load) use(servers ...*e2etest.Server) {
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL)
	}
	l.apis.Store(&urls)
}

// run makes requests until n tasks have been confirmed.
func (l *load) run(n int64) {
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			client := &http.Client{Timeout: 30 * time.Second}
			defer client.CloseIdleConnections()
			for l.accepted.Load() < n && l.t.Context().Err() == nil {
				if !l.one(client) {
					l.errors.Add(1)
					l.fails()
					<-time.After(repeatAfter)
				}
			}
		})
	}
	group.Wait()
}

// fails notes that a request has just failed.
func (l *load) fails() {
	now := time.Now()
	l.failed.Store(&now)
}

// one creates a task and reports whether that was confirmed.
func (l *load) one(client *http.Client) bool {
	urls := *l.apis.Load()
	if len(urls) == 0 {
		return false
	}
	i := int(l.next.Add(1))
	title, api := fmt.Sprintf("task %d", i), urls[i%len(urls)]
	request, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost,
		fmt.Sprintf("%s/api/v2/sandbox/application/%s/task", api, l.targets[i%len(l.targets)]),
		strings.NewReader(`{"title":"`+title+`"}`))
	if err != nil {
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("x-service-client-id", l.client.ID)
	request.Header.Set("x-service-client-secret", l.client.Secret)
	response, err := client.Do(request)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		l.unreached[api]++
		return false
	case err != nil:
		l.unanswered[api] = append(l.unanswered[api], title)
		return false
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusCreated {
		l.refused[api]++
		return false
	}
	l.titles = append(l.titles, title)
	l.confirmations = append(l.confirmations, time.Now())
	l.accepted.Add(1)
	return true
}

// confirmed are the titles of the confirmed tasks.
func (l *load) confirmed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.titles)
}

// troubles returns the requests that a server left unanswered, and how many it refused.
func (l *load) troubles(s *e2etest.Server) (unanswered []string, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.unanswered[s.URL]), l.refused[s.URL]
}

// reached waits until the sum of confirmed requests and received deliveries is point.
func (l *load) reached(r *recordingReceiver, point int64) {
	l.t.Helper()
	waittest.Within(l.t, 5*time.Minute, fmt.Sprintf("%d calls and arrivals", point), func() bool {
		return l.accepted.Load()+int64(r.deliveries()) >= point
	})
}

// pretendDowntime rescues the jobs of dead processes as another process would after it
// had watched for a minute, so that a test need not wait for that. No worker may be running.
func pretendDowntime(t *testing.T, db *postgres.DB) {
	t.Helper()
	heir := processes.Service{DB: db}
	process := heir.New([]string{"worker"}, "test")
	watch := processes.Watch{
		DB: db, Self: process.UID, Working: &heir.Working,
		Deliveries: delivery.Queue, DeliveryTime: time.Minute,
	}
	// Wait for the locks of a frozen process, which end after a while.
	_, err := db.ExecContext(t.Context(), `SELECT FROM river_job WHERE state = 'running' FOR UPDATE`)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := heir.Beat(t.Context(), process); err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{
		`DELETE FROM processes WHERE version = 'test'`, `DELETE FROM river_leader`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNothingIsLost kills the service at random points, and once Postgres, while events
// are recorded and delivered to an endpoint that fails at random, and then compares what
// was confirmed, recorded and received.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	events, kills, patience := int64(600), 3, 3*time.Minute
	if *chaos {
		events, kills, patience = 20_000, 20, 6*time.Minute
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 1))
	pg, r := newOwnPostgres(t), newRecordingReceiver(t, seed)
	w := e2etest.NewOn(t, pg.url())
	l := newLoad(w, r)
	began := time.Now()
	s := w.Serve()
	l.use(s)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })

	// A point is a number of confirmed requests and received deliveries together.
	points := make([]int64, kills+1)
	for i := range points {
		points[i] = chance.Int64N(events * 18 / 10)
	}
	slices.Sort(points)
	outage := chance.IntN(kills) // never last: the last kill ends what the outage left
	for i, point := range points {
		l.reached(r, point)
		if i == outage {
			pg.stop(syscall.SIGQUIT)
			pg.start()
			continue
		}
		s.Kill()
		s = w.Serve()
		l.use(s)
	}
	loading.Wait()
	db := w.Open(t)
	waitUntilSettled(t, db, patience)
	found := audit(t, db, r, l.confirmed())
	checkConsole(w, found)
	t.Logf("%d kills and 1 immediate stop of Postgres in %s: %+v, calls without an answer %d",
		kills, time.Since(began).Round(time.Second), found, l.errors.Load())
}
