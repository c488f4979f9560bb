package postgres

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// spareShare is how much longer than it took to read something is kept, or not looked for
	// again: what takes long may take a fiftieth of the time, for whomever it is read.
	spareShare = 50
	// spareFree is what is quick and read each time. So is what took longer once, since
	// that may be chance.
	spareFree = 50 * time.Millisecond
	// spareMost bounds how long something is kept, and sparedKeys of how much.
	spareMost  = 15 * time.Second
	sparedKeys = 200
)

// Spare keeps what was dear to read, such as a count that passes by all that was deleted since
// the oldest open transaction began, so that many who ask for it do not keep the database
// from everything else. Usually nothing is dear, and everybody gets what is there now. The zero
// value is ready; any number of callers may use it.
type Spare[K comparable, V any] struct {
	mu   sync.Mutex
	kept map[K]spared[V]
}

// spared is what was read, and until when it is good enough.
type spared[V any] struct {
	value V
	until time.Time
}

// Get returns what was kept of a key, or reads it. Who asks while somebody reads what was dear gets
// what was read before. Errors are read's, and are not kept.
func (s *Spare[K, V]) Get(key K, read func() (V, error)) (V, error) {
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
	if err != nil || took < spareFree {
		return value, err
	}
	if s.kept == nil || len(s.kept) >= sparedKeys {
		s.kept = make(map[K]spared[V])
	}
	now := spared[V]{value: value}
	if known {
		now.until = time.Now().Add(min(spareShare*took, spareMost))
	}
	s.kept[key] = now
	return value, nil
}

// look returns what was read last, whether that was dear, and whether it is to be used again.
func (s *Spare[K, V]) look(key K) (value V, known, kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, known := s.kept[key]
	if known && time.Now().Before(found.until) {
		return found.value, true, true
	}
	if known && !found.until.IsZero() {
		// Others need not read it too; a reader that hangs does not hold them up for long.
		s.kept[key] = spared[V]{found.value, time.Now().Add(spareMost)}
	}
	return found.value, known, false
}

// Pace keeps what is looked for again and again to a fiftieth of the time, where looks are dear.
// The zero value is ready, for one caller at a time.
type Pace struct{ last time.Duration }

// Rest is how long to rest after a look that took so long, nothing after a quick one. What took
// long once may have waited, as for a database that fails over: of two looks in a row the shorter
// counts.
func (p *Pace) Rest(took time.Duration) time.Duration {
	dear := min(p.last, took)
	p.last = took
	if dear < spareFree {
		return 0
	}
	return spareShare * dear
}

// lookEvery is the least time between two looks.
const lookEvery = time.Second

// Sparingly looks every second until ctx ends, and in a fiftieth of the time at most: beside an
// open transaction a look may pass by all that was there since it began. It logs that a look for
// what failed, and rests for as long as that took: it may be that the database is away, or that
// looking takes longer than it may.
func Sparingly(ctx context.Context, what string, look func(context.Context) error) {
	var pace Pace
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
		Pause(ctx, max(lookEvery, rest))
	}
}
