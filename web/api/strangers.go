package api

import (
	"sync"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/network"
)

const (
	// wrongBurst is how many requests with wrong credentials an address may make at
	// once; after that it may make one in each wrongPause.
	wrongBurst = 60
	wrongPause = time.Second
	// acquainted is for how long a client that was let in from an address is not
	// bound by what others do there.
	acquainted = time.Hour
	// maxAddresses bounds what is known of addresses and of clients at them.
	maxAddresses = 10_000
)

// strangers bound what an address may try with wrong credentials: beyond it nothing
// is looked up any more. Clients that were let in from the same address, as that
// of a company, stay welcome.
//
// The bound is each process's own, and forgotten when it ends.
type strangers struct {
	mu sync.Mutex
	// wrong has for each address when it may try as much as one that was never seen:
	// a wrong request puts that off by wrongPause, to at most wrongBurst of them.
	wrong map[string]time.Time
	known map[acquaintance]time.Time
}

// acquaintance is a client at an address.
type acquaintance struct {
	address string
	client  string
}

// wait is in how many seconds a client at an address may try again, 0 for now.
func (s *strangers) wait(address, client string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := network.Of(address)
	now := time.Now()
	if now.Sub(s.known[acquaintance{from, client}]) < acquainted {
		return 0
	}
	next := s.wrong[from].Add(-(wrongBurst - 1) * wrongPause)
	return max(int((next.Sub(now)+time.Second-1)/time.Second), 0)
}

// learn takes note of how credentials were received.
func (s *strangers) learn(address, client string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, now := network.Of(address), time.Now()
	switch lending.ErrorCode(err) {
	case lending.CodeUnauthorized:
		if s.wrong == nil || len(s.wrong) >= maxAddresses {
			s.forgetCalm(now)
		}
		calm := s.wrong[from]
		if calm.Before(now) {
			calm = now
		}
		if calm = calm.Add(wrongPause); calm.Sub(now) <= wrongBurst*wrongPause {
			s.wrong[from] = calm
		}
	case "":
		if s.known == nil || len(s.known) >= maxAddresses {
			s.known = make(map[acquaintance]time.Time)
		}
		s.known[acquaintance{from, client}] = now
	default: // it says nothing about the credentials
	}
}

// forgetCalm makes room by forgetting the addresses that may try as much as one that
// was never seen, and all if there are none of those.
func (s *strangers) forgetCalm(now time.Time) {
	for from, calm := range s.wrong {
		if !calm.After(now) {
			delete(s.wrong, from)
		}
	}
	if s.wrong == nil || len(s.wrong) >= maxAddresses {
		s.wrong = make(map[string]time.Time)
	}
}
