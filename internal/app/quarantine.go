package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/internal/restore"
)

// ReleaseCommand ends the quarantine of a restored database.
const ReleaseCommand = "drawbridge restore release --deliveries send|cancel " +
	"--mails send|cancel --reason TEXT"

// Quarantine reports whether a restored database is in quarantine, and how much it holds back.
type Quarantine struct {
	Active bool `json:"held"`
	// Copied is whether the next process that starts begins a quarantine.
	Copied     bool       `json:"copied"`
	Since      *time.Time `json:"held_at"`
	Reason     *string    `json:"reason"`
	Deliveries int        `json:"deliveries"`
	Mails      int        `json:"mails"`
}

// Quarantine reads what is held back.
func (s *Services) Quarantine(ctx context.Context) (Quarantine, error) {
	state, err := s.Restored.State(ctx)
	// In a copy, the record of a quarantine is about the database that it was copied from.
	if err != nil || state.Copied || !state.IsQuarantined() {
		return Quarantine{Copied: state.Copied}, err
	}
	at := state.QuarantinedAt.UTC()
	quarantine := Quarantine{Active: true, Since: &at, Reason: state.Reason}
	if quarantine.Deliveries, err = s.Webhooks.Deliveries.CountOpen(ctx, at); err != nil {
		return quarantine, err
	}
	quarantine.Mails, err = s.Emails.CountQueued(ctx, s.DB, at)
	return quarantine, err
}

// dbStatus is what is known of the database, which decides whether the workers rest.
type dbStatus struct {
	restore.State
	// other is set when the database belongs to another environment.
	other error
}

func (f dbStatus) mustWait() bool { return f.other != nil || f.IsQuarantined() }

// checkDatabase reads the state of the database. If it was restored in the place of another, it
// begins its quarantine here; if it belongs to another environment, it is left as it is.
func (s *Services) checkDatabase(ctx context.Context) (dbStatus, error) {
	err := s.ensureEnvironment(ctx)
	if other, wrong := errors.AsType[config.Errors](err); wrong {
		return dbStatus{other: other}, nil
	}
	if err != nil {
		return dbStatus{}, err
	}
	state, err := s.Restored.Check(ctx)
	return dbStatus{State: state}, err
}

// mayFetch reports whether jobs may be fetched over a new connection. It checks on that connection,
// which may lead to another database than earlier ones, and writes nothing.
func (s *Services) mayFetch(ctx context.Context, made *pgx.Conn) (bool, error) {
	rows, err := made.Query(ctx, restore.Read)
	if err != nil {
		return false, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[restore.State])
	if err != nil || len(found) == 0 {
		return false, err
	}
	state := found[0]
	return !state.Copied && !state.IsQuarantined() && state.Environment != nil &&
		*state.Environment == string(s.Settings.Env), nil
}

// waitForDecision keeps a worker from sending what a restored database still lists as waiting. It
// also returns when ctx ends.
func (s *Services) waitForDecision(ctx context.Context) error {
	found, err := s.checkDatabase(ctx)
	if err != nil {
		return err
	}
	var said time.Time
	s.pollUntil(ctx, found, func(found dbStatus) bool {
		if !found.mustWait() || time.Since(said) < quarantineReminder {
			return !found.mustWait()
		}
		if said = time.Now(); found.other != nil {
			slog.WarnContext(ctx, "nothing is sent: the database is not this process's",
				"reason", found.other)
		} else {
			slog.WarnContext(ctx, "nothing is sent: everything is held; decide with drawbridge "+
				"restore release", "held_at", found.QuarantinedAt, "reason", found.Reason)
		}
		return false
	})
	return nil
}

// pollUntil polls the state of the database until isEnd holds for it; it returns false when ctx
// ends first.
func (s *Services) pollUntil(ctx context.Context, found dbStatus, isEnd func(dbStatus) bool) bool {
	for !isEnd(found) {
		if !postgres.Pause(ctx, quarantinePoll) {
			return false
		}
		now, err := s.checkDatabase(ctx)
		if err != nil { // the database is away for a moment; its last state holds
			if ctx.Err() == nil {
				slog.WarnContext(ctx, "asking whether everything is held", "error", err)
			}
			continue
		}
		found = now
	}
	return true
}
