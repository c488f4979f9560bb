package apilog

import (
	"sync"
	"time"

	"drawbridge/internal/network"
)

const (
	// samplesPerMinute is how many unauthenticated requests of an address are kept per minute.
	samplesPerMinute = 5
	// maxSampled bounds how many addresses are counted in a minute; requests of further addresses
	// are not kept.
	maxSampled = 10_000
)

// sample selects the unauthenticated requests that are kept. The zero value is ready for use.
type sample struct {
	mu     sync.Mutex
	minute time.Time
	taken  map[string]int
}

// takes reports whether a request from an address, as grouped by network.Of, is kept.
func (s *sample) takes(address string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The minute before counts as part of the newest; an older time means a clock was set back.
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
