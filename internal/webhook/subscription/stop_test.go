package subscription_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// A subscription whose secret or headers cannot be decrypted stops and logs it once; its
// deliveries wait without an attempt, and are sent when the key is back. The test reads
// the log of the process, so it does not run in parallel.
func TestUnopenableSubscriptionStops(t *testing.T) {
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(200))
	made, _ := h.Subscribe(t, endpoint.URL, nil)
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	keys := h.Subscriptions.Keys
	h.Subscriptions.Keys = webhooktest.OtherKeys(t)
	for range 3 {
		h.Publish(t)
		if err := h.Deliveries.Deliver(t.Context(), h.Job(t), webhooktest.First); err != nil {
			t.Errorf("what cannot be sent is tried again at once: %v", err)
		}
	}
	said := strings.Count(log.String(), "cannot be sent to")
	if said != 1 || strings.Count(log.String(), "level=") != 1 {
		t.Errorf("it says so %d times: %s", said, log.String())
	}
	if got := h.Parked(t); got != 3 || h.EnqueueDue(t) != 0 {
		t.Errorf("%d deliveries wait", got)
	}
	stopped, err := h.Subscriptions.Stopped(t.Context())
	if err != nil || len(stopped) != 1 || stopped[0] != made.UID {
		t.Errorf("stopped %v, %v", stopped, err)
	}
	if still := h.Reopen(t, made); still.Unopened == "" || h.Parked(t) != 3 {
		t.Errorf("without its key it goes on: %+v", still)
	}
	h.Subscriptions.Keys = keys
	if after := h.Reopen(t, made); after.Unopened != "" || h.Parked(t) != 0 {
		t.Errorf("with its key it does not go on: %+v", after)
	}
	if enqueued := h.EnqueueDue(t); enqueued != 3 {
		t.Errorf("%d deliveries fall due, want 3", enqueued)
	}
	h.Work(t)
	if got := endpoint.Requests(); len(got) != 3 || got[0].Header.Get("x-drawbridge-attempt") != "1" {
		t.Errorf("%d requests", len(got))
	}
}

// A damaged value breaks no read, and is repaired by setting it again; a stopped
// subscription that somebody paused meanwhile stays paused.
func TestDamagedValuesAreGivenAgain(t *testing.T) {
	t.Parallel()
	for _, column := range []string{"secret_sealed", "headers_sealed"} {
		t.Run(column, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(200))
			made, _ := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
				s.Headers = []sender.Header{{Name: "x-key", Value: "v"}}
			})
			h.Exec(t, `UPDATE subscriptions SET `+column+` = left(`+column+`, -5)`)
			if column == "headers_sealed" {
				h.Exec(t, `UPDATE subscription_versions SET headers_sealed = 'x'`)
			}
			found, err := h.Subscriptions.Get(t.Context(), made.UID)
			if err != nil || !strings.Contains(found.Unopened, "damaged") ||
				found.HeadersUnknown != (column == "headers_sealed") || found.MissingKey != "" {
				t.Fatalf("found %+v, %v", found, err)
			}
			if _, err := h.Subscriptions.Versions(t.Context(), made.UID); err != nil {
				t.Errorf("its versions: %v", err)
			}
			h.Publish(t)
			if err := h.Deliveries.Deliver(t.Context(), h.Job(t), webhooktest.First); err != nil {
				t.Error(err)
			}
			if _, err := h.Restore(t, made.UID, subscription.Choice{Version: 1}); column ==
				"headers_sealed" {
				webhooktest.WantRefusal(t, err, lending.CodeInvalidState)
			}
			value := secret.New("given-again-0123456789")
			patch := subscription.Patch{
				Headers: &[]sender.Header{{Name: "x-key", Value: "w"}}, Secret: &value,
				Overlap: subscription.DefaultOverlap,
			}
			if healed, _ := h.Amend(t, made.UID, patch); healed.Unopened != "" {
				t.Errorf("given again it is %+v", healed)
			}
			if h.Parked(t) != 0 || h.EnqueueDue(t) != 1 {
				t.Error("what waited does not go out")
			}
			h.Work(t)
			if len(endpoint.Requests()) != 1 {
				t.Error("nothing was sent")
			}
			diff, err := h.Subscriptions.CompareVersions(t.Context(), made.UID, 1, 2)
			if err != nil || strings.Join(diff.Settings(), " ") != "secret headers" {
				t.Errorf("the versions differ in %v, %v", diff, err)
			}
		})
	}
}
