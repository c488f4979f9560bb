package postgres

import (
	"sync"
	"time"
)

const (
	// spareShare is how much longer than it took to read, less spareFree, something is
	// kept: what takes long may take a twentieth of the time, for whomever it is read.
	spareShare = 20
	// spareFree leaves out what is quick: below a tenth of a second it is read each time,
	// and so it is once after such a reading, since the first may be slow by chance.
	spareFree = 2 * time.Second
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

// Get returns what was kept of a key, or reads it. Errors are read's, and are not kept.
func (s *Spare[K, V]) Get(key K, read func() (V, error)) (V, error) {
	s.mu.Lock()
	found, known := s.kept[key]
	s.mu.Unlock()
	if known && time.Now().Before(found.until) {
		return found.value, nil
	}
	began := time.Now()
	value, err := read()
	rest := min(spareShare*time.Since(began)-spareFree, spareMost)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, key)
	if err != nil || rest <= 0 {
		return value, err
	}
	if s.kept == nil || len(s.kept) >= sparedKeys {
		s.kept = make(map[K]spared[V])
	}
	now := spared[V]{value: value}
	if known {
		now.until = time.Now().Add(rest)
	}
	s.kept[key] = now
	return value, nil
}
