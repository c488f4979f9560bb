package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// A model of the life of a delivery, checked against the real one by random walks: two
// workers take its jobs, die before, during and after the request, wake up again and
// collide over two jobs of one attempt, while jobs get lost, the clock steps and somebody
// pauses the subscription. What the endpoint saw and what the rows contain must agree
// with the model after every step, and in the end no delivery may be open.

// request is one whose answer the endpoint withholds.
type request struct {
	number int
	answer chan int
	done   chan error
	// zombie means that its worker was taken for dead.
	zombie bool
}

// life is one random walk.
type life struct {
	h            *webhooktest.Harness
	workers      []*delivery.Service
	arrivals     chan *request
	subscription uuid.UUID
	uid          uuid.UUID

	// open are the requests that wait for their answer.
	open []*request
	// sent counts the requests of each number; answered holds the answer to each.
	sent, answered map[int]int
	paused, ended  bool
}

// noted is a delivery as its rows describe it.
type noted struct {
	State    delivery.State `db:"state"`
	Count    int            `db:"attempt_count"`
	Attempts int            `db:"attempts"`
	Highest  int            `db:"highest"`
}

func (l *life) noted(t *rapid.T) noted {
	var found noted
	err := l.h.DB.GetContext(context.Background(), &found, `
		SELECT d.state, d.attempt_count, count(a.number) AS attempts,
		       coalesce(max(a.number), 0) AS highest
		  FROM deliveries d
		  LEFT JOIN attempts a USING (delivery_uid)
		 WHERE d.delivery_uid = $1
		 GROUP BY d.state, d.attempt_count`, l.uid)
	l.must(t, err)
	return found
}

func (l *life) must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func (l *life) exec(t *rapid.T, statement string) {
	_, err := l.h.DB.ExecContext(context.Background(), statement)
	l.must(t, err)
}

// work makes a worker take a waiting job, up to the request or to the end of the run.
func (l *life) work(t *rapid.T) {
	var jobs []struct {
		ID        int64     `db:"id"`
		Args      []byte    `db:"args"`
		Attempt   int       `db:"attempt"`
		ClaimedAt time.Time `db:"attempted_at"`
	}
	err := l.h.DB.SelectContext(context.Background(), &jobs, `
		UPDATE river_job
		   SET state = 'running', attempt = attempt + 1, attempted_at = clock_timestamp()
		 WHERE id = (SELECT id FROM river_job WHERE state = 'available' ORDER BY id LIMIT 1)
		RETURNING id, args, attempt, attempted_at`)
	l.must(t, err)
	if len(jobs) == 0 {
		return
	}
	var args delivery.Args
	l.must(t, json.Unmarshal(jobs[0].Args, &args))
	worker := rapid.SampledFrom(l.workers).Draw(t, "worker")
	done := make(chan error, 1)
	go func() {
		done <- worker.Deliver(context.Background(), args, delivery.Run{
			JobID: jobs[0].ID, Number: jobs[0].Attempt, ClaimedAt: jobs[0].ClaimedAt,
		})
	}()
	select {
	case err := <-done: // it sent nothing, and its job is over
		l.must(t, err)
		_, err = l.h.DB.ExecContext(context.Background(), `DELETE FROM river_job WHERE id = $1`,
			jobs[0].ID)
		l.must(t, err)
	case arrived := <-l.arrivals:
		arrived.done = done
		l.arrived(t, arrived)
	}
}

// arrived checks a request as the endpoint received it.
func (l *life) arrived(t *rapid.T, arrived *request) {
	l.sent[arrived.number]++
	if l.ended || arrived.number > delivery.MaxAttempts || l.sent[arrived.number] > 1 {
		t.Fatalf("attempt %d was sent, after %v (ended: %v)", arrived.number, l.sent, l.ended)
	}
	for _, other := range l.open {
		if !other.zombie {
			t.Fatalf("attempts %d and %d are under way at once", other.number, arrived.number)
		}
	}
	l.open = append(l.open, arrived)
}

// die declares the waiting workers dead: their jobs go back to the queue.
func (l *life) die(t *rapid.T) {
	for _, one := range l.open {
		one.zombie = true
	}
	l.exec(t, `UPDATE river_job SET state = 'available' WHERE state = 'running'`)
}

// answer answers a request, perhaps one whose worker is taken for dead.
func (l *life) answer(t *rapid.T) {
	if len(l.open) == 0 {
		return
	}
	at := rapid.IntRange(0, len(l.open)-1).Draw(t, "request")
	status := rapid.SampledFrom([]int{200, 500, noAnswer}).Draw(t, "status")
	one := l.open[at]
	l.open = append(l.open[:at], l.open[at+1:]...)
	one.answer <- status
	l.must(t, <-one.done)
	l.answered[one.number] = status
}

// step moves the clock, sometimes back, and enqueues what falls due.
func (l *life) step(t *rapid.T) {
	l.h.Clock.Move(time.Duration(rapid.IntRange(-3600, 90_000).Draw(t, "seconds")) * time.Second)
	_, err := l.workers[0].EnqueueDue(context.Background())
	l.must(t, err)
}

// lose deletes the waiting jobs and runs the scan for deliveries without one.
func (l *life) lose(t *rapid.T) {
	l.exec(t, `DELETE FROM river_job WHERE state = 'available'`)
	_, err := l.workers[0].MarkOrphans(context.Background(), 0)
	l.must(t, err)
}

// double adds another job for an attempt that has one.
func (l *life) double(t *rapid.T) {
	l.exec(t, `
		INSERT INTO river_job (state, queue, kind, args, max_attempts, priority, scheduled_at)
		SELECT 'available', queue, kind, args, max_attempts, priority, now()
		  FROM river_job
		 ORDER BY id
		 LIMIT 1`)
}

// pause pauses the subscription, or resumes it.
func (l *life) pause(t *rapid.T) {
	change := l.h.Subscriptions.Pause
	if l.paused {
		change = l.h.Subscriptions.Resume
	}
	l.paused = !l.paused
	l.must(t, l.h.Try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := change(ctx, tx, l.subscription, "operator")
		return err
	}))
}

// check compares the rows with the model.
func (l *life) check(t *rapid.T) {
	found, succeeded := l.noted(t), false
	for _, status := range l.answered {
		succeeded = succeeded || status == http.StatusOK
	}
	switch {
	case found.Attempts != found.Count || found.Highest != found.Count,
		found.Count > delivery.MaxAttempts:
		t.Fatalf("the attempts have gaps or are too many: %+v", found)
	case succeeded != (found.State == delivery.StateDelivered):
		t.Fatalf("%+v, and the endpoint answered %v", found, l.answered)
	case found.State == delivery.StateFailed && found.Count != delivery.MaxAttempts:
		t.Fatalf("it failed early: %+v", found)
	case l.ended && !found.State.IsFinal():
		t.Fatalf("it had ended, and is open again: %+v", found)
	}
	l.ended = found.State.IsFinal()
}

// finish resumes, answers everything and works until the delivery has ended, as it must.
func (l *life) finish(t *rapid.T) {
	if l.paused {
		l.pause(t)
	}
	for range 4 * delivery.MaxAttempts {
		for len(l.open) > 0 {
			l.answer(t)
		}
		if l.check(t); l.ended {
			l.exec(t, `DELETE FROM river_job`)
			return
		}
		l.h.Clock.Move(48 * time.Hour)
		l.lose(t)
		for _, worker := range l.workers {
			_, err := worker.AdoptBackpressured(context.Background())
			l.must(t, errors.Join(err, worker.ReleaseIdle(context.Background())))
			_, err = worker.EnqueueDue(context.Background())
			l.must(t, err)
		}
		l.work(t)
	}
	t.Fatalf("the delivery never ends: %+v", l.noted(t))
}

// TestLifeOfADelivery runs the random walks.
func TestLifeOfADelivery(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	arrivals := make(chan *request)
	known := make(chan struct{})
	endpoint := webhooktest.NewReceiver(t, func(http.ResponseWriter, int) {})
	endpoint.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-known:
		default:
			return
		}
		number, _ := strconv.Atoi(r.Header.Get("x-drawbridge-attempt"))
		one := &request{number: number, answer: make(chan int)}
		arrivals <- one
		status := <-one.answer
		if status == noAnswer {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
	})
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.GetKnown(t)
	close(known)
	workers := []*delivery.Service{h.Deliveries, h.Another(t).Deliveries}
	rapid.Check(t, func(t *rapid.T) {
		l := &life{
			h: h, workers: workers, arrivals: arrivals, subscription: subscribed.UID,
			sent: map[int]int{}, answered: map[int]int{},
		}
		event := h.NewEvent()
		l.must(t, h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Deliveries.Publish(ctx, tx, event)
			return err
		}))
		err := h.DB.GetContext(context.Background(), &l.uid,
			`SELECT delivery_uid FROM deliveries WHERE event_uid = $1`, event.UID)
		l.must(t, err)
		t.Repeat(map[string]func(*rapid.T){
			"work": l.work, "work more": l.work, "die": l.die, "answer": l.answer, "step": l.step,
			"lose": l.lose, "double": l.double, "pause": l.pause, "": l.check,
		})
		l.finish(t)
	})
}
