// Package outbox does what follows from an event once its change has committed: it gives
// the event its position in the feed, and creates the deliveries that it requires, with
// their jobs.
//
//	use case ── Record ──► events + outbox ── commit
//	                                │
//	                            Publisher ──► feed, one position each ──► NOTIFY drawbridge_feed
//	                                └───────► deliveries ──► jobs ──────► NOTIFY the queue
//
// Which deliveries an event requires was decided with the change; here they are only made, exactly
// once: rows leave the outbox in the transaction that creates what follows from them.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

const (
	// channel notifies other processes that an event was recorded.
	channel = "drawbridge_outbox"
	// eventsTogether and deliveriesTogether bound what one transaction publishes; its last
	// event may exceed the latter.
	eventsTogether, deliveriesTogether = 200, 2000
	// After a pass over several events the next one waits for as long as that took, within
	// these bounds, so that under load events share a transaction.
	minGather, maxGather = time.Millisecond, 10 * time.Millisecond
	// After any other pass the outbox is polled as soon as an event is recorded and, since
	// notifications may be missed, after an interval that doubles between these bounds.
	minPoll, maxPoll = 5 * time.Millisecond, 200 * time.Millisecond
	// afterFailure is the pause after a failure, and stuckFor how long an event that failed
	// on its own is left out.
	afterFailure, stuckFor = 250 * time.Millisecond, 3 * time.Second
	// timeout bounds a statement, scanTimeout one that may step over every row ever recorded.
	timeout, scanTimeout = 10 * time.Second, time.Minute
)

// Publisher publishes the events of a database. Any number of processes may run one: of
// those that try to publish at the same time, one does.
//
// Feed order is the order in which events are found, not that of times or transactions: an
// event is found once it is committed, so one that commits late comes later, and nobody waits
// for an open transaction. Positions are assigned under a lock that is held until they are
// committed, so anyone who sees one sees all before it. For the events of one application, the
// lock on the application makes the outbox's own order that of their numbers.
type Publisher struct {
	DB *postgres.DB

	// recorded signals that an event was recorded in this process.
	recorded chan struct{}
	// mu is held while this process publishes.
	mu      sync.Mutex
	horizon horizon
	stuck   stuck
}

// stuck holds the applications whose next event cannot be published, until it is retried.
type stuck struct {
	applications []uuid.UUID
	// from is the outbox id of the first of those events.
	from  int64
	again time.Time
}

func newStuck() stuck { return stuck{applications: []uuid.UUID{}, from: math.MaxInt64} }

// New returns a publisher of a database.
func New(db *postgres.DB) *Publisher { return &Publisher{DB: db, recorded: make(chan struct{}, 1)} }

// Recorded signals that events of this process have been committed. It does not block.
func (p *Publisher) Recorded() {
	select {
	case p.recorded <- struct{}{}:
	default:
	}
}

// Relay notifies the publishing processes of events recorded in this one, which does not publish,
// until ctx ends. It does so outside the transactions: those that notify commit one by one.
func (p *Publisher) Relay(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.recorded:
		}
		bound, cancel := context.WithTimeout(ctx, timeout)
		_, err := p.DB.ExecContext(bound, `SELECT pg_notify($1, '')`, channel)
		cancel()
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "telling of events", "error", err) // polling finds the events too
		}
		pause(ctx, minGather)
	}
}

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context) {
	elsewhere := p.DB.Listen(ctx, channel)
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { postgres.PollThrottled(ctx, "late events", p.scanRecent) })
	background.Go(func() { postgres.PollThrottled(ctx, "older events", p.scanAll) })
	wait := minPoll
	for ctx.Err() == nil {
		began := time.Now()
		published, err := p.PublishAll(ctx)
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "publishing events", "error", err)
			pause(ctx, afterFailure)
		}
		if published > 1 {
			wait = minPoll
			pause(ctx, min(max(time.Since(began), minGather), maxGather))
			continue
		}
		wait = min(2*wait, maxPoll)
		select {
		case <-ctx.Done():
		case <-p.recorded:
			wait = minPoll
		case <-elsewhere:
			wait = minPoll
		case <-time.After(wait):
		}
	}
}

func pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

// PublishAll publishes all events that wait, numbers some of the older events, and
// returns how many it published; 0 also while another process publishes.
func (p *Publisher) PublishAll(ctx context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := 0
	if !p.horizon.known {
		first, err := p.first(ctx, 0, math.MaxInt64, []uuid.UUID{})
		if err != nil {
			return 0, err
		}
		// Start some ids back, as transactions may be about to commit.
		from := mark{first - recentIDs, first - recentIDs, time.Now()}
		p.horizon = horizon{known: true, from: from.id, late: from, veryLate: from}
		p.stuck = newStuck()
	}
	for {
		now, err := p.publish(ctx)
		all += now.Published
		switch {
		case err != nil && ctx.Err() == nil && !postgres.IsUnavailable(err):
			count, err := p.publishSingly(ctx)
			return all + count, err
		case err != nil:
			return all, err
		case now.Full:
			continue
		case now.Unnumbered:
			err = p.Number(ctx)
		}
		return all, err
	}
}

// Drain publishes until no committed event waits, whichever process publishes it, or ctx ends.
func (p *Publisher) Drain(ctx context.Context) error {
	for {
		_, err := p.PublishAll(ctx)
		var waiting bool
		if err == nil {
			err = p.DB.GetContext(ctx, &waiting, `SELECT EXISTS (SELECT FROM outbox)`)
		}
		if err != nil || !waiting {
			return err
		}
		if err := p.scanAll(ctx); err != nil {
			return err
		}
		pause(ctx, minGather)
	}
}

// publish runs one statement and so one transaction, since a transaction costs as much as
// several events.
func (p *Publisher) publish(ctx context.Context) (batch, error) {
	if len(p.stuck.applications) > 0 && time.Now().After(p.stuck.again) {
		p.horizon.from = min(p.horizon.from, p.stuck.from)
		p.stuck = newStuck()
	}
	now, err := take(ctx, p.DB.Engine(), p.horizon.from, eventsTogether, p.stuck.applications)
	if postgres.IsUnique(err, feedKey) || postgres.IsLockTimeout(err) {
		// Another process published between this one's read of the feed and its lock, or is
		// about to.
		return batch{Full: true}, nil
	}
	switch {
	case err != nil:
		return now, err
	case now.Full:
		p.horizon.from = max(p.horizon.from, now.Last)
	default:
		p.horizon.late.rotate(late, now.Newest)
		p.horizon.veryLate.rotate(veryLate, now.Newest)
		p.horizon.from = p.horizon.late.id
	}
	return now, nil
}

// publishSingly publishes as many events as one batch holds, each in its own transaction,
// after the transaction for all of them failed: an event that cannot be published holds
// up only those of its application. So does an overtaken event: the event before it is
// found by a scan alongside the passes.
func (p *Publisher) publishSingly(ctx context.Context) (all int, errs error) {
	if len(p.stuck.applications) == 0 { // else those stuck before would never be retried
		defer func() { p.stuck.again = time.Now().Add(stuckFor) }()
	}
	except := slices.Clone(p.stuck.applications)
	for all < eventsTogether {
		var now batch
		err := p.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
			now, err = take(ctx, tx, p.horizon.from, 1, except)
			return err
		})
		switch {
		case ctx.Err() != nil || postgres.IsUnavailable(err):
			return all, errors.Join(errs, err)
		case err == nil && now.Published > 0:
			all += now.Published
			continue
		case err == nil && !now.Alone:
			return all, errs
		case postgres.IsUnique(err, feedKey): // as in publish
			continue
		}
		// The event that the next pass begins with.
		var next struct {
			Place       int64     `db:"outbox_id"`
			Application uuid.UUID `db:"application_uid"`
		}
		nextErr := p.DB.GetContext(ctx, &next, `
			SELECT outbox_id, application_uid
			  FROM outbox
			 WHERE outbox_id >= $1
			   AND application_uid <> ALL ($2)
			 ORDER BY outbox_id
			 LIMIT 1`, p.horizon.from, pq.Array(except))
		switch {
		case err == nil && postgres.IsNoRows(nextErr):
			return all, errs
		case nextErr != nil:
			return all, errors.Join(errs, err, nextErr)
		}
		except = append(except, next.Application)
		if err == nil {
			continue
		}
		errs = errors.Join(errs,
			fmt.Errorf("an event of application %s waits: %w", next.Application, err))
		p.stuck.applications = append(p.stuck.applications, next.Application)
		p.stuck.from = min(p.stuck.from, next.Place)
	}
	return all, errs
}
