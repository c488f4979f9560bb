package bulk

import (
	"testing"
	"time"

	"drawbridge/internal/webhook/bulk"
)

func TestRemainingIsAtLeastASecond(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]string{
		0:                      "about 1.0 s of sending left",
		400 * time.Millisecond: "about 1.0 s of sending left",
		90 * time.Second:       "about 1 min 30 s of sending left",
	} {
		running := Progress{
			Resend: bulk.Resend{State: bulk.StateRunning, Counts: bulk.Counts{Waiting: 1}}, Remaining: left,
		}
		if got := running.remaining(); got != want {
			t.Errorf("%s left reads %q, want %q", left, got, want)
		}
	}
}
