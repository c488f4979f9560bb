package delivery_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestResendSendsTheSameBytesWithItsOwnAttempts(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500, 500, 500, 500, 500, 200))
	subscribed, first := h.Subscribe(t, endpoint.URL, nil)
	event := h.Publish(t)
	for range delivery.MaxAttempts {
		h.Work(t)
		h.Clock.Move(time.Hour)
		h.EnqueueDue(t)
	}
	original := h.Newest(t)
	if original.State != delivery.StateFailed {
		t.Fatalf("the original is %s", original.State)
	}
	second := secret.New("another-second-secret")
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Subscriptions.Amend(ctx, tx, subscribed.UID, subscription.Patch{Secret: &second},
			"operator")
		return err
	})

	made := h.Resend(t, original.UID)
	if len(made) != 1 {
		t.Fatalf("%d re-sends, want 1", len(made))
	}
	for range delivery.MaxAttempts {
		h.Work(t)
		h.Clock.Move(time.Hour)
		h.EnqueueDue(t)
	}
	again := h.Detail(t, made[0])
	if again.State != delivery.StateDelivered || again.AttemptCount != 3 ||
		*again.ResendOf != original.UID || *again.ResentBy != "support@example.com" ||
		*again.ResendReason != "partner lost it" || again.EventUID != event.UID ||
		again.ApplicationUID != h.Application || again.Event != event.Kind {
		t.Errorf("re-sent %+v", again)
	}
	after := h.Detail(t, original.UID)
	if after.State != delivery.StateFailed || after.AttemptCount != 3 ||
		!slices.Equal(after.Resends, made) {
		t.Errorf("the original is %+v", after)
	}
	for i, request := range endpoint.Requests() {
		key, uid := first, original.UID
		if i >= 3 {
			key, uid = second, again.UID
		}
		if request.Body != string(event.Body) ||
			request.Header.Get("x-hmac-signature") != sender.Sign(key, event.Body) ||
			request.Header.Get("x-drawbridge-delivery") != uid.String() {
			t.Errorf("request %d: %+v", i+1, request)
		}
		for _, name := range []string{
			"x-drawbridge-event", "x-drawbridge-event-id", "x-drawbridge-sequence",
			"x-drawbridge-merchant", "x-drawbridge-subject",
		} {
			want := endpoint.Requests()[0].Header.Get(name)
			if got := request.Header.Get(name); want == "" || got != want {
				t.Errorf("request %d has the %s %q, the first had %q", i+1, name, got, want)
			}
		}
	}
}

func TestResendRefusals(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.Publish(t)
	good := h.Newest(t).UID
	doomed, _ := h.Subscribe(t, "https://hooks.example.com", func(s *subscription.Settings) {
		s.Merchants = []uuid.UUID{h.Merchant}
	})
	h.Clock.Move(time.Second)
	h.Publish(t)
	at := slices.IndexFunc(h.List(t), func(d delivery.Delivery) bool {
		return d.SubscriptionUID == doomed.UID
	})
	cancelled := h.List(t)[at].UID
	h.Delete(t, doomed.UID)
	known := len(h.List(t))
	jobs := h.Count(t, `SELECT count(*) FROM river_job`)

	tests := []struct {
		name   string
		uids   []uuid.UUID
		reason string
		code   lending.Code
		fields []string
	}{
		{name: "unknown", uids: []uuid.UUID{good, uuid.New()}, code: lending.CodeNotFound},
		{name: "deleted", uids: []uuid.UUID{good, cancelled}, code: lending.CodeInvalidState},
		{
			name: "reason too long", uids: []uuid.UUID{good}, reason: strings.Repeat("x", 501),
			code: lending.CodeValidation, fields: []string{"reason"},
		},
		{
			name: "reason that no log line holds", uids: []uuid.UUID{good}, reason: "a\x00b",
			code: lending.CodeValidation, fields: []string{"reason"},
		},
		{name: "too many", uids: manyUIDs(10_001), code: lending.CodeValidation},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := h.Deliveries.Resend(ctx, tx, test.uids, "support", test.reason)
				return err
			})
			webhooktest.WantRefusal(t, err, test.code, test.fields...)
			if len(h.List(t)) != known || h.Count(t, `SELECT count(*) FROM river_job`) != jobs {
				t.Error("a refused re-send left something behind")
			}
		})
	}
}

func manyUIDs(count int) []uuid.UUID {
	uids := make([]uuid.UUID, count)
	for i := range uids {
		uids[i] = uuid.New()
	}
	return uids
}

func TestResendOfOneNamedTwice(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.Publish(t)
	first := h.Newest(t).UID
	h.Clock.Move(time.Second)
	h.Publish(t)
	second := h.Newest(t).UID
	made := h.Resend(t, second, first, second)
	if len(made) != 2 {
		t.Fatalf("%d re-sends of two deliveries", len(made))
	}
	for i, of := range []uuid.UUID{second, first} {
		if got := *h.Detail(t, made[i]).ResendOf; got != of {
			t.Errorf("re-send %d is of %s, want %s", i, got, of)
		}
	}
	if none := h.Resend(t); len(none) != 0 {
		t.Errorf("re-sending nothing made %d", len(none))
	}
}

// A large re-send is enqueued as it falls due, so that new events come first.
func TestLargeResendTricklesIn(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.Backlog(t, 1001, h.Clock.Now())
	var uids []uuid.UUID
	if err := h.DB.Select(&uids, `SELECT delivery_uid FROM deliveries`); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, `UPDATE deliveries SET state = 'failed', next_attempt_at = NULL`)
	made := h.Resend(t, uids...)
	if jobs := h.Count(t, `SELECT count(*) FROM river_job`); len(made) != 1001 || jobs != 0 {
		t.Errorf("%d re-sent with %d jobs at once", len(made), jobs)
	}
	if first, rest := h.EnqueueDue(t), h.EnqueueDue(t); first != 1000 || rest != 1 {
		t.Errorf("enqueued %d and %d", first, rest)
	}
}

func TestResendMatching(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
	failing, _ := h.Subscribe(t, endpoint.URL, nil)
	gone, _ := h.Subscribe(t, endpoint.URL, nil)
	var times []time.Time
	for range 4 {
		times = append(times, h.Clock.Now())
		h.Publish(t)
		h.Clock.Move(time.Minute)
	}
	h.Exec(t, `UPDATE deliveries SET state = 'failed', next_attempt_at = NULL, queued = false`)
	h.Exec(t, `DELETE FROM river_job`)
	h.Publish(t) // pending
	h.Delete(t, gone.UID)

	match := func(filter delivery.Filter) ([]uuid.UUID, error) {
		var made []uuid.UUID
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) (err error) {
			made, err = h.Deliveries.ResendMatching(ctx, tx, filter, "support", "")
			return err
		})
		return made, err
	}
	tests := []struct {
		name   string
		filter delivery.Filter
		// want holds the times of the events that are re-sent.
		want   []time.Time
		code   lending.Code
		fields []string
	}{
		{
			name: "a range, without the deleted subscription's",
			filter: delivery.Filter{
				State: delivery.StateFailed, Since: times[1], Until: times[3],
			},
			want: times[1:3],
		},
		{
			name: "all that failed",
			filter: delivery.Filter{
				SubscriptionUID: failing.UID, State: delivery.StateFailed,
			},
			want: times,
		},
		{
			name:   "nothing",
			filter: delivery.Filter{State: delivery.StateFailed, Until: times[0]},
		},
		{
			name:   "what goes out by itself",
			filter: delivery.Filter{State: delivery.StatePending},
		},
		{
			name:   "all but what goes out by itself",
			filter: delivery.Filter{SubscriptionUID: failing.UID},
			want:   times,
		},
		{
			name:   "a deleted subscription",
			filter: delivery.Filter{SubscriptionUID: gone.UID}, code: lending.CodeInvalidState,
		},
		{
			name:   "no such subscription",
			filter: delivery.Filter{SubscriptionUID: uuid.New()}, code: lending.CodeNotFound,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h.Exec(t, `DELETE FROM deliveries WHERE resend_of IS NOT NULL`)
			made, err := match(test.filter)
			if test.code != "" {
				webhooktest.WantRefusal(t, err, test.code, test.fields...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []time.Time
			for _, uid := range made {
				detail := h.Detail(t, uid)
				if detail.SubscriptionUID != failing.UID {
					t.Errorf("re-sent to subscription %s", detail.SubscriptionUID)
				}
				got = append(got, h.Detail(t, *detail.ResendOf).CreatedAt)
			}
			if !slices.EqualFunc(got, test.want, time.Time.Equal) {
				t.Errorf("re-sent those of %v, want %v", got, test.want)
			}
		})
	}
}

// A failed delivery is re-sent until one has arrived, however often that is requested.
func TestResendMatchingLeavesOutWhatWasMadeGood(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500, 500, 500, 200))
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	spend(t, h)
	for run, want := range []int{1, 0} {
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			made, err := h.Deliveries.ResendMatching(ctx, tx,
				delivery.Filter{State: delivery.StateFailed}, "support", "")
			if len(made) != want {
				t.Errorf("run %d re-sent %d, want %d", run, len(made), want)
			}
			return err
		})
		spend(t, h)
	}
}

// Repeating the request while re-sends are open sends nothing twice; nor does it once they have
// failed, too: an event goes to its subscription once, whichever delivery the filter selects.
func TestResendMatchingSendsAnEventOnce(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
	h.Subscribe(t, endpoint.URL, nil)
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	spend(t, h)
	h.Clock.Move(time.Hour)
	original := h.Clock.Now()
	match := func(what string, until time.Time, want int) {
		t.Helper()
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			made, err := h.Deliveries.ResendMatching(ctx, tx,
				delivery.Filter{State: delivery.StateFailed, Until: until}, "support", "")
			if len(made) != want {
				t.Errorf("%s: re-sent %d, want %d", what, len(made), want)
			}
			return err
		})
	}
	match("both failed", time.Time{}, 2)
	match("both wait", time.Time{}, 0)
	h.Work(t)
	match("both are tried again", time.Time{}, 0)
	spend(t, h)
	match("both failed again", time.Time{}, 2)
	spend(t, h)
	match("the first time", original, 2)
}

// Two concurrent requests for the same deliveries re-send each once.
func TestResendMatchingTogether(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	spend(t, h)
	match := func(ctx context.Context, tx *postgres.Tx) ([]uuid.UUID, error) {
		return h.Deliveries.ResendMatching(ctx, tx,
			delivery.Filter{State: delivery.StateFailed}, "support", "")
	}
	done := make(chan error, 1)
	var first, second []uuid.UUID
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		if first, err = match(ctx, tx); err != nil {
			return err
		}
		go func() {
			done <- h.Try(func(ctx context.Context, tx *postgres.Tx) (err error) {
				second, err = match(ctx, tx)
				return err
			})
		}()
		pgtest.WaitForLock(t, h.DB)
		return nil
	})
	if err := <-done; err != nil || len(first) != 1 || len(second) != 0 {
		t.Errorf("re-sent %d and %d, want 1 and none (%v)", len(first), len(second), err)
	}
}

// A re-send and the deletion of its subscription at once: the second one waits, and
// nothing is left to be sent.
func TestResendCrossesTheDeletion(t *testing.T) {
	t.Parallel()
	setUp := func(t *testing.T) (*webhooktest.Harness, delivery.Delivery) {
		t.Helper()
		h := webhooktest.New(t)
		h.Subscribe(t, "https://hooks.example.com", nil)
		h.Publish(t)
		return h, h.Newest(t).Delivery
	}
	t.Run("the re-send first", func(t *testing.T) {
		t.Parallel()
		h, original := setUp(t)
		done := make(chan error, 1)
		var made []uuid.UUID
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
			made, err = h.Deliveries.Resend(ctx, tx, []uuid.UUID{original.UID}, "support", "")
			if err != nil {
				return err
			}
			go func() {
				done <- h.Try(func(ctx context.Context, tx *postgres.Tx) error {
					_, err := h.Subscriptions.Delete(ctx, tx, original.SubscriptionUID, "operator")
					return err
				})
			}()
			pgtest.WaitForLock(t, h.DB)
			return nil
		})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := h.Detail(t, made[0]).State; got != delivery.StateCancelled {
			t.Errorf("the re-send is %s", got)
		}
	})
	t.Run("the deletion first", func(t *testing.T) {
		t.Parallel()
		h, original := setUp(t)
		done := make(chan error, 1)
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			if _, err := h.Subscriptions.Delete(ctx, tx, original.SubscriptionUID, "operator"); err != nil {
				return err
			}
			go func() {
				done <- h.Try(func(ctx context.Context, tx *postgres.Tx) error {
					_, err := h.Deliveries.Resend(ctx, tx, []uuid.UUID{original.UID}, "support", "")
					return err
				})
			}()
			pgtest.WaitForLock(t, h.DB)
			return nil
		})
		webhooktest.WantRefusal(t, <-done, lending.CodeInvalidState)
	})
}
