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

// ReleaseCommand is how the quarantine of a restored database ends.
const ReleaseCommand = "drawbridge restore release --deliveries send|cancel " +
	"--mails send|cancel --reason TEXT"

// Quarantine is whether a restored database holds everything back, and how much that is.
type Quarantine struct {
	Active bool `json:"held"`
	// Copied is whether the next process that starts begins one.
	Copied     bool       `json:"copied"`
	Since      *time.Time `json:"held_at"`
	Reason     *string    `json:"reason"`
	Deliveries int        `json:"deliveries"`
	Mails      int        `json:"mails"`
}

// Quarantine asks what is held back.
func (s *Services) Quarantine(ctx context.Context) (Quarantine, error) {
	state, err := s.Restored.State(ctx)
	// What a copy records of a quarantine is about the database that it was copied from.
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

// standing is what the database was found to be, and so whether the workers rest.
type standing struct {
	restore.State
	// other says that it is not of this environment.
	other error
}

func (f standing) rests() bool { return f.other != nil || f.IsQuarantined() }

// look asks the database what it is. One that was put in the place of another begins its
// quarantine here, unless it is that of another environment, which is left as it is.
func (s *Services) look(ctx context.Context) (standing, error) {
	err := s.ensureEnvironment(ctx)
	if other, wrong := errors.AsType[config.Errors](err); wrong {
		return standing{other: other}, nil
	}
	if err != nil {
		return standing{}, err
	}
	state, err := s.Restored.Check(ctx)
	return standing{State: state}, err
}

// mayFetch tells whether jobs may be taken over a connection that is new. It asks there, and
// writes nothing: the connection may lead to another database than those before.
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

// waitForDecision keeps a worker from sending what a restored database knows as
// waiting. It returns when ctx ends, too.
func (s *Services) waitForDecision(ctx context.Context) error {
	found, err := s.look(ctx)
	if err != nil {
		return err
	}
	var said time.Time
	s.follow(ctx, found, func(found standing) bool {
		if !found.rests() || time.Since(said) < quarantineReminder {
			return !found.rests()
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

// follow asks again and again until what the database is found to be is the end; false when ctx
// ends before.
func (s *Services) follow(ctx context.Context, found standing, isEnd func(standing) bool) bool {
	for !isEnd(found) {
		if !postgres.Pause(ctx, quarantinePoll) {
			return false
		}
		now, err := s.look(ctx)
		if err != nil { // the database is away for a moment; what it said last holds
			if ctx.Err() == nil {
				slog.WarnContext(ctx, "asking whether everything is held", "error", err)
			}
			continue
		}
		found = now
	}
	return true
}
