package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
)

const (
	// A pass starts after outbox ids older than late (up to twice late, because marks rotate at
	// that interval), and the frequent scan alongside the passes after those older than veryLate,
	// likewise: that scan is quick, so an event that was slow to commit waits for only a second.
	late, veryLate = 2 * time.Second, time.Minute
	// recentIDs is far more outbox ids than can be assigned within that time.
	recentIDs = 10_000
)

// horizon is where passes begin: after the rows that were taken. While any transaction is open,
// those rows stay in the index, and a scan from the beginning has to step over all of them.
type horizon struct {
	known bool
	from  int64
	// late and veryLate are before any id whose transaction may still be about to commit.
	late, veryLate mark
}

// mark is an outbox id that was the newest one assigned at some time between one and two
// intervals ago.
type mark struct {
	id, next  int64
	rotatedAt time.Time
}

func (m *mark) rotate(span time.Duration, newest int64) {
	if now := time.Now(); now.Sub(m.rotatedAt) > span {
		m.id, m.next, m.rotatedAt = m.next, newest, now
	}
}

// first returns the smallest outbox id that waits between two ids, leaving out some applications;
// if there is none, the second id or the newest one assigned, whichever is smaller.
func (p *Publisher) first(
	ctx context.Context, from, before int64, except []uuid.UUID,
) (id int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	err = p.DB.GetContext(ctx, &id, `
		SELECT coalesce(min(outbox_id), least($1,
		           coalesce(pg_sequence_last_value('feed_outbox_outbox_id_seq'), 0)))
		  FROM outbox
		 WHERE outbox_id < $1
		   AND outbox_id >= $3
		   AND application_uid <> ALL ($2)`, before, pq.Array(except), from)
	if err != nil {
		return 0, fmt.Errorf("looking for the first event that waits: %w", err)
	}
	return id, nil
}

// scanRecent scans for events that took longer than usual to commit.
func (p *Publisher) scanRecent(ctx context.Context) error {
	p.mu.Lock()
	from := p.horizon.veryLate.id
	p.mu.Unlock()
	return p.scan(ctx, from)
}

// scanAll scans everything before the horizon for waiting events.
func (p *Publisher) scanAll(ctx context.Context) error { return p.scan(ctx, 0) }

// scan makes the next pass begin at the first event that waits between an outbox id and
// the horizon, if there is one. Nobody waits for it.
func (p *Publisher) scan(ctx context.Context, from int64) error {
	p.mu.Lock()
	known, before, except := p.horizon.known, p.horizon.from, p.stuck.applications
	p.mu.Unlock()
	if !known {
		return nil
	}
	first, err := p.first(ctx, from, before, except)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.horizon.from = min(p.horizon.from, first)
	return nil
}
