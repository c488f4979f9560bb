package doctor

import (
	"testing"
	"time"
)

func TestClockIsJudged(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]Finding{
		0: OK, -time.Second: OK, 3 * time.Second: Warning,
		-time.Minute: Failed,
	} {
		if got := examineClock(ahead); got.Finding != want || (want != OK) != (got.Remedy != "") {
			t.Errorf("%s ahead: %+v, want %s", ahead, got, want)
		}
	}
}
