package delivery_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// storm runs publishers, workers, enqueuers and somebody who pauses and resumes, all at
// once.
type storm struct {
	h             *webhooktest.Harness
	subscriptions []uuid.UUID
	stop          context.Context
	faults        chan error
	all           sync.WaitGroup
}

// loop repeats one step until the storm is over.
func (s *storm) loop(step func(ctx context.Context) error) {
	s.all.Go(func() {
		for s.stop.Err() == nil {
			if err := step(context.Background()); err != nil {
				select {
				case s.faults <- err:
				default:
				}
				return
			}
		}
	})
}

func (s *storm) publish(ctx context.Context) error {
	return s.h.DB.InTx(ctx, func(tx *postgres.Tx) error {
		_, err := s.h.Deliveries.Publish(ctx, tx, s.h.NewEvent())
		return err
	})
}

func (s *storm) work(ctx context.Context) error {
	jobs, err := s.h.TakeJobs(ctx)
	for _, job := range jobs {
		if err := s.h.Deliveries.Deliver(ctx, job, webhooktest.First); err != nil {
			return err
		}
	}
	return err
}

func (s *storm) enqueueDue(ctx context.Context) error {
	s.h.Clock.Move(time.Millisecond)
	_, err := s.h.Deliveries.EnqueueDue(ctx)
	return err
}

func (s *storm) pauseAndResume(ctx context.Context) error {
	uid := s.subscriptions[rand.IntN(len(s.subscriptions))]
	for _, change := range []webhooktest.StateChange{
		s.h.Subscriptions.Pause,
		s.h.Subscriptions.Resume,
	} {
		err := s.h.DB.InTx(ctx, func(tx *postgres.Tx) error {
			_, err := change(ctx, tx, uid, "operator")
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// However the steps interleave: every delivery is sent, and each attempt once.
func TestPausingLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Deliveries.Retries.Delays = []time.Duration{0, 0}
	// Each delivery fails at its first attempt.
	endpoint := newAttemptReceiver(t)
	stop, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	s := &storm{h: h, stop: stop, faults: make(chan error, 1)}
	for range 2 {
		subscription, _ := h.Subscribe(t, endpoint.URL, nil)
		s.subscriptions = append(s.subscriptions, subscription.UID)
	}
	s.loop(s.publish)
	for range 3 {
		s.loop(s.work)
	}
	for range 2 {
		s.loop(s.enqueueDue)
		s.loop(s.pauseAndResume)
	}
	s.all.Wait()
	select {
	case err := <-s.faults:
		t.Fatal(err)
	default:
	}

	// All are resumed now; the rest drains.
	for {
		h.Clock.Move(time.Hour)
		if h.EnqueueDue(t)+h.Work(t) == 0 {
			break
		}
	}
	total := h.Count(t, `SELECT count(*) FROM deliveries`)
	done := h.Count(t, `
		SELECT count(*)
		  FROM deliveries
		 WHERE state = 'delivered'
		   AND attempt_count = 2
		   AND NOT queued
		   AND NOT parked`)
	if total == 0 || done != total {
		t.Errorf("%d of %d deliveries arrived at the second attempt", done, total)
	}
	sent := make(map[string]int)
	for _, request := range endpoint.Requests() {
		sent[request.Header.Get("x-drawbridge-delivery")+" "+request.Header.Get("x-drawbridge-attempt")]++
	}
	if len(sent) != 2*total {
		t.Errorf("%d attempts arrived, want %d", len(sent), 2*total)
	}
	for attempt, times := range sent {
		if times != 1 {
			t.Errorf("attempt %s was sent %d times", attempt, times)
		}
	}
	t.Logf("%d deliveries, %d changes of state", total,
		h.Count(t, `SELECT sum(version) - 2 FROM subscriptions`))
}

// newAttemptReceiver starts an endpoint that refuses every first attempt.
func newAttemptReceiver(t *testing.T) *webhooktest.Receiver {
	t.Helper()
	r := webhooktest.NewReceiver(t, nil)
	inner := r.Config.Handler
	r.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("x-drawbridge-attempt") == "1" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		inner.ServeHTTP(w, q)
	})
	return r
}

// Several processes enqueue at once: each due delivery gets one job.
func TestEnqueuersShareTheWork(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	const count = 2500 // more than one batch
	h.Backlog(t, count, h.Clock.Now())
	h.Backlog(t, 100, h.Clock.Now().Add(time.Second)) // not due

	var mu sync.Mutex
	enqueued := 0
	var all sync.WaitGroup
	for range 4 {
		db, err := postgres.Open(t.Context(), h.DB.URL())
		if err != nil {
			t.Fatal(err)
		}
		process := webhooktest.NewServices(t, db, h.Clock)
		all.Go(func() {
			defer db.Close()
			for {
				n, err := process.Deliveries.EnqueueDue(context.Background())
				if err != nil {
					t.Error(err)
				}
				if n == 0 {
					return
				}
				mu.Lock()
				enqueued += n
				mu.Unlock()
			}
		})
	}
	all.Wait()
	// A process that found every row locked gave up early; scan once more.
	enqueued += h.EnqueueDue(t)
	jobs := h.Count(t, `SELECT count(*) FROM river_job WHERE queue = $1`, delivery.Queue)
	distinct := h.Count(t, `SELECT count(DISTINCT args ->> 'delivery_uid') FROM river_job`)
	queued := h.Count(t, `SELECT count(*) FROM deliveries WHERE queued`)
	if enqueued != count || jobs != count || distinct != count || queued != count {
		t.Errorf("%d enqueued, %d jobs of %d deliveries, %d queued, want %d of each",
			enqueued, jobs, distinct, queued, count)
	}
	if h.EnqueueDue(t) != 0 {
		t.Error("something was enqueued twice")
	}
}

func TestTheLongestDueIsEnqueuedFirst(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	for _, age := range []time.Duration{time.Minute, time.Hour, time.Second} {
		h.Backlog(t, 1, h.Clock.Now().Add(-age))
	}
	h.EnqueueDue(t)
	var last time.Time
	for _, job := range h.Jobs(t) {
		due := *h.Detail(t, job.DeliveryUID).NextAttemptAt
		if due.Before(last) {
			t.Errorf("due at %s after one due at %s", due, last)
		}
		last = due
	}
	if last.IsZero() {
		t.Error("nothing was enqueued")
	}
}

func TestOrphansAreEnqueuedAgain(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	const patience = 3 * time.Minute
	// The job of the first is lost, the second's was given up, the third's is waiting, the
	// fourth's is running.
	for _, change := range []string{
		`DELETE FROM river_job WHERE id = (SELECT max(id) FROM river_job)`,
		`UPDATE river_job SET state = 'discarded', finalized_at = now()
		  WHERE id = (SELECT max(id) FROM river_job)`,
		`UPDATE river_job SET state = 'available' WHERE id = (SELECT max(id) FROM river_job)`,
		`UPDATE river_job SET state = 'running' WHERE id = (SELECT max(id) FROM river_job)`,
	} {
		h.Publish(t)
		h.Exec(t, change)
	}
	orphans := func() int {
		count, err := h.Deliveries.MarkOrphans(t.Context(), patience)
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	if h.Clock.Move(patience); orphans() != 0 {
		t.Error("found orphans before patience was over")
	}
	h.Clock.Move(time.Second)
	h.Publish(t) // new: its job may be about to be inserted
	if got := orphans(); got != 2 {
		t.Errorf("%d orphans, want 2", got)
	}
	if got := orphans(); got != 0 {
		t.Errorf("%d orphans at a second look", got)
	}
	if got := h.EnqueueDue(t); got != 2 {
		t.Errorf("%d enqueued, want the 2 orphans", got)
	}
	h.Exec(t, `DELETE FROM river_job WHERE state = 'discarded'`)
	h.Work(t)
	if got := h.Count(t, `SELECT count(*) FROM deliveries WHERE state = 'delivered'`); got != 5 ||
		len(endpoint.Requests()) != 5 {
		t.Errorf("%d delivered by %d requests, want 5 by 5", got, len(endpoint.Requests()))
	}
}

func TestOneProcessLooksForOrphansAtATime(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.Publish(t)
	h.Exec(t, `DELETE FROM river_job`)
	h.Clock.Move(time.Hour)
	var first, second int
	var all sync.WaitGroup
	all.Go(func() { first, _ = h.Deliveries.MarkOrphans(context.Background(), 0) })
	all.Go(func() { second, _ = h.Deliveries.MarkOrphans(context.Background(), 0) })
	all.Wait()
	if first+second != 1 {
		t.Errorf("two looks found %d and %d orphans, want one in all", first, second)
	}
}
