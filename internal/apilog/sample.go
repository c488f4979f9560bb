package apilog

import (
	"net/netip"
	"sync"
	"time"
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
	taken  map[netip.Prefix]int
}

// takes tells whether a request from an address is kept. IPv6 addresses of one
// network of 64 bits, a single subscriber's, count as one.
func (s *sample) takes(address string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if minute := at.UTC().Truncate(time.Minute); !minute.Equal(s.minute) {
		s.minute, s.taken = minute, make(map[netip.Prefix]int)
	}
	var from netip.Prefix
	if ip, err := netip.ParseAddr(address); err == nil {
		ip = ip.Unmap().WithZone("")
		bits := ip.BitLen()
		if ip.Is6() {
			bits = 64
		}
		from, _ = ip.Prefix(bits) // the bits fit
	}
	taken, known := s.taken[from]
	if taken >= samplesPerMinute || !known && len(s.taken) >= maxSampled {
		return false
	}
	s.taken[from] = taken + 1
	return true
}
