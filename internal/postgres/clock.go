package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// clockTolerance is how far this machine's clock may differ from the database's without being
// corrected. A query for the time that took longer than this is ignored.
const clockTolerance = time.Second

// clock is the time for users of a DB. It counts on the machine's monotonic clock from a moment at
// which the database was asked for its time, so that a step of the wall clock does not affect it,
// and follows the database where the two differ.
type clock struct {
	anchor atomic.Pointer[anchor]
}

// anchor is a moment by the machine's clock (local) and the time it stood for (at). at has no
// monotonic reading: the monotonic readings of two anchors would not show how far apart their times
// are.
type anchor struct {
	local, at time.Time
	corrected bool
}

// now returns the time: the machine's own until the first anchor is set.
func (c *clock) now() time.Time {
	from := c.anchor.Load()
	if from == nil {
		return time.Now()
	}
	return from.at.Add(time.Since(from.local))
}

// set makes a new anchor at a moment when the machine's clock was ahead of the database's by skew.
// Once corrected, the time stays corrected until the skew is below half the tolerance: a clock near
// the limit must not make the time jump back and forth.
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

// SyncClock compares the machine's clock with the database's, makes DB.Now as set up by Open follow
// the database if they differ by more than a second, and returns how far the machine's clock is
// ahead.
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

// Later renders the time of a change: now, but later than the last change's time also to the
// millisecond, which is what responses show. A transaction that waited for a lock began before the
// change that it waited for.
func Later(now, last string) string {
	return `greatest(` + now + `, date_trunc('milliseconds', ` + last + `) + interval '1 millisecond')`
}
