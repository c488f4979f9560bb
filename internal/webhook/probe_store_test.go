package webhook_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	good := newReceiver(t, nil)
	closed := httptest.NewTLSServer(http.NotFoundHandler())
	closed.Close()
	tests := []struct {
		name, url, step string
		verdict         webhook.CheckVerdict
		text            string
	}{
		{"good", good.URL, "certificate", webhook.CheckGood, "The certificate is valid until "},
		{"no https", "http://hooks.example.com/", "url", webhook.CheckRefused, "begin with https://"},
		{"private", "https://10.0.0.1/", "url", webhook.CheckRefused, "a private address"},
		{
			"no name", "https://nobody-has-this-name.invalid/", "name", webhook.CheckWarning,
			"deliveries fail until this is mended",
		},
		{"closed", closed.URL, "connection", webhook.CheckWarning, "The connection was refused"},
		{
			"other certificate", strings.Replace(good.URL, "127.0.0.1", "127.0.0.2", 1), "",
			webhook.CheckWarning, "",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			check := h.CheckURL(t.Context(), test.url)
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
	if requests := good.requests(); len(requests) != 0 {
		t.Errorf("checking sent %d requests", len(requests))
	}
}

func TestProbesAreMadeWhenDueAndKept(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	status := http.StatusOK
	end := newReceiver(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(status)
	})
	made, _ := h.subscribe(t, end.URL, nil)
	paused, _ := h.subscribe(t, end.URL+"/paused", nil)
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Pause(ctx, tx, paused.UID, "operator")
		return err
	})
	due := func() []webhook.ProbeRecord {
		t.Helper()
		found, err := h.ProbeDue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	due() // makes the plan, perhaps for later
	h.clock.move(59 * time.Minute)
	if early := due(); len(early) != 0 || len(end.requests()) != 0 {
		t.Errorf("probed within its first hour: %+v", early)
	}
	h.clock.move(7 * time.Minute)
	due()
	record, changes, err := h.LastProbe(t.Context(), made.UID)
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
	h.clock.move(73 * time.Minute)
	failed := due()
	if len(failed) != 1 || failed[0].Class != webhook.ClassHTTP3xx || failed[0].Failures != 1 ||
		failed[0].Location != "https://elsewhere.example/" {
		t.Fatalf("after a redirect: %+v", failed)
	}
	h.clock.move(6 * time.Minute)
	if failed = due(); len(failed) != 1 || failed[0].Failures != 2 {
		t.Fatalf("after 6 minutes more: %+v", failed)
	}
	if _, changes, err = h.LastProbe(t.Context(), made.UID); err != nil || len(changes) != 2 {
		t.Errorf("changes %v, error %v", changes, err)
	}
	if asked := end.requests(); len(asked) != 3 {
		t.Errorf("%d requests, want a probe each and none of the paused subscription", len(asked))
	}
}

func TestProbeNow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made, _ := h.subscribe(t, newReceiver(t, nil).URL, nil)
	record, err := h.ProbeNow(t.Context(), made.UID)
	if err != nil || record.Class != "" || record.Subscription != made.UID {
		t.Errorf("record %+v, error %v", record, err)
	}
	_, err = h.ProbeNow(t.Context(), h.partner)
	wantRefusal(t, err, lending.CodeNotFound)
}
