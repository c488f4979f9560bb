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
	// MaxWait is the longest that a request may wait.
	MaxWait = 30 * time.Second
	// maxWaiting is how many requests of a process may wait at once.
	maxWaiting = 1000
	// Channel notifies of a publication, with the newest position.
	Channel = "drawbridge_feed"
	// pollInterval is how often the feed is read for waiting requests without a notification: one
	// may get lost with its connection.
	pollInterval = time.Second
	// announceBatch is how many entries are read at a time.
	announceBatch = 1000
)

// Service reads the feed of a database and wakes waiting requests.
type Service struct {
	DB *postgres.DB

	mu      sync.Mutex
	waiting map[*waiter]struct{}
	// waiterAdded signals that a request began to wait.
	waiterAdded chan struct{}
	// released is closed when no request may wait any more.
	released chan struct{}
}

// New returns a service over a database.
func New(db *postgres.DB) *Service {
	return &Service{
		DB: db, waiting: map[*waiter]struct{}{},
		waiterAdded: make(chan struct{}, 1), released: make(chan struct{}),
	}
}

// waiter is a request that waits. It holds no connection.
type waiter struct {
	query Query
	// seen is the position up to which there is no event for the request.
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

// Follow is Read, but waits until there is an event for the caller, for at most wait. It
// needs Run. A request that was woken is answered by the primary, which has the event.
// Follow calls resting each time it begins to wait.
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

// enter registers a request to wait; nil if too many wait.
func (s *Service) enter(query Query, seen Cursor) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) >= maxWaiting {
		return nil
	}
	w := &waiter{query: query, seen: seen, woken: make(chan struct{})}
	s.waiting[w] = struct{}{}
	// An event may have been published since the request read the feed.
	select {
	case s.waiterAdded <- struct{}{}:
	default:
	}
	return w
}

// leave ends a wait and returns the position up to which there was no event for the request.
func (s *Service) leave(w *waiter) Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, w)
	return w.seen
}

// Waiting returns how many requests wait.
func (s *Service) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// Release answers every waiting request, and later ones at once.
func (s *Service) Release() { close(s.released) }

// Run wakes waiting requests until ctx ends. It begins to listen when the first one
// waits, on one connection for all.
func (s *Service) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.waiterAdded:
	}
	published := s.DB.Listen(ctx, Channel)
	looking := time.NewTicker(pollInterval)
	defer looking.Stop()
	for {
		if err := s.announce(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "looking for new events in the feed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-published:
		case <-s.waiterAdded:
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
		from, waited := s.leastSeen()
		if !waited {
			return nil
		}
		var entries []announcement
		err := s.DB.SelectContext(ctx, &entries, `
			SELECT position, merchant_uid, kind
			  FROM feed
			 WHERE position > $1
			 ORDER BY position
			 LIMIT $2`, from, announceBatch)
		if err != nil || len(entries) == 0 {
			return err
		}
		s.wake(from, entries)
		if len(entries) < announceBatch {
			return nil
		}
	}
}

// wake wakes the requests that wait for one of the entries, which are all that follow a
// position; the others have seen the feed up to the last entry.
func (s *Service) wake(from Cursor, entries []announcement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiting {
		if w.seen < from {
			continue // began to wait since: the next read starts from its position
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

// leastSeen returns the position up to which all waiting requests have seen the feed.
func (s *Service) leastSeen() (least Cursor, waited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiting {
		if !waited || w.seen < least {
			least, waited = w.seen, true
		}
	}
	return least, waited
}
