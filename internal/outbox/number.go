package outbox

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// numberedTogether is for how many applications one transaction numbers the events that
// are older than the numbering.
const numberedTogether = 100

// Number numbers the events, older than the numbering, of some applications in the order
// of their times, and adds them to the feed. It does nothing once all are numbered, and
// tries again later if another transaction has locked one of the applications: publishing
// must not wait for that.
func (p *Publisher) Number(ctx context.Context) error {
	err := p.DB.InTx(ctx, func(tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '100ms'`); err != nil {
			return fmt.Errorf("bounding the wait for applications: %w", err)
		}
		var from *uuid.UUID
		err := tx.GetContext(ctx, &from,
			`SELECT numbered_until FROM feed_head FOR UPDATE SKIP LOCKED`)
		if postgres.IsNoRows(err) || err == nil && from == nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("asking which events have no number: %w", err)
		}
		var done []uuid.UUID
		err = tx.SelectContext(ctx, &done, `
			WITH next AS MATERIALIZED (
				SELECT application_uid, last_sequence
				  FROM applications
				 WHERE application_uid > $1
				 ORDER BY application_uid
				 LIMIT $2
				   FOR UPDATE
			), numbered AS (
				UPDATE applications a
				   SET last_sequence = drawbridge_number_events(a.application_uid)
				  FROM next
				 WHERE a.application_uid = next.application_uid
				   AND next.last_sequence IS NULL
			)
			SELECT application_uid FROM next ORDER BY application_uid`, from, numberedTogether)
		if err != nil {
			return fmt.Errorf("numbering older events: %w", err)
		}
		var until *uuid.UUID
		if len(done) > 0 {
			until = &done[len(done)-1]
		}
		if _, err := tx.ExecContext(ctx,
			`UPDATE feed_head SET numbered_until = $1`, until); err != nil {
			return fmt.Errorf("keeping up to where events are numbered: %w", err)
		}
		return nil
	})
	if postgres.IsLockTimeout(err) {
		return nil
	}
	return err
}
