package postgres

import (
	"testing"
	"time"
)

func TestClockFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	var c clock
	for _, step := range []struct {
		name string
		skew time.Duration
		// ahead is how far the result is ahead of the machine's clock.
		ahead time.Duration
	}{
		{"a little off", 900 * time.Millisecond, 0},
		{"an hour ahead", time.Hour, -time.Hour},
		{"nearly right after a correction", 700 * time.Millisecond, -700 * time.Millisecond},
		{"right again", 100 * time.Millisecond, 0},
		{"nearly right without one", 700 * time.Millisecond, 0},
		{"an hour behind", -time.Hour, time.Hour},
	} {
		local := time.Now()
		c.set(local, step.skew)
		got := c.now().Sub(local.Add(step.ahead))
		if elapsed := time.Since(local); got < 0 || got > elapsed {
			t.Errorf("%s: the time is %s off after %s", step.name, got, elapsed)
		}
		if now := c.now(); now != now.Round(0) {
			t.Errorf("%s: %s would be compared by the machine's clock", step.name, now)
		}
	}
}

// TestClockIgnoresSteps: the wall clock is not used after the anchor is set.
func TestClockIgnoresSteps(t *testing.T) {
	t.Parallel()
	var c clock
	if off := time.Until(c.now()).Abs(); off > time.Minute {
		t.Errorf("unasked, it is %s off", off)
	}
	stepped := time.Now().Add(-time.Hour).Round(0) // as if by a wall clock an hour ago
	local := time.Now()
	c.anchor.Store(&anchor{local: local, at: stepped})
	if passed := c.now().Sub(stepped); passed < 0 || passed > time.Since(local) {
		t.Errorf("%s have passed", passed)
	}
}
