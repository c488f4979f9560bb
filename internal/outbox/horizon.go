package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
)

const (
	// late is how old a place in the outbox must be at least, and twice that at most, for
	// a round that does not go back to it, and veryLate for a look beside the rounds that does
	// not: it is quick, so that what took longer than usual to commit waits for a second.
	late, veryLate = 2 * time.Second, time.Minute
	// recent is how many places may be given within that time, by far.
	recent = 10_000
)

// horizon is where rounds begin: behind what was taken. While somebody's transaction is open,
// that stays in the index, and anyone who looks from the beginning passes by all of it.
type horizon struct {
	known bool
	from  int64
	// late and veryLate are behind what may still be about to commit.
	late, veryLate mark
}

// mark is a place in the outbox that was the last one to be given between one and two spans of
// time ago.
type mark struct {
	place, next int64
	turned      time.Time
}

func (m *mark) turn(span time.Duration, newest int64) {
	if now := time.Now(); now.Sub(m.turned) > span {
		m.place, m.next, m.turned = m.next, newest, now
	}
}

// first is the place of the first event that waits between two places but of some
// applications; of none the second place, or the last that was given.
func (p *Publisher) first(
	ctx context.Context, from, before int64, but []uuid.UUID,
) (place int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err = p.DB.GetContext(ctx, &place, `
		SELECT coalesce(min(outbox_id), least($1,
		           coalesce(pg_sequence_last_value('feed_outbox_outbox_id_seq'), 0)))
		  FROM outbox
		 WHERE outbox_id < $1
		   AND outbox_id >= $3
		   AND application_uid <> ALL ($2)`, before, pq.Array(but), from)
	if err != nil {
		return 0, fmt.Errorf("looking for the first event that waits: %w", err)
	}
	return place, nil
}

// lookNear looks for what took longer than usual to commit.
func (p *Publisher) lookNear(ctx context.Context) error {
	p.mu.Lock()
	from := p.end.veryLate.place
	p.mu.Unlock()
	return p.look(ctx, from)
}

// lookBehind looks for all that waits behind the horizon.
func (p *Publisher) lookBehind(ctx context.Context) error { return p.look(ctx, 0) }

// look has the next round begin at what waits between a place and the horizon. Nobody waits
// for it.
func (p *Publisher) look(ctx context.Context, from int64) error {
	p.mu.Lock()
	known, before, but := p.end.known, p.end.from, p.stuck.applications
	p.mu.Unlock()
	if !known {
		return nil
	}
	first, err := p.first(ctx, from, before, but)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end.from = min(p.end.from, first)
	return nil
}
