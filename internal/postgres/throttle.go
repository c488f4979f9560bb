package postgres

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// throttleRatio is the ratio of a pause to the duration of the read before it: what takes long may
	// take a fiftieth of the time, whoever it is read for.
	throttleRatio = 50
	// cheapRead is below which duration a read is cheap and not limited. Nor is a read that took
	// longer only once, since that may be chance.
	cheapRead = 50 * time.Millisecond
	// maxCached bounds how long a value is kept, and maxCachedKeys how many are.
	maxCached     = 15 * time.Second
	maxCachedKeys = 200
)

// ThrottledCache caches values that are expensive to read, such as a count that must skip all rows
// deleted since the oldest open transaction began, so that many callers do not keep the database
// from everything else. Usually reading is cheap, and every caller gets the current value. The zero
// value is ready; any number of callers may use it.
type ThrottledCache[K comparable, V any] struct {
	mu   sync.Mutex
	kept map[K]cachedValue[V]
}

// cachedValue is a value and until when it is good enough.
type cachedValue[V any] struct {
	value V
	until time.Time
}

// Get returns the kept value of a key, or reads it. While one caller reads an expensive value, the
// others get the previous one. Errors are those of read, and are not kept.
func (s *ThrottledCache[K, V]) Get(key K, read func() (V, error)) (V, error) {
	found, known, kept := s.look(key)
	if kept {
		return found, nil
	}
	began := time.Now()
	value, err := read()
	took := time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
	if err != nil || took < cheapRead {
		return value, err
	}
	if s.kept == nil || len(s.kept) >= maxCachedKeys {
		s.kept = make(map[K]cachedValue[V])
	}
	now := cachedValue[V]{value: value}
	if known {
		now.until = time.Now().Add(min(throttleRatio*took, maxCached))
	}
	s.kept[key] = now
	return value, nil
}

// look returns the last value, whether reading it was expensive, and whether it may be used again.
func (s *ThrottledCache[K, V]) look(key K) (value V, known, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, known := s.kept[key]
	if known && time.Now().Before(found.until) {
		return found.value, true, true
	}
	if known && !found.until.IsZero() {
		// The others use the old value meanwhile, but no longer than maxCached if this reader hangs.
		s.kept[key] = cachedValue[V]{found.value, time.Now().Add(maxCached)}
	}
	return found.value, known, false
}

// Throttle limits an expensive scan that is repeated again and again to a fiftieth of the time. The
// zero value is ready, for one caller at a time.
type Throttle struct{ last time.Duration }

// Rest returns how long to pause after a scan of that duration, zero after a quick one. A single
// slow scan may have been waiting, for example for a failover of the database, so the shorter of
// two scans in a row counts.
func (p *Throttle) Rest(took time.Duration) time.Duration {
	dear := min(p.last, took)
	p.last = took
	if dear < cheapRead {
		return 0
	}
	return throttleRatio * dear
}

// pollInterval is the shortest pause between two scans.
const pollInterval = time.Second

// PollThrottled calls look every second until ctx ends, but for at most a fiftieth of the time:
// while a transaction is open, a scan may have to skip all rows deleted since it began. When look
// fails, it logs what it was looking for and rests for as long as look took: the database may be
// away, or the scan may take longer than it is allowed.
func PollThrottled(ctx context.Context, what string, look func(context.Context) error) {
	var pace Throttle
	for ctx.Err() == nil {
		began := time.Now()
		err := look(ctx)
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "looking for what waits", "what", what, "error", err)
		}
		rest := time.Since(began)
		if err == nil {
			rest = pace.Rest(rest)
		}
		Pause(ctx, max(pollInterval, rest))
	}
}
