package operator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alexedwards/argon2id"

	"drawbridge/internal/lending"
)

const (
	// hashSlots is how many hashes are computed concurrently, each in its own memory.
	hashSlots = 2
	// hashQueue is how many may wait for a slot, and hashTimeout is for how long.
	hashQueue   = 256
	hashTimeout = 10 * time.Second
	// memoryReturn is how long after a hash the memory of all hashes until then is returned to the
	// system. Go would keep it for minutes.
	memoryReturn = 5 * time.Second
	// minReturned is how many KiB a hash must take for that, since returning memory runs a full
	// garbage collection.
	minReturned = 1024
)

// standard is the hasher of services without their own. OWASP's 19 MiB option for Argon2id takes
// about a twentieth of a second, a cost that only people who sign in pay.
var standard = NewHasher(argon2id.Params{
	Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32,
})

// Hasher makes and checks password hashes, a few at a time. Without a bound, concurrent sign-ins
// could use up the machine's memory.
type Hasher struct {
	params argon2id.Params
	slots  chan struct{}
	queue  chan struct{}
	// all admits one caller at a time to take every slot, since two could deadlock.
	all     chan struct{}
	timeout time.Duration
	// dummy is the hash that an unknown address is checked against, so that the check takes as long
	// as for a known one.
	dummy func() (string, error)
	// returning is set while a return of memory is scheduled.
	returning atomic.Bool
}

// NewHasher returns a hasher whose new hashes have these parameters.
func NewHasher(params argon2id.Params) *Hasher {
	return &Hasher{
		params: params, timeout: hashTimeout,
		slots: make(chan struct{}, hashSlots), queue: make(chan struct{}, hashQueue),
		all: make(chan struct{}, 1),
		dummy: sync.OnceValues(func() (string, error) {
			return argon2id.CreateHash("no account has this password", &params)
		}),
	}
}

// hasher returns the service's own hasher, or that of the process.
func (s *Service) hasher() *Hasher {
	if s.Passwords == nil {
		return standard
	}
	return s.Passwords
}

// hash returns the hash of a password. Error: UNAVAILABLE if too many are waiting.
func (h *Hasher) hash(ctx context.Context, password string) (string, error) {
	leave, err := h.enter(ctx, false)
	if err != nil {
		return "", err
	}
	defer leave()
	hash, err := argon2id.CreateHash(password, &h.params)
	if err != nil {
		return "", fmt.Errorf("hashing a password: %w", err)
	}
	return hash, nil
}

// check reports whether a password matches a hash; no password matches the empty one. If the
// hash has other parameters than new ones, it also returns a hash to replace it. Error:
// UNAVAILABLE if too many are waiting.
func (h *Hasher) check(
	ctx context.Context, password, hash string,
) (matches bool, renewed string, err error) {
	if hash == "" {
		if hash, err = h.dummy(); err != nil {
			return false, "", fmt.Errorf("hashing a password: %w", err)
		}
	}
	params, _, _, err := argon2id.DecodeHash(hash)
	if err != nil {
		return false, "", fmt.Errorf("reading the hash of a password: %w", err)
	}
	leave, err := h.enter(ctx, params.Memory > h.params.Memory)
	if err != nil {
		return false, "", err
	}
	defer leave()
	matches, err = argon2id.ComparePasswordAndHash(password, hash)
	if err == nil && matches && *params != h.params {
		renewed, err = argon2id.CreateHash(password, &h.params)
	}
	if err != nil {
		return false, "", fmt.Errorf("checking a password: %w", err)
	}
	return matches, renewed, nil
}

// enter waits for a slot, or for all of them if the hash takes more memory than a new one. leave
// releases what was taken.
func (h *Hasher) enter(ctx context.Context, whole bool) (leave func(), err error) {
	select {
	case h.queue <- struct{}{}:
		defer func() { <-h.queue }()
	default:
		return nil, errBusy(errors.New("the queue is full"))
	}
	waiting, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	wanted := []chan struct{}{h.slots}
	if whole {
		wanted = []chan struct{}{h.all}
		for range cap(h.slots) {
			wanted = append(wanted, h.slots)
		}
	}
	taken := 0
	leave = func() {
		for _, place := range wanted[:taken] {
			<-place
		}
		// The memory is returned to the system a little later, for all hashes until then at once.
		if h.params.Memory >= minReturned && h.returning.CompareAndSwap(false, true) {
			time.AfterFunc(memoryReturn, func() {
				h.returning.Store(false) // before freeing: a hash that ends meanwhile schedules another return
				debug.FreeOSMemory()
			})
		}
	}
	for _, place := range wanted {
		select {
		case place <- struct{}{}:
			taken++
		case <-waiting.Done():
			leave()
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, errBusy(waiting.Err())
		}
	}
	return leave, nil
}

// errBusy refuses a sign-in because the process is at capacity.
func errBusy(cause error) error {
	return lending.NewError(lending.CodeUnavailable,
		"Too many people are signing in. Wait a few seconds and try again.").
		WithCause(cause)
}
