package webhook_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

// otherKeys lack the key that the house began with.
func otherKeys(t *testing.T) *secret.Keyring {
	t.Helper()
	keys, err := secret.ParseKeyring(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (h *house) reopen(t *testing.T, s webhook.Subscription) (after webhook.Subscription) {
	t.Helper()
	h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		after, err = h.Reopen(ctx, tx, s.UID)
		return err
	})
	return after
}

func (h *house) parked(t *testing.T) int {
	t.Helper()
	return h.count(t, `SELECT count(*) FROM deliveries WHERE parked AND NOT queued`)
}

// A subscription whose secret or headers do not open stops and says so once; its
// deliveries wait without an attempt, and go out when the key is back. It reads the
// log of the process, so it runs alone.
func TestUnopenableSubscriptionStops(t *testing.T) {
	h := newHouse(t)
	endpoint := newReceiver(t, answering(200))
	made, _ := h.subscribe(t, endpoint.URL, nil)
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	keys := h.Keys
	h.Keys = otherKeys(t)
	for range 3 {
		h.publish(t)
		if err := h.Deliver(t.Context(), h.job(t), first); err != nil {
			t.Errorf("what cannot be sent is tried again at once: %v", err)
		}
	}
	said := strings.Count(log.String(), "cannot be sent to")
	if said != 1 || strings.Count(log.String(), "level=") != 1 {
		t.Errorf("it says so %d times: %s", said, log.String())
	}
	if got := h.parked(t); got != 3 || h.promote(t) != 0 {
		t.Errorf("%d deliveries wait", got)
	}
	stopped, err := h.Stopped(t.Context())
	if err != nil || len(stopped) != 1 || stopped[0] != made.UID {
		t.Errorf("stopped %v, %v", stopped, err)
	}
	if still := h.reopen(t, made); still.Unopened == "" || h.parked(t) != 3 {
		t.Errorf("without its key it goes on: %+v", still)
	}
	h.Keys = keys
	if after := h.reopen(t, made); after.Unopened != "" || h.parked(t) != 0 {
		t.Errorf("with its key it does not go on: %+v", after)
	}
	if promoted := h.promote(t); promoted != 3 {
		t.Errorf("%d deliveries fall due, want 3", promoted)
	}
	h.work(t)
	if got := endpoint.requests(); len(got) != 3 || got[0].header.Get("x-drawbridge-attempt") != "1" {
		t.Errorf("%d requests", len(got))
	}
}

// What is damaged breaks no reading, and heals when it is given anew; a stop that
// meanwhile was paused by a person stays paused.
func TestDamagedValuesAreGivenAnew(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"secret_sealed", "headers_sealed"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			endpoint := newReceiver(t, answering(200))
			made, _ := h.subscribe(t, endpoint.URL, func(s *webhook.Settings) {
				s.Headers = []webhook.Header{{Name: "x-key", Value: "v"}}
			})
			h.exec(t, `UPDATE subscriptions SET `+column+` = left(`+column+`, -5)`)
			if column == "headers_sealed" {
				h.exec(t, `UPDATE subscription_versions SET headers_sealed = 'x'`)
			}
			found, err := h.Subscription(t.Context(), made.UID)
			if err != nil || !strings.Contains(found.Unopened, "damaged") ||
				found.HeadersUnknown != (column == "headers_sealed") || found.MissingKey != "" {
				t.Fatalf("found %+v, %v", found, err)
			}
			if _, err := h.Versions(t.Context(), made.UID); err != nil {
				t.Errorf("its versions: %v", err)
			}
			h.publish(t)
			if err := h.Deliver(t.Context(), h.job(t), first); err != nil {
				t.Error(err)
			}
			if _, err := h.restore(t, made.UID, webhook.Choice{Version: 1}); column ==
				"headers_sealed" {
				wantRefusal(t, err, lending.CodeInvalidState)
			}
			value := secret.New("given-anew-0123456789")
			patch := webhook.Patch{
				Headers: &[]webhook.Header{{Name: "x-key", Value: "w"}}, Secret: &value,
				Overlap: webhook.DefaultOverlap,
			}
			if healed, _ := h.amend(t, made.UID, patch); healed.Unopened != "" {
				t.Errorf("given anew it is %+v", healed)
			}
			if h.parked(t) != 0 || h.promote(t) != 1 {
				t.Error("what waited does not go out")
			}
			h.work(t)
			if len(endpoint.requests()) != 1 {
				t.Error("nothing was sent")
			}
			diff, err := h.CompareVersions(t.Context(), made.UID, 1, 2)
			if err != nil || strings.Join(diff.Settings(), " ") != "secret headers" {
				t.Errorf("the versions differ in %v, %v", diff, err)
			}
		})
	}
}
