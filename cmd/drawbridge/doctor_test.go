package main

import (
	"testing"
	"time"
)

func TestClockIsJudged(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]finding{
		0: findingOK, -time.Second: findingOK, 3 * time.Second: findingWarning,
		-time.Minute: findingFailed,
	} {
		if got := examineClock(ahead); got.Finding != want || (want != findingOK) != (got.Remedy != "") {
			t.Errorf("%s ahead: %+v, want %s", ahead, got, want)
		}
	}
}
