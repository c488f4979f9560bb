package api

import (
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/network"
)

const (
	// wrongBurst is how many requests with wrong credentials an address may make at once; after
	// that it may make one in each wrongPause. The bound is there for what they cost, since nobody
	// guesses a secret of 256 bits; a partner's test suite stays below it.
	wrongBurst = 600
	wrongPause = 100 * time.Millisecond
	// knownFor is for how long credentials that were let in from an address are not
	// bound by what others do there.
	knownFor = time.Hour
	// maxAddresses bounds what is known of addresses and of credentials at them.
	maxAddresses = 10_000
)

// credentialLimit bounds what an address may try with wrong credentials: beyond it nothing
// is looked up any more. Credentials that were let in from the same address, as that of a
// company, are let in as before; the same id with another secret is answered like an id that
// does not exist, and so does not tell that it is in use there.
//
// The bound is each process's own, and forgotten when it ends.
type credentialLimit struct {
	mu sync.Mutex
	// wrong has for each address when it may try as much as one that was never seen:
	// a wrong request puts that off by wrongPause, to at most wrongBurst of them.
	wrong map[string]time.Time
	known map[credentialsAt]time.Time
}

// credentialsAt are an id and its secret at an address.
type credentialsAt struct {
	address string
	client  string
	secret  [sha256.Size]byte
}

// newCredentialsAt returns what is presented at an address, which counts as that of its network.
func newCredentialsAt(address, client, secret string) credentialsAt {
	return credentialsAt{network.Of(address), client, sha256.Sum256([]byte(secret))}
}

// wait is in how many seconds credentials may be tried again, 0 for now.
func (l *credentialLimit) wait(presented credentialsAt) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.known[presented]) < knownFor {
		return 0
	}
	next := l.wrong[presented.address].Add(-(wrongBurst - 1) * wrongPause)
	return max(int((next.Sub(now)+time.Second-1)/time.Second), 0)
}

// learn takes note of how credentials were received.
func (l *credentialLimit) learn(presented credentialsAt, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from, now := presented.address, time.Now()
	switch lending.ErrorCode(err) {
	case lending.CodeUnauthorized:
		delete(l.known, presented) // such as a secret that was revoked
		if l.wrong == nil || len(l.wrong) >= maxAddresses {
			// Those that may try as much as one that was never seen make room, and if there are
			// none all do.
			maps.DeleteFunc(l.wrong, func(_ string, full time.Time) bool { return !full.After(now) })
			if l.wrong == nil || len(l.wrong) >= maxAddresses {
				l.wrong = make(map[string]time.Time)
			}
		}
		full := l.wrong[from]
		if full.Before(now) {
			full = now
		}
		if full = full.Add(wrongPause); full.Sub(now) <= wrongBurst*wrongPause {
			l.wrong[from] = full
		}
	case "":
		if l.known == nil || len(l.known) >= maxAddresses {
			l.known = make(map[credentialsAt]time.Time)
		}
		l.known[presented] = now
	default: // it says nothing about the credentials
	}
}
