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

// chaos runs the fault tests at full size (make chaos): without it they are
// small enough to run with all the others.
var chaos = flag.Bool("chaos", false, "run the fault tests at full size")

// load creates tasks, each of which records an event, through whichever API is
// up.
type load struct {
	t        *testing.T
	client   e2etest.DemoClient
	targets  []uuid.UUID
	apis     atomic.Pointer[[]string]
	next     atomic.Int64
	accepted atomic.Int64
	// errors counts calls without a confirmation, and failed is when the last one ended.
	errors atomic.Int64
	failed atomic.Pointer[time.Time]
	mu     sync.Mutex
	titles []string
	// confirmations are when those of the titles came.
	confirmations []time.Time
	// unanswered are the titles of calls that got no answer, and refused counts
	// other answers than a confirmation, both by the server that was called.
	unanswered map[string][]string
	refused    map[string]int
	// unreached counts calls that nobody listened to any more.
	unreached map[string]int
}

const (
	// callers is how many call at the same time.
	callers = 8
	// repeatAfter is how long they wait before they repeat what failed. Without, they keep both
	// processors of a small machine busy for as long as nothing can be done.
	repeatAfter = 100 * time.Millisecond
)

// newLoad prepares the demo data, a rate that no test reaches, and a
// subscription to what the load records.
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

// use says which servers to call.
func (l *load) use(servers ...*e2etest.Server) {
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL)
	}
	l.apis.Store(&urls)
}

// run calls until n tasks were confirmed.
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

// fails notes that a call has just failed.
func (l *load) fails() {
	now := time.Now()
	l.failed.Store(&now)
}

// one creates a task and tells whether that was confirmed.
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

// confirmed are the titles of the tasks that were confirmed.
func (l *load) confirmed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.titles)
}

// troubles returns how many calls a server left unanswered or refused.
func (l *load) troubles(s *e2etest.Server) (unanswered []string, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.unanswered[s.URL]), l.refused[s.URL]
}

// reached waits until so many calls were confirmed and deliveries received.
func (l *load) reached(r *recordingReceiver, point int64) {
	l.t.Helper()
	waittest.Within(l.t, 5*time.Minute, fmt.Sprintf("%d calls and arrivals", point), func() bool {
		return l.accepted.Load()+int64(r.deliveries()) >= point
	})
}

// pretendDowntime rescues the jobs of dead processes as another one would after it
// had watched for a minute, so that a test need not wait for that. No worker may run.
func pretendDowntime(t *testing.T, db *postgres.DB) {
	t.Helper()
	heir := processes.Service{DB: db}
	process := heir.New([]string{"worker"}, "test")
	watch := processes.Watch{
		DB: db, Self: process.UID, Working: &heir.Working,
		Deliveries: delivery.Queue, DeliveryTime: time.Minute,
	}
	// What a frozen process has locked it lets go before long.
	_, err := db.ExecContext(t.Context(), `SELECT FROM river_job WHERE state = 'running' FOR UPDATE`)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := heir.Beat(t.Context(), process); err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Look(t.Context()); err != nil {
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

// TestNothingIsLost kills the service at random points while events are
// recorded and delivered to an endpoint that fails at random, and Postgres
// under it once, and then compares what was promised, recorded and received.
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

	// A point is so many confirmed calls and received deliveries.
	points := make([]int64, kills+1)
	for i := range points {
		points[i] = chance.Int64N(events * 18 / 10)
	}
	slices.Sort(points)
	outage := chance.IntN(kills) // never last: the last kill ends what it left
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
	consoleTells(w, found)
	t.Logf("%d kills and 1 immediate stop of Postgres in %s: %+v, calls without an answer %d",
		kills, time.Since(began).Round(time.Second), found, l.errors.Load())
}
