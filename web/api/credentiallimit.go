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
	// wrongBurst is how many requests with wrong credentials an address may make at once;
	// after that it may make one per wrongPause. The limit bounds their cost, since nobody
	// guesses a secret of 256 bits. It is higher than what a partner's test suite needs.
	wrongBurst = 600
	wrongPause = 100 * time.Millisecond
	// knownFor is for how long credentials that were accepted from an address are exempt from
	// its limit.
	knownFor = time.Hour
	// maxAddresses bounds the entries of each map of credentialLimit.
	maxAddresses = 10_000
)

// credentialLimit bounds the requests with wrong credentials per address: beyond the bound,
// credentials are refused without a query. Credentials that were accepted from the same address
// before, such as a company's, are still accepted. The same client id with another secret is
// answered like an unknown id, so the answer does not reveal that the id is in use there.
//
// Each process has its own limit and loses it when it ends.
type credentialLimit struct {
	mu sync.Mutex
	// wrong maps an address to the time when its full allowance is restored. Each wrong
	// request moves that time by wrongPause, to at most wrongBurst times wrongPause ahead.
	wrong map[string]time.Time
	known map[credentialsAt]time.Time
}

// credentialsAt are a client id and a secret presented from an address.
type credentialsAt struct {
	address string
	client  string
	secret  [sha256.Size]byte
}

// newCredentialsAt returns the credentials with the address reduced to its network.
func newCredentialsAt(address, client, secret string) credentialsAt {
	return credentialsAt{network.Of(address), client, sha256.Sum256([]byte(secret))}
}

// wait returns in how many seconds the credentials may be tried again, 0 for now.
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

// learn records whether the credentials were accepted.
func (l *credentialLimit) learn(presented credentialsAt, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from, now := presented.address, time.Now()
	switch lending.ErrorCode(err) {
	case lending.CodeUnauthorized:
		delete(l.known, presented) // such as a secret that was revoked
		if l.wrong == nil || len(l.wrong) >= maxAddresses {
			// Remove the addresses that have their full allowance back or, if there are none, all
			// addresses.
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
	default: // the error says nothing about the credentials
	}
}
