package health_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	good := webhooktest.NewReceiver(t, nil)
	closed := httptest.NewTLSServer(http.NotFoundHandler())
	closed.Close()
	tests := []struct {
		name, url, step string
		verdict         subscription.CheckVerdict
		text            string
	}{
		{"good", good.URL, "certificate", subscription.CheckGood, "The certificate is valid until "},
		{
			"no https", "http://hooks.example.com/", "url", subscription.CheckRefused,
			"begin with https://",
		},
		{"private", "https://10.0.0.1/", "url", subscription.CheckRefused, "a private address"},
		{
			"no name", "https://nobody-has-this-name.invalid/", "name", subscription.CheckWarning,
			"deliveries fail until this is fixed",
		},
		{"closed", closed.URL, "connection", subscription.CheckWarning, "The connection was refused"},
		{
			"other certificate", strings.Replace(good.URL, "127.0.0.1", "127.0.0.2", 1), "",
			subscription.CheckWarning, "",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			check := h.Subscriptions.CheckURL(t.Context(), test.url)
			if check.Verdict != test.verdict || len(check.Steps) != 5 {
				t.Errorf("verdict %q, steps %+v", check.Verdict, check.Steps)
			}
			for _, step := range check.Steps {
				if step.Name == test.step &&
					(step.Verdict != test.verdict || !strings.Contains(step.Text, test.text)) {
					t.Errorf("step %+v, want %q", step, test.text)
				}
			}
		})
	}
	if requests := good.Requests(); len(requests) != 0 {
		t.Errorf("checking sent %d requests", len(requests))
	}
}

func TestProbesAreMadeWhenDueAndKept(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	status := http.StatusOK
	end := webhooktest.NewReceiver(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(status)
	})
	made, _ := h.Subscribe(t, end.URL, nil)
	paused, _ := h.Subscribe(t, end.URL+"/paused", nil)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Subscriptions.Pause(ctx, tx, paused.UID, "operator")
		return err
	})
	due := func() []health.ProbeRecord {
		t.Helper()
		found, err := h.Health.ProbeDue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	due() // schedules the probe, perhaps for later
	h.Clock.Move(59 * time.Minute)
	if early := due(); len(early) != 0 || len(end.Requests()) != 0 {
		t.Errorf("probed within its first hour: %+v", early)
	}
	h.Clock.Move(7 * time.Minute)
	due()
	record, changes, err := h.Health.LastProbe(t.Context(), made.UID)
	if err != nil || record.At.IsZero() || record.Class != "" || record.Expires.IsZero() ||
		record.Status != http.StatusOK || record.TLSVersion == "" || len(changes) != 1 {
		t.Fatalf("record %+v, changes %v, error %v", record, changes, err)
	}
	if wait := record.NextAt.Sub(record.At); wait < time.Hour || wait > 72*time.Minute {
		t.Errorf("the next probe is in %s", wait)
	}
	if again := due(); len(again) != 0 {
		t.Errorf("probed again at once: %+v", again)
	}
	status = http.StatusMovedPermanently
	h.Clock.Move(73 * time.Minute)
	failed := due()
	if len(failed) != 1 || failed[0].Class != sender.ClassHTTP3xx || failed[0].Failures != 1 ||
		failed[0].Location != "https://elsewhere.example/" {
		t.Fatalf("after a redirect: %+v", failed)
	}
	h.Clock.Move(6 * time.Minute)
	if failed = due(); len(failed) != 1 || failed[0].Failures != 2 {
		t.Fatalf("after 6 minutes more: %+v", failed)
	}
	if _, changes, err = h.Health.LastProbe(t.Context(), made.UID); err != nil || len(changes) != 2 {
		t.Errorf("changes %v, error %v", changes, err)
	}
	if asked := end.Requests(); len(asked) != 3 {
		t.Errorf("%d requests, want a probe each and none of the paused subscription", len(asked))
	}
	// Another URL is probed soon, and has no failures yet.
	h.Amend(t, made.UID, subscription.Patch{URL: new(end.URL + "/moved")})
	h.Clock.Move(6 * time.Minute)
	if failed = due(); len(failed) != 1 || failed[0].Failures != 1 ||
		failed[0].URL != end.URL+"/moved" {
		t.Errorf("at another URL: %+v", failed)
	}
}

func TestProbeNow(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := h.Subscribe(t, webhooktest.NewReceiver(t, nil).URL, nil)
	record, err := h.Health.ProbeNow(t.Context(), made.UID)
	if err != nil || record.Class != "" || record.Subscription != made.UID {
		t.Errorf("record %+v, error %v", record, err)
	}
	_, err = h.Health.ProbeNow(t.Context(), h.Partner)
	webhooktest.WantRefusal(t, err, lending.CodeNotFound)
}
