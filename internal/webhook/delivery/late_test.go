package delivery_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// frozen is a worker that has sent its request and makes no progress.
type frozen struct {
	h        *webhooktest.Harness
	endpoint *webhooktest.Receiver
	release  chan int
	done     chan error
}

// noAnswer makes an endpoint close the connection instead of answering.
const noAnswer = -1

// freeze starts attempt 1 of a new delivery and returns while the endpoint still
// withholds its answer; every later request is answered at once with others.
func freeze(t *testing.T, others int) frozen {
	t.Helper()
	f := frozen{h: webhooktest.New(t), release: make(chan int), done: make(chan error, 1)}
	arrived := make(chan struct{})
	f.endpoint = webhooktest.NewReceiver(t, func(w http.ResponseWriter, n int) {
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
	f.h.Subscribe(t, f.endpoint.URL, nil)
	f.h.Publish(t)
	job := f.h.Job(t)
	go func() { f.done <- f.h.Deliveries.Deliver(context.Background(), job, webhooktest.First) }()
	<-arrived
	// The queue takes the worker for dead and runs the job again.
	if err := f.h.Deliveries.Deliver(t.Context(), job, webhooktest.Again); err != nil {
		t.Fatal(err)
	}
	return f
}

// wake lets the endpoint answer and waits until the worker has recorded that.
func (f frozen) wake(t *testing.T, status int) {
	t.Helper()
	f.release <- status
	if err := <-f.done; err != nil {
		t.Fatal(err)
	}
}

// next makes the due attempt, or finds that it died.
func (f frozen) next(t *testing.T, run delivery.Run) {
	t.Helper()
	f.h.Clock.Move(24 * time.Hour)
	if count := f.h.EnqueueDue(t); count != 1 {
		t.Fatalf("%d attempts due, want 1", count)
	}
	if err := f.h.Deliveries.Deliver(t.Context(), f.h.Job(t), run); err != nil {
		t.Fatal(err)
	}
}

func TestFrozenWorkerWakesUp(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		// others is the answer to later requests.
		others int
		// meanwhile happens between freezing and waking.
		meanwhile func(t *testing.T, f frozen)
		late      int
		want      string
		// then is whether a further attempt is due.
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
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.next(t, webhooktest.First) },
			want:      "delivered after 2: 200 500",
		},
		{
			name: "failure after a second attempt", others: 200, late: 500,
			meanwhile: func(t *testing.T, f frozen) { t.Helper(); f.next(t, webhooktest.First) },
			want:      "delivered after 2: 500 200",
		},
		{
			name: "success after all attempts were lost", late: 204,
			meanwhile: func(t *testing.T, f frozen) {
				t.Helper()
				f.next(t, webhooktest.Again)
				f.next(t, webhooktest.Again)
			},
			want: "delivered after 3: 204 0? 0?",
		},
		{
			name: "failure after all attempts were lost", late: 500,
			meanwhile: func(t *testing.T, f frozen) {
				t.Helper()
				f.next(t, webhooktest.Again)
				f.next(t, webhooktest.Again)
			},
			want: "failed after 3: 500 0? 0?",
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
			meanwhile: func(t *testing.T, f frozen) {
				t.Helper()
				f.next(t, webhooktest.Again)
				f.next(t, webhooktest.Again)
			},
			want: "failed after 3: 0? 0? 0?",
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
			got := f.h.Newest(t)
			if text := webhooktest.Attempts(got); text != test.want {
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
			f.h.Clock.Move(24 * time.Hour)
			if count := f.h.EnqueueDue(t); count != test.then {
				t.Errorf("%d further attempts, want %d", count, test.then)
			}
		})
	}
}

func (f frozen) delete(t *testing.T) {
	t.Helper()
	f.h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := f.h.Subscriptions.Delete(ctx, tx, f.h.List(t)[0].SubscriptionUID, "operator")
		return err
	})
}

// A late outcome that comes while the next attempt is under way: both count, no third one
// starts alongside them, and a failure does not undo a success.
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
			h := webhooktest.New(t)
			arrived := make(chan int, 2)
			release := map[int]chan int{1: make(chan int), 2: make(chan int)}
			endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, n int) {
				arrived <- n
				w.WriteHeader(<-release[n])
			})
			h.Subscribe(t, endpoint.URL, nil)
			h.Publish(t)
			done := make(chan error)
			start := func(job delivery.Args) {
				go func() { done <- h.Deliveries.Deliver(context.Background(), job, webhooktest.First) }()
				<-arrived
			}
			job := h.Job(t)
			start(job)
			if err := h.Deliveries.Deliver(t.Context(), job, webhooktest.Again); err != nil {
				t.Fatal(err)
			}
			h.EnqueueDue(t)
			start(h.Job(t))
			answer := func(n, status int) {
				release[n] <- status
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			answer(1, test.late)
			if h.Clock.Move(24 * time.Hour); h.EnqueueDue(t) != 0 {
				t.Error("a third attempt was enqueued beside the second")
			}
			answer(2, test.second)
			if got := webhooktest.Attempts(h.Newest(t)); got != test.want {
				t.Errorf("delivery %s, want %s", got, test.want)
			}
		})
	}
}
