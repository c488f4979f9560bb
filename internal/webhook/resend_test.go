package webhook_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

func (h *house) resend(t testing.TB, uids ...uuid.UUID) []uuid.UUID {
	t.Helper()
	var made []uuid.UUID
	h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = h.Resend(ctx, tx, uids, "support@example.com", "partner lost it")
		return err
	})
	return made
}

func TestResendSendsTheSameBytesWithItsOwnAttempts(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, answering(500, 500, 500, 500, 500, 200))
	subscription, first := h.subscribe(t, endpoint.URL, nil)
	event := h.publish(t)
	for range webhook.MaxAttempts {
		h.work(t)
		h.clock.move(time.Hour)
		h.promote(t)
	}
	original := h.newest(t)
	if original.State != webhook.DeliveryFailed {
		t.Fatalf("the original is %s", original.State)
	}
	second := secret.New("another-second-secret")
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Amend(ctx, tx, subscription.UID, webhook.Patch{Secret: &second}, "operator")
		return err
	})

	made := h.resend(t, original.UID)
	if len(made) != 1 {
		t.Fatalf("%d re-sends, want 1", len(made))
	}
	for range webhook.MaxAttempts {
		h.work(t)
		h.clock.move(time.Hour)
		h.promote(t)
	}
	again := h.detail(t, made[0])
	if again.State != webhook.DeliveryDelivered || again.AttemptCount != 3 ||
		*again.ResendOf != original.UID || *again.ResentBy != "support@example.com" ||
		*again.ResendReason != "partner lost it" || again.EventUID != event.UID ||
		again.ApplicationUID != h.application || again.Event != event.Kind {
		t.Errorf("re-sent %+v", again)
	}
	after := h.detail(t, original.UID)
	if after.State != webhook.DeliveryFailed || after.AttemptCount != 3 ||
		!slices.Equal(after.Resends, made) {
		t.Errorf("the original is %+v", after)
	}
	for i, request := range endpoint.requests() {
		key, uid := first, original.UID
		if i >= 3 {
			key, uid = second, again.UID
		}
		if request.body != string(event.Body) ||
			request.header.Get("x-hmac-signature") != webhook.Sign(key, event.Body) ||
			request.header.Get("x-drawbridge-delivery") != uid.String() {
			t.Errorf("request %d: %+v", i+1, request)
		}
	}
}

func TestResendRefusals(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.publish(t)
	good := h.newest(t).UID
	doomed, _ := h.subscribe(t, "https://hooks.example.com", func(s *webhook.Settings) {
		s.Merchants = []uuid.UUID{h.merchant}
	})
	h.clock.move(time.Second)
	h.publish(t)
	at := slices.IndexFunc(h.list(t), func(d webhook.Delivery) bool {
		return d.SubscriptionUID == doomed.UID
	})
	cancelled := h.list(t)[at].UID
	h.delete(t, doomed.UID)
	known := len(h.list(t))
	jobs := h.count(t, `SELECT count(*) FROM river_job`)

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
			err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := h.Resend(ctx, tx, test.uids, "support", test.reason)
				return err
			})
			wantRefusal(t, err, test.code, test.fields...)
			if len(h.list(t)) != known || h.count(t, `SELECT count(*) FROM river_job`) != jobs {
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
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.publish(t)
	first := h.newest(t).UID
	h.clock.move(time.Second)
	h.publish(t)
	second := h.newest(t).UID
	made := h.resend(t, second, first, second)
	if len(made) != 2 {
		t.Fatalf("%d re-sends of two deliveries", len(made))
	}
	for i, of := range []uuid.UUID{second, first} {
		if got := *h.detail(t, made[i]).ResendOf; got != of {
			t.Errorf("re-send %d is of %s, want %s", i, got, of)
		}
	}
	if none := h.resend(t); len(none) != 0 {
		t.Errorf("re-sending nothing made %d", len(none))
	}
}

// A large re-send is left to the promoter, so that new events come first.
func TestLargeResendTricklesIn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.backlog(t, 1001, h.clock.now())
	var uids []uuid.UUID
	if err := h.DB.Select(&uids, `SELECT delivery_uid FROM deliveries`); err != nil {
		t.Fatal(err)
	}
	h.exec(t, `UPDATE deliveries SET state = 'failed', next_attempt_at = NULL`)
	made := h.resend(t, uids...)
	if jobs := h.count(t, `SELECT count(*) FROM river_job`); len(made) != 1001 || jobs != 0 {
		t.Errorf("%d re-sent with %d jobs at once", len(made), jobs)
	}
	if first, rest := h.promote(t), h.promote(t); first != 1000 || rest != 1 {
		t.Errorf("promoted %d and %d", first, rest)
	}
}

func TestResendMatching(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, answering(500))
	failing, _ := h.subscribe(t, endpoint.URL, nil)
	gone, _ := h.subscribe(t, endpoint.URL, nil)
	var times []time.Time
	for range 4 {
		times = append(times, h.clock.now())
		h.publish(t)
		h.clock.move(time.Minute)
	}
	h.exec(t, `UPDATE deliveries SET state = 'failed', next_attempt_at = NULL, queued = false`)
	h.exec(t, `DELETE FROM river_job`)
	h.publish(t) // pending
	h.delete(t, gone.UID)

	match := func(filter webhook.DeliveryFilter) ([]uuid.UUID, error) {
		var made []uuid.UUID
		err := h.try(func(ctx context.Context, tx *postgres.Tx) (err error) {
			made, err = h.ResendMatching(ctx, tx, filter, "support", "")
			return err
		})
		return made, err
	}
	tests := []struct {
		name   string
		filter webhook.DeliveryFilter
		// want are the times of the events that are re-sent.
		want   []time.Time
		code   lending.Code
		fields []string
	}{
		{
			name: "a range, without the deleted subscription's",
			filter: webhook.DeliveryFilter{
				State: webhook.DeliveryFailed, Since: times[1], Until: times[3],
			},
			want: times[1:3],
		},
		{
			name: "all that failed, whatever cursor and limit say",
			filter: webhook.DeliveryFilter{
				SubscriptionUID: failing.UID, State: webhook.DeliveryFailed, Limit: 1,
				Cursor: postgres.Cursor{At: times[2]},
			},
			want: times,
		},
		{
			name:   "nothing",
			filter: webhook.DeliveryFilter{State: webhook.DeliveryFailed, Until: times[0]},
		},
		{
			name:   "a deleted subscription",
			filter: webhook.DeliveryFilter{SubscriptionUID: gone.UID}, code: lending.CodeInvalidState,
		},
		{
			name:   "no such subscription",
			filter: webhook.DeliveryFilter{SubscriptionUID: uuid.New()}, code: lending.CodeNotFound,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h.exec(t, `DELETE FROM deliveries WHERE resend_of IS NOT NULL`)
			made, err := match(test.filter)
			if test.code != "" {
				wantRefusal(t, err, test.code, test.fields...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []time.Time
			for _, uid := range made {
				detail := h.detail(t, uid)
				if detail.SubscriptionUID != failing.UID {
					t.Errorf("re-sent to subscription %s", detail.SubscriptionUID)
				}
				got = append(got, h.detail(t, *detail.ResendOf).CreatedAt)
			}
			if !slices.EqualFunc(got, test.want, time.Time.Equal) {
				t.Errorf("re-sent those of %v, want %v", got, test.want)
			}
		})
	}
}

// A re-send and the deletion of its subscription at once: whoever comes second
// waits, and nothing is left to be sent.
func TestResendCrossesTheDeletion(t *testing.T) {
	t.Parallel()
	setUp := func(t *testing.T) (*house, webhook.Delivery) {
		t.Helper()
		h := newHouse(t)
		h.subscribe(t, "https://hooks.example.com", nil)
		h.publish(t)
		return h, h.newest(t).Delivery
	}
	t.Run("the re-send first", func(t *testing.T) {
		t.Parallel()
		h, original := setUp(t)
		done := make(chan error, 1)
		var made []uuid.UUID
		h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
			made, err = h.Resend(ctx, tx, []uuid.UUID{original.UID}, "support", "")
			if err != nil {
				return err
			}
			go func() {
				done <- h.try(func(ctx context.Context, tx *postgres.Tx) error {
					_, err := h.Delete(ctx, tx, original.SubscriptionUID, "operator")
					return err
				})
			}()
			h.waitForLock(t)
			return nil
		})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := h.detail(t, made[0]).State; got != webhook.DeliveryCancelled {
			t.Errorf("the re-send is %s", got)
		}
	})
	t.Run("the deletion first", func(t *testing.T) {
		t.Parallel()
		h, original := setUp(t)
		done := make(chan error, 1)
		h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
			if _, err := h.Delete(ctx, tx, original.SubscriptionUID, "operator"); err != nil {
				return err
			}
			go func() {
				done <- h.try(func(ctx context.Context, tx *postgres.Tx) error {
					_, err := h.Resend(ctx, tx, []uuid.UUID{original.UID}, "support", "")
					return err
				})
			}()
			h.waitForLock(t)
			return nil
		})
		wantRefusal(t, <-done, lending.CodeInvalidState)
	})
}
