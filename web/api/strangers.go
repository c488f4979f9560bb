package api

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"drawbridge/internal/lending"
	"drawbridge/internal/network"
)

const (
	// wrongBurst is how many requests with wrong credentials an address may make at
	// once, and wrongRate how many a second after that.
	wrongBurst = 60
	wrongRate  = 1
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
	mu    sync.Mutex
	wrong map[string]*rate.Limiter
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
	limiter, found := s.wrong[from]
	if !found {
		return 0
	}
	now := time.Now()
	if now.Sub(s.known[acquaintance{from, client}]) < acquainted {
		return 0
	}
	missing := 1 - limiter.TokensAt(now)
	return max(int(math.Ceil(missing/wrongRate)), 0)
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
		limiter, found := s.wrong[from]
		if !found {
			limiter = rate.NewLimiter(wrongRate, wrongBurst)
			s.wrong[from] = limiter
		}
		limiter.AllowN(now, 1)
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
	for from, limiter := range s.wrong {
		if limiter.TokensAt(now) >= wrongBurst {
			delete(s.wrong, from)
		}
	}
	if s.wrong == nil || len(s.wrong) >= maxAddresses {
		s.wrong = make(map[string]*rate.Limiter)
	}
}
