package ui

import (
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
		row  delivery.Delivery
		want string
	}{
		{
			"waiting for the first",
			delivery.Delivery{State: delivery.StatePending, NextAttemptAt: &due},
			" calm1",
		},
		{"one failed, one due", delivery.Delivery{
			State: delivery.StateRetrying, AttemptCount: 1, LastErrorClass: new("tls"),
			NextAttemptAt: &due,
		}, " bad1 calm2"},
		{
			"second succeeded",
			delivery.Delivery{State: delivery.StateDelivered, AttemptCount: 2},
			" bad1 good2",
		},
		{"used up", delivery.Delivery{
			State: delivery.StateFailed, AttemptCount: 3, LastErrorClass: new("http_5xx"),
		}, " bad1 bad2 bad3"},
		{"unknown", delivery.Delivery{
			State: delivery.StateFailed, AttemptCount: 3, LastErrorClass: new("unknown"),
		}, " odd1 odd2 odd3"},
		{"cancelled", delivery.Delivery{
			State: delivery.StateCancelled, AttemptCount: 1, LastErrorClass: new("dns"),
		}, " mute1"},
	}
	for _, test := range tests {
		if got := pips(test.row); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
