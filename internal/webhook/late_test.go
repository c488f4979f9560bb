package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// frozen is a worker that has sent its request and does not come on.
type frozen struct {
	h        *house
	endpoint *receiver
	release  chan int
	done     chan error
}

// noAnswer has an endpoint close the connection in place of a status.
const noAnswer = -1

// freeze starts attempt 1 of a new delivery and returns while the endpoint still
// holds back its answer; every later request is answered at once with others.
func freeze(t *testing.T, others int) frozen {
	t.Helper()
	f := frozen{h: newHouse(t), release: make(chan int), done: make(chan error, 1)}
	arrived := make(chan struct{})
	f.endpoint = newReceiver(t, func(w http.ResponseWriter, n int) {
		status := others
		if n == 1 {
			close(arrived)
			status = <-f.release
		}
		if status == noAnswer {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(status)
	})
	f.h.subscribe(t, f.endpoint.URL, nil)
	f.h.publish(t)
	job := f.h.job(t)
	go func() { f.done <- f.h.Deliver(context.Background(), job, first) }()
	<-arrived
	// The queue takes the worker for dead and runs the job again.
	if err := f.h.Deliver(t.Context(), job, again); err != nil {
		t.Fatal(err)
	}
	return f
}

// wake lets the endpoint answer and waits until the worker has written it down.
func (f frozen) wake(t *testing.T, status int) {
	t.Helper()
	f.release <- status
	if err := <-f.done; err != nil {
		t.Fatal(err)
	}
}

// next makes the attempt that is due, or finds that it died.
func (f frozen) next(t *testing.T, run webhook.Run) {
	t.Helper()
	f.h.clock.move(24 * time.Hour)
	if count := f.h.promote(t); count != 1 {
		t.Fatalf("%d attempts due, want 1", count)
	}
	if err := f.h.Deliver(t.Context(), f.h.job(t), run); err != nil {
		t.Fatal(err)
	}
}

// attempts writes the outcomes of a delivery's attempts in a row.
func attempts(detail webhook.DeliveryDetail) string {
	text := fmt.Sprintf("%s after %d:", detail.State, detail.AttemptCount)
	for _, attempt := range detail.Attempts {
		text += fmt.Sprintf(" %d", attempt.HTTPStatus)
		if attempt.ErrorClass == webhook.ClassUnknown {
			text += "?"
		}
	}
	return text
}

func TestFrozenWorkerWakesUp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		// others is what later requests are answered with.
		others int
		// meanwhile happens between the freezing and the waking.
		meanwhile func(t *testing.T, f frozen)
		late      int
		want      string
		// then tells whether a further attempt is due.
		then int
	}{
		{
			name: "success before the next attempt", late: 200,
			want: "delivered after 1: 200",
		},
		{
			name: "failure before the next attempt", late: 500,
			want: "retrying after 1: 500", then: 1,
		},
		{
			name: "success after a failed second attempt", others: 500, late: 200,
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.next(t, first) },
			want:      "delivered after 2: 200 500",
		},
		{
			name: "failure after a second attempt", others: 200, late: 500,
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.next(t, first) },
			want:      "delivered after 2: 500 200",
		},
		{
			name: "success after all attempts were lost", late: 204,
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.next(t, again); f.next(t, again) },
			want:      "delivered after 3: 204 0? 0?",
		},
		{
			name: "failure after all attempts were lost", late: 500,
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.next(t, again); f.next(t, again) },
			want:      "failed after 3: 500 0? 0?",
		},
		{
			name: "success after the subscription was deleted", late: 200,
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.delete(t) },
			want:      "delivered after 1: 200",
		},
		{
			name: "failure after the subscription was deleted", late: 500,
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.delete(t) },
			want:      "cancelled after 1: 500",
		},
		{
			name: "no answer at all", late: noAnswer,
			want: "retrying after 1: 0?", then: 1,
		},
		{
			name: "no answer after all attempts were lost", late: noAnswer,
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.next(t, again); f.next(t, again) },
			want:      "failed after 3: 0? 0? 0?",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := freeze(t, test.others)
			if test.meanwhile != nil {
				test.meanwhile(t, f)
			}
			f.wake(t, test.late)
			got := f.h.newest(t)
			if text := attempts(got); text != test.want {
				t.Errorf("delivery %s, want %s", text, test.want)
			}
			if (got.FinishedAt != nil) != got.State.IsFinal() ||
				(got.NextAttemptAt != nil) == got.State.IsFinal() {
				t.Errorf("%s: finished %v, next attempt %v", got.State, got.FinishedAt, got.NextAttemptAt)
			}
			if first := got.Attempts[0]; test.late != noAnswer &&
				(first.TLS <= 0 || first.FirstByte <= 0) {
				t.Errorf("the late outcome has no timings: %+v", first)
			}
			f.h.clock.move(24 * time.Hour)
			if count := f.h.promote(t); count != test.then {
				t.Errorf("%d further attempts, want %d", count, test.then)
			}
		})
	}
}

func (f frozen) delete(t *testing.T) {
	t.Helper()
	f.h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := f.h.Delete(ctx, tx, f.h.list(t)[0].SubscriptionUID, "operator")
		return err
	})
}

// A late outcome that comes while the next attempt is on its way: both count, no
// third one starts beside them, and a failure takes no success back.
func TestLateOutcomeCrossesTheNextAttempt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		late, second int
		want         string
	}{
		{"success, then failure", 200, 500, "delivered after 2: 200 500"},
		{"failure, then success", 500, 200, "delivered after 2: 500 200"},
		{"failure twice", 500, 404, "retrying after 2: 500 404"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			arrived := make(chan int, 2)
			release := map[int]chan int{1: make(chan int), 2: make(chan int)}
			endpoint := newReceiver(t, func(w http.ResponseWriter, n int) {
				arrived <- n
				w.WriteHeader(<-release[n])
			})
			h.subscribe(t, endpoint.URL, nil)
			h.publish(t)
			done := make(chan error)
			start := func(job webhook.DeliverArgs) {
				go func() { done <- h.Deliver(context.Background(), job, first) }()
				<-arrived
			}
			job := h.job(t)
			start(job)
			if err := h.Deliver(t.Context(), job, again); err != nil {
				t.Fatal(err)
			}
			h.promote(t)
			start(h.job(t))
			answer := func(n, status int) {
				release[n] <- status
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			answer(1, test.late)
			if h.clock.move(24 * time.Hour); h.promote(t) != 0 {
				t.Error("a third attempt was promoted beside the second")
			}
			answer(2, test.second)
			if got := attempts(h.newest(t)); got != test.want {
				t.Errorf("delivery %s, want %s", got, test.want)
			}
		})
	}
}
