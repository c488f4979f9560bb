package subscription_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// verifies reports whether the Standard Webhooks library accepts the request with the secret.
func verifies(t *testing.T, got webhooktest.Received, key secret.String) bool {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(
		base64.StdEncoding.EncodeToString([]byte(key.Reveal())))
	if err != nil {
		t.Fatal(err)
	}
	return library.VerifyIgnoringTimestamp([]byte(got.Body), got.Header) == nil
}

// The Standard Webhooks libraries verify each attempt, in an overlap with either secret,
// and the specification's signature is unchanged.
func TestStandardWebhooksVerify(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, first := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
		s.Standard = true
	})
	event := h.Publish(t)
	h.Work(t)
	got := endpoint.Requests()[0]
	if !verifies(t, got, first) || got.Header.Get("webhook-id") != event.UID.String() ||
		got.Header.Get("x-hmac-signature") != sender.Sign(first, []byte(got.Body)) {
		t.Errorf("sent %v", got.Header)
	}
	at, err := time.Parse(time.RFC3339, "1970-01-01T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := time.ParseDuration(got.Header.Get("webhook-timestamp") + "s")
	if err != nil || !at.Add(seconds).Equal(h.Clock.Now().Truncate(time.Second)) {
		t.Errorf("the attempt of %s says %s", h.Clock.Now(), got.Header.Get("webhook-timestamp"))
	}
	var second secret.String
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		_, second, err = h.Subscriptions.Amend(ctx, tx, subscribed.UID, subscription.Patch{
			Secret: &secret.String{}, Overlap: time.Hour,
		}, "admin")
		return err
	})
	h.Publish(t)
	h.Work(t)
	got = endpoint.Requests()[1]
	if !verifies(t, got, first) || !verifies(t, got, second) ||
		verifies(t, got, secret.New("another secret of ours")) {
		t.Errorf("in the overlap: %v", got.Header)
	}
	// The new one comes first; after the overlap it is the only one.
	signatures := strings.Fields(got.Header.Get("webhook-signature"))
	if len(signatures) != 2 {
		t.Fatalf("in the overlap: signed %q", signatures)
	}
	for i, key := range []secret.String{second, first} {
		one := webhooktest.Received{Header: got.Header.Clone(), Body: got.Body}
		one.Header.Set("webhook-signature", signatures[i])
		if !verifies(t, one, key) {
			t.Errorf("in the overlap: signature %d of %q is by the wrong secret", i+1, signatures)
		}
	}
	h.Clock.Move(time.Hour)
	h.Publish(t)
	h.Work(t)
	got = endpoint.Requests()[2]
	if verifies(t, got, first) || !verifies(t, got, second) {
		t.Errorf("after the overlap: %v", got.Header)
	}
	off := false
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Subscriptions.Amend(ctx, tx, subscribed.UID,
			subscription.Patch{Standard: &off}, "admin")
		return err
	})
	h.Publish(t)
	h.Work(t)
	if got := endpoint.Requests()[3]; got.Header.Get("webhook-id") != "" {
		t.Errorf("after it was ended: %v", got.Header)
	}
}

// A subscription's own delays decide when the next attempt is due.
func TestOwnDelays(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, _ int) {
		w.WriteHeader(http.StatusInternalServerError)
	})
	h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
		s.Retry = subscription.Delays{2 * time.Hour, 72 * time.Hour}
	})
	h.Publish(t)
	h.Work(t)
	for _, want := range []time.Duration{2 * time.Hour, 72 * time.Hour} {
		failed := h.Newest(t)
		due := failed.NextAttemptAt.Sub(h.Clock.Now())
		if failed.State != delivery.StateRetrying || due < want || due > want*11/10 {
			t.Fatalf("after attempt %d the next is due in %s", failed.AttemptCount, due)
		}
		h.Clock.Move(due)
		if _, err := h.Deliveries.EnqueueDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		h.Work(t)
	}
	if ended := h.Newest(t); ended.State != delivery.StateFailed || ended.AttemptCount != 3 {
		t.Errorf("in the end %s after %d attempts", ended.State, ended.AttemptCount)
	}
}

// Options are part of a version: a comparison shows them and a restoration restores them.
func TestOptionsAreInVersions(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example/in", func(s *subscription.Settings) {
		s.Name, s.Standard = "  CRM ", true
		s.Retry = subscription.Delays{5 * time.Minute, 90 * time.Minute}
	})
	if got := subscribed.Label(); got != "CRM (hooks.example/in)" {
		t.Errorf("it is called %q", got)
	}
	name, retry, standard := "", subscription.Delays{}, false
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		changed, _, err := h.Subscriptions.Amend(ctx, tx, subscribed.UID, subscription.Patch{
			Name: &name, Retry: &retry, Standard: &standard,
		}, "admin")
		if changed.Label() != "hooks.example/in" || changed.Retry.Texts() != nil {
			t.Errorf("changed to %+v", changed.Options)
		}
		return err
	})
	diff, err := h.Subscriptions.CompareVersions(t.Context(), subscribed.UID, 1, 2)
	if err != nil || strings.Join(diff.Settings(), " ") != "name retry standard" ||
		diff.Changes[1].Before != "5m,1h30m" {
		t.Errorf("%+v, %v", diff, err)
	}
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		made, err := h.Subscriptions.Restore(ctx, tx, subscribed.UID,
			subscription.Choice{Version: 1}, "admin")
		if made.Subscription.Options != subscribed.Options {
			t.Errorf("restored %+v, want %+v", made.Subscription.Options, subscribed.Options)
		}
		return err
	})
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	for field, change := range map[string]func(s *subscription.Settings){
		"name":     func(s *subscription.Settings) { s.Name = strings.Repeat("ä", 101) },
		"retry":    func(s *subscription.Settings) { s.Retry[1] = time.Minute },
		"standard": func(s *subscription.Settings) { s.Standard, s.Auth = true, sender.AuthNone },
	} {
		settings := subscription.Settings{
			URL: "https://hooks.example/in", Auth: sender.AuthHMAC, Events: []string{"all"},
		}
		change(&settings)
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := h.Subscriptions.Subscribe(ctx, tx, h.Partner, settings, "admin")
			return err
		})
		if lending.ErrorCode(err) != lending.CodeValidation ||
			!strings.Contains(err.Error(), `"`+field+`"`) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for text, want := range map[string]string{
		"5m,2h": "5m 2h", "90s, 72h": "1m30s 72h", "1s,1500ms": "1s 1.5s", "1h30m,10m": "1h30m 10m",
		"5m": "", "5m,2h,3h": "", "soon,later": "", "0s,0s": "", "-5m,2h": "", "": "",
	} {
		delays, err := subscription.ParseDelays(text)
		if got := strings.Join(delays.Texts(), " "); got != want || (err != nil) != (want == "") {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
}
