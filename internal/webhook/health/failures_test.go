package health_test

import (
	"testing"
	"time"

	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/webhooktest"
)

// Failures in a period are split by endpoint and by error: the most frequent parts
// separately, the rest together, each hour in its step.
func TestFailuresAreSplit(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := h.Subscribe(t, "https://hooks.partner.example/ledger", nil)
	now := h.Clock.Now().UTC().Truncate(time.Hour)
	h.Exec(t, `
		INSERT INTO subscription_errors (subscription_uid, hour, error_class, http_status, attempts,
		                                 first_seen, last_seen, error)
		SELECT $1, $2::timestamptz - ago * interval '1 hour', 'http_5xx', 500 + kind, kind, now(),
		       now(), ''
		  FROM generate_series(1, 6) AS kind, unnest(ARRAY[0, 7, 30]) AS ago`, made.UID, now)
	split := func(by health.Split) []health.FailurePart {
		t.Helper()
		parts, err := h.Health.Failures(t.Context(), now.Add(-12*time.Hour), now.Add(time.Minute),
			6*time.Hour, by)
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	total := func(part health.FailurePart) (sum int) {
		for _, count := range part.Steps {
			sum += count
		}
		return sum
	}
	byEndpoint := split(health.ByEndpoint)
	if len(byEndpoint) != 1 || byEndpoint[0].Endpoint.URL != made.URL || total(byEndpoint[0]) != 42 {
		t.Errorf("by endpoint: %+v, want 42 attempts at one", byEndpoint)
	}
	byError := split(health.ByError)
	if len(byError) != 5 {
		t.Fatalf("by error: %+v, want four and the rest", byError)
	}
	for i, want := range []struct{ status, attempts int }{
		{506, 12}, {505, 10}, {504, 8}, {503, 6}, {0, 6},
	} {
		if byError[i].Status != want.status || total(byError[i]) != want.attempts {
			t.Errorf("part %d is %+v, want %d attempts with %d", i, byError[i], want.attempts, want.status)
		}
	}
}
