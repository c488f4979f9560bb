package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// clockTolerance is how far this machine's clock may be from the database's
// without being corrected; a time that took longer to ask for says nothing.
const clockTolerance = time.Second

// clock is the time of those who use a DB. It runs on the machine's monotonic
// clock from a moment that the database was asked about, so that a step of the
// wall clock does not reach it, and follows the database where the two differ.
type clock struct {
	anchor atomic.Pointer[anchor]
}

// anchor is a moment by the machine's clock and what the time was then. at has no
// reading of the monotonic clock: those of two anchors would not tell how far
// apart their times are.
type anchor struct {
	local, at time.Time
	corrected bool
}

// now is the time, the machine's own as long as nothing was asked.
func (c *clock) now() time.Time {
	from := c.anchor.Load()
	if from == nil {
		return time.Now()
	}
	return from.at.Add(time.Since(from.local))
}

// set starts over at a moment when the machine's clock was ahead of the
// database's by skew. What was corrected stays so down to half the tolerance:
// a clock at its edge must not make the time jump back and forth.
func (c *clock) set(local time.Time, skew time.Duration) {
	limit := clockTolerance
	if from := c.anchor.Load(); from != nil && from.corrected {
		limit /= 2
	}
	next := &anchor{local: local, at: local.Round(0), corrected: skew.Abs() > limit}
	if next.corrected {
		next.at = next.at.Add(-skew)
	}
	c.anchor.Store(next)
}

// SyncClock compares the machine's clock with the database's, follows the latter
// with what Open gave to Now if they differ by more than a second, and returns
// how far the machine's is ahead.
func (db *DB) SyncClock(ctx context.Context) (time.Duration, error) {
	var theirs time.Time
	before := time.Now()
	if err := db.GetContext(ctx, &theirs, `SELECT clock_timestamp()`); err != nil {
		return 0, fmt.Errorf("asking for the database's time: %w", err)
	}
	took := time.Since(before)
	halfway := before.Add(took / 2)
	skew := halfway.Sub(theirs)
	if took <= clockTolerance || db.clock.anchor.Load() == nil {
		db.clock.set(halfway, skew)
	}
	return skew, nil
}

// Later renders the time of a change that gets the time now, but one that is later than the last
// change's also to the millisecond, as answers show it: who waited for a lock began before the
// change that it waited for.
func Later(now, last string) string {
	return `greatest(` + now + `, date_trunc('milliseconds', ` + last + `) + interval '1 millisecond')`
}
