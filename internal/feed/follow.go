package feed

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

const (
	// MaxWait is the longest that a call may wait.
	MaxWait = 30 * time.Second
	// maxWaiting is how many calls of a process may wait at once.
	maxWaiting = 1000
	// Channel is where a publication is told, with the newest position.
	Channel = "drawbridge_feed"
	// glance is how often anyone who waits is looked after though nothing was told: a
	// notification may get lost with its connection.
	glance = time.Second
	// announced is how many entries are looked at together.
	announced = 1000
)

// Service reads the feed of a database and wakes those who wait.
type Service struct {
	DB *postgres.DB

	mu      sync.Mutex
	waiting map[*waiter]struct{}
	// stirred has a place for the news that somebody began to wait.
	stirred chan struct{}
	// released is closed when nobody may wait any more.
	released chan struct{}
}

// New returns a service over a database.
func New(db *postgres.DB) *Service {
	return &Service{
		DB: db, waiting: map[*waiter]struct{}{},
		stirred: make(chan struct{}, 1), released: make(chan struct{}),
	}
}

// waiter is a call that waits. It holds no connection.
type waiter struct {
	query Query
	// seen is up to where nothing is for the call.
	seen  Cursor
	woken chan struct{}
}

func (w *waiter) wants(merchant uuid.UUID, kind lending.EventKind) bool {
	if len(w.query.Kinds) > 0 && !slices.Contains(w.query.Kinds, kind) {
		return false
	}
	_, found := slices.BinarySearchFunc(w.query.MerchantUIDs, merchant,
		func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	return found
}

// Follow is Read, held back until there is an event for the caller, but no longer than
// wait. It needs Run. A call that waited is answered by the primary, which knows what woke it.
// Each time it begins to wait it says so by resting.
func (s *Service) Follow(
	ctx context.Context, query Query, wait time.Duration, resting func(),
) (Page, error) {
	began := time.Now()
	timeout := time.After(wait)
	for {
		page, err := s.Read(ctx, query)
		page.Waited = time.Since(began)
		if err != nil || len(page.Events) > 0 || page.More || wait == 0 {
			return page, err
		}
		w := s.enter(query, page.head)
		if w == nil {
			return page, nil
		}
		resting()
		var woken bool
		select {
		case <-w.woken:
			woken = true
		case <-timeout:
		case <-s.released:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		page.Next = max(page.Next, s.leave(w))
		if !woken {
			page.Waited = time.Since(began)
			return page, err
		}
		query.After, ctx = &page.Next, postgres.Current(ctx)
	}
}

// enter begins to wait; nil if there is no room.
func (s *Service) enter(query Query, seen Cursor) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= maxWaiting {
		return nil
	}
	w := &waiter{query: query, seen: seen, woken: make(chan struct{})}
	s.waiting[w] = struct{}{}
	// Something may have been published since the call looked.
	select {
	case s.stirred <- struct{}{}:
	default:
	}
	return w
}

// leave ends a wait and returns up to where nothing was for the call.
func (s *Service) leave(w *waiter) Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, w)
	return w.seen
}

// Waiting is how many calls wait.
func (s *Service) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// Release has every call answered that waits, and those to come at once.
func (s *Service) Release() { close(s.released) }

// Run wakes those who wait until ctx ends. It listens from the first of them on, on
// one connection for all.
func (s *Service) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.stirred:
	}
	published := s.DB.Listen(ctx, Channel)
	looking := time.NewTicker(glance)
	defer looking.Stop()
	for {
		if err := s.announce(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "looking for new events in the feed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-published:
		case <-s.stirred:
		case <-looking.C:
		}
	}
}

type announcement struct {
	Position    Cursor            `db:"position"`
	MerchantUID uuid.UUID         `db:"merchant_uid"`
	Kind        lending.EventKind `db:"kind"`
}

func (s *Service) announce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.DB.Timeout())
	defer cancel()
	for {
		from, waited := s.behind()
		if !waited {
			return nil
		}
		var entries []announcement
		err := s.DB.SelectContext(ctx, &entries, `
			SELECT position, merchant_uid, kind
			  FROM feed
			 WHERE position > $1
			 ORDER BY position
			 LIMIT $2`, from, announced)
		if err != nil || len(entries) == 0 {
			return err
		}
		s.wake(from, entries)
		if len(entries) < announced {
			return nil
		}
	}
}

// wake wakes those who wait for one of the entries, which are all that follow a position;
// the others have seen the feed up to the last.
func (s *Service) wake(from Cursor, entries []announcement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiting {
		if w.seen < from {
			continue // began to wait since: what follows its own place is looked for next
		}
		if slices.ContainsFunc(entries, func(e announcement) bool {
			return e.Position > w.seen && w.wants(e.MerchantUID, e.Kind)
		}) {
			close(w.woken)
			delete(s.waiting, w)
			continue
		}
		w.seen = max(w.seen, entries[len(entries)-1].Position)
	}
}

// behind is up to where everybody who waits has seen the feed, false if nobody waits.
func (s *Service) behind() (least Cursor, waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiting {
		if !waited || w.seen < least {
			least, waited = w.seen, true
		}
	}
	return least, waited
}
