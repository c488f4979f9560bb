package ui

import (
	"strings"
	"testing"
	"time"

	"drawbridge/internal/webhook/delivery"
)

func TestOutcomeWord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		class  string
		want   string
	}{
		{0, "", "Under way"},
		{200, "", "HTTP 200"},
		{503, "http_5xx", "HTTP 503"},
		{404, "http_4xx", "HTTP 404"},
		{301, "http_3xx", "HTTP 301"},
		{0, "dns", "Name not found"},
		{0, "connect", "No connection"},
		{0, "tls", "TLS failed"},
		{0, "timeout", "Timed out"},
		{0, "blocked_address", "Address blocked"},
		{0, "protocol", "Broken answer"},
		{0, "unknown", "Outcome unknown"},
	}
	for _, test := range tests {
		if got := OutcomeWord(test.status, test.class); got != test.want {
			t.Errorf("OutcomeWord(%d, %q) = %q, want %q", test.status, test.class, got, test.want)
		}
	}
}

func TestPips(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	tests := []struct {
		name string
		row  DeliveryRow
		want string
	}{
		{
			"waiting for the first",
			DeliveryRow{State: delivery.StatePending, NextAttemptAt: &due},
			"calm,,",
		},
		{"one failed, one due", DeliveryRow{
			State: delivery.StateRetrying, AttemptCount: 1, LastErrorClass: new("tls"),
			NextAttemptAt: &due,
		}, "bad,calm,"},
		{"second succeeded", DeliveryRow{State: delivery.StateDelivered, AttemptCount: 2}, "bad,good,"},
		{"used up", DeliveryRow{
			State: delivery.StateFailed, AttemptCount: 3, LastErrorClass: new("http_5xx"),
		}, "bad,bad,bad"},
		{"unknown", DeliveryRow{
			State: delivery.StateFailed, AttemptCount: 3, LastErrorClass: new("unknown"),
		}, "odd,odd,odd"},
		{"cancelled", DeliveryRow{
			State: delivery.StateCancelled, AttemptCount: 1, LastErrorClass: new("dns"),
		}, "mute,,"},
	}
	for _, test := range tests {
		var got []string
		for _, pip := range pips(test.row) {
			got = append(got, strings.TrimPrefix(strings.TrimPrefix(pip.class, "pip"), " pip-"))
		}
		if joined := strings.Join(got, ","); joined != test.want {
			t.Errorf("%s: %q, want %q", test.name, joined, test.want)
		}
	}
}
