// Package restore keeps a database that came out of a backup from sending
// anything a second time.
//
// A backup lists deliveries and e-mails as waiting that were sent after it was made. So each
// process compares, as it starts and periodically while it runs, the identity that the database has
// recorded with its actual one: the server's, the database's and that of the table itself, which
// every restored dump creates anew. If they differ, the workers hold everything until someone
// decides what to do with it. Putting another database under the address ends the connections to
// the previous one, so a worker checks each new connection before it takes a job over it.
//
// A standby that takes over and a server that restarts keep their identity. So does a server that
// was taken back to an earlier moment from its archive: call Quarantine there before a worker
// starts.
package restore

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/feed"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// maxReason is how many bytes of a reason are kept.
const maxReason = 500

// reasonFound is the reason of a quarantine that begins automatically.
const reasonFound = "the database was restored from a backup"

// Unnoticed describes a restored database on which no process has started yet.
const Unnoticed = "nothing is held yet: the database is a copy or was restored, and the next " +
	"process that starts holds everything"

// Service finds out whether the database was restored from a backup.
type Service struct {
	DB *postgres.DB
}

// State is what is known of the database.
type State struct {
	// QuarantinedAt is since when everything is held, nil if nothing is.
	QuarantinedAt *time.Time `db:"held_at"`
	Reason        *string    `db:"held_reason"`
	// Copied reports that the recorded identity is not that of this database: a process that notices
	// begins a quarantine.
	Copied bool `db:"copied"`
	// Environment is the recorded environment, nil for none.
	Environment *string `db:"environment"`
}

// IsQuarantined reports whether workers have to wait for a decision.
func (s State) IsQuarantined() bool { return s.QuarantinedAt != nil }

// identity is the SQL for the identity of the database, which no copy shares.
const identity = `(SELECT system_identifier FROM pg_control_system()) || '/' ||
	(SELECT oid FROM pg_database WHERE datname = current_database()) || '/' ||
	'installation'::regclass::oid`

// Read is the statement that reads the State: one row, or none before the first process has
// started.
const Read = `
	SELECT held_at, held_reason, identity <> ` + identity + ` AS copied, environment
	  FROM installation`

// Check records the identity of a database that has none, and begins a quarantine when another
// identity is recorded. That also ends every session that was open when the backup was made.
// Processes that do this concurrently agree. It writes nothing else, so it can be called often, and
// on a read-only database.
func (s *Service) Check(ctx context.Context) (State, error) {
	state, recorded, err := s.read(ctx)
	if err == nil && (!recorded || state.Copied) {
		if err = s.DB.InTx(ctx, func(tx *postgres.Tx) error { return record(ctx, tx) }); err == nil {
			state, _, err = s.read(ctx)
		}
	}
	if err != nil {
		return State{}, fmt.Errorf("asking whether the database was restored: %w", err)
	}
	return state, nil
}

// record writes the identity, and begins the quarantine if another one is recorded.
func record(ctx context.Context, tx *postgres.Tx) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO installation (identity, recorded_at)
		VALUES (`+identity+`, $1)
		ON CONFLICT DO NOTHING`, tx.Now)
	if err != nil {
		return fmt.Errorf("recording the identity: %w", err)
	}
	changed, err := postgres.Affected(tx.ExecContext(ctx, `
		UPDATE installation
		   SET identity    = `+identity+`,
		       recorded_at = $1,
		       held_at     = $1,
		       held_reason = $2
		 WHERE identity <> `+identity, tx.Now, reasonFound))
	if err != nil {
		return fmt.Errorf("comparing the identity: %w", err)
	}
	if changed == 0 {
		return nil
	}
	return signOut(ctx, tx)
}

// signOut ends every session: a session in the database may have been ended after the moment that
// it was restored to.
func signOut(ctx context.Context, tx *postgres.Tx) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM sessions`); err != nil {
		return fmt.Errorf("signing everybody out: %w", err)
	}
	return nil
}

// State returns whether a quarantine is in force. It is the zero State before the first process has
// started.
func (s *Service) State(ctx context.Context) (State, error) {
	state, _, err := s.read(ctx)
	return state, err
}

func (s *Service) read(ctx context.Context) (state State, recorded bool, err error) {
	var states []State
	if err := s.DB.SelectContext(ctx, &states, Read); err != nil || len(states) == 0 {
		return State{}, false, err
	}
	return states[0], true, nil
}

// isCopy reports whether the recorded identity is not that of this database.
func isCopy(ctx context.Context, tx *postgres.Tx) (bool, error) {
	var copied bool
	err := tx.GetContext(ctx, &copied,
		`SELECT EXISTS (SELECT FROM installation WHERE identity <> `+identity+`)`)
	if err != nil {
		return false, fmt.Errorf("comparing the identity: %w", err)
	}
	return copied, nil
}

// CheckReason returns the reason for a quarantine or its end in the form that is kept. Error:
// VALIDATION_ERROR.
func CheckReason(reason string) (string, error) {
	var errs lending.FieldErrors
	reason = errs.Text("reason", reason, maxReason)
	return reason, errs.Err()
}

// Quarantine begins a quarantine by hand: workers that start from now on wait, running ones take
// nothing more within seconds, and every session is ended. It is for a database that was restored
// to an earlier time in place; on a copy that no process has noticed it replaces the quarantine
// that would begin automatically. Errors: VALIDATION_ERROR for the reason, INVALID_STATE when one
// is in force.
func (s *Service) Quarantine(ctx context.Context, tx *postgres.Tx, reason string) error {
	reason, err := CheckReason(reason)
	if err != nil {
		return err
	}
	begun, err := postgres.Affected(tx.ExecContext(ctx, `
		INSERT INTO installation AS i (identity, recorded_at, held_at, held_reason)
		VALUES (`+identity+`, $1, $1, $2)
		ON CONFLICT (only_row) DO UPDATE
		   SET held_at = $1, held_reason = $2, identity = excluded.identity,
		       recorded_at = CASE WHEN i.identity = excluded.identity THEN i.recorded_at
		                          ELSE excluded.recorded_at END
		 WHERE i.held_at IS NULL
		    OR i.identity <> excluded.identity`, tx.Now, reason))
	if err != nil {
		return fmt.Errorf("beginning the quarantine: %w", err)
	}
	if begun == 0 {
		return lending.NewError(lending.CodeInvalidState, "everything is already held")
	}
	return signOut(ctx, tx)
}

// Release ends the quarantine and returns when it began: what was made before may have been sent.
// Cursors of the feed that were issued after the backup work again, and skip nothing that is
// published from now on. Error: INVALID_STATE when there is no quarantine, or the recorded one is
// that of another database.
func (s *Service) Release(ctx context.Context, tx *postgres.Tx) (time.Time, error) {
	copied, err := isCopy(ctx, tx)
	if err != nil {
		return time.Time{}, err
	}
	if copied {
		return time.Time{}, lending.NewError(lending.CodeInvalidState, Unnoticed+"; decide then")
	}
	var began []time.Time
	err = tx.SelectContext(ctx, &began, `
		WITH held AS (
			SELECT held_at FROM installation WHERE held_at IS NOT NULL FOR UPDATE
		)
		UPDATE installation i
		   SET held_at = NULL, held_reason = NULL
		  FROM held
		RETURNING held.held_at`)
	if err != nil {
		return time.Time{}, fmt.Errorf("ending the quarantine: %w", err)
	}
	if len(began) == 0 {
		return time.Time{}, lending.NewError(lending.CodeInvalidState,
			"nothing is held: this database was not restored, or a decision was made already")
	}
	if _, err := tx.ExecContext(ctx,
		`UPDATE feed_head SET position = position + $1`, feed.Gap); err != nil {
		return time.Time{}, fmt.Errorf("moving the feed past the cursors of before: %w", err)
	}
	return began[0], nil
}
