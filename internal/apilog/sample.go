package apilog

import (
	"sync"
	"time"

	"drawbridge/internal/network"
)

const (
	// samplesPerMinute is how many unauthenticated requests of an address are kept
	// in a minute.
	samplesPerMinute = 5
	// maxSampled bounds how many addresses are told apart in a minute; of further
	// ones nothing is kept.
	maxSampled = 10_000
)

// sample chooses which unauthenticated requests are kept. The zero value is ready
// for use.
type sample struct {
	mu     sync.Mutex
	minute time.Time
	taken  map[string]int
}

// takes tells whether a request from an address, as network.Of counts it, is kept.
func (s *sample) takes(address string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// One that began a minute before the newest counts with that; an older time is another clock's.
	minute := at.UTC().Truncate(time.Minute)
	if minute.After(s.minute) || minute.Before(s.minute.Add(-time.Minute)) {
		s.minute, s.taken = minute, make(map[string]int)
	}
	from := network.Of(address)
	taken, known := s.taken[from]
	if taken >= samplesPerMinute || !known && len(s.taken) >= maxSampled {
		return false
	}
	s.taken[from] = taken + 1
	return true
}
