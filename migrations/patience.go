package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pressly/goose/v3/lock"
)

const (
	// lockTimeout is for how long a migration waits for a lock, and those who use the
	// table wait behind it. All the locks of one migration together take less than
	// Postgres' deadlock_timeout (1 s): in a deadlock it is the migration that gives
	// way, before Postgres chooses a call of the service.
	lockTimeout = 100 * time.Millisecond
	// lockPatience is for how long a migration asks for its locks again.
	lockPatience = 10 * time.Minute
	// lockPause lets through what has gathered behind a migration that gave way. It
	// doubles up to maxLockPause, so that a long transaction of somebody else does
	// not make the service stutter; up to as much again is added by chance.
	lockPause    = 100 * time.Millisecond
	maxLockPause = 2 * time.Second
	// lockNotice is how often the log says that a migration waits.
	lockNotice = 10 * time.Second
	// turnPause is how long a run waits between its tries to be the one that migrates.
	turnPause = time.Second
)

// patientLocker waits until no other run migrates, however long that takes: an index of a big table
// takes hours. Then it bounds how long the connection that migrates waits for a lock, and lets its
// statements take as long as they do.
type patientLocker struct {
	lock.SessionLocker
	// pause is the time between two tries, notice that between two calls of tell.
	pause, notice time.Duration
	// tell says how long it has waited.
	tell func(ctx context.Context, waited time.Duration)
}

func newLocker() (patientLocker, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return patientLocker{}, fmt.Errorf("preparing the migration lock: %w", err)
	}
	tell := func(ctx context.Context, waited time.Duration) {
		slog.WarnContext(ctx, "another process migrates the database; waiting for its end",
			"waited", waited.Round(time.Second))
	}
	return patientLocker{locker, turnPause, lockNotice, tell}, nil
}

// SessionLock implements lock.SessionLocker.
func (l patientLocker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	begun := time.Now()
	for noticed := begun; ; {
		var locked bool
		err := conn.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`,
			lock.DefaultLockID).Scan(&locked)
		if err != nil {
			return fmt.Errorf("asking for the migration lock: %w", err)
		}
		if locked {
			break
		}
		if time.Since(noticed) >= l.notice {
			noticed = time.Now()
			l.tell(ctx, time.Since(begun))
		}
		pause := time.NewTimer(l.pause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		case <-pause.C:
		}
	}
	_, err := conn.ExecContext(ctx, boundLocks(""))
	return err
}

// SessionUnlock implements lock.SessionLocker.
func (l patientLocker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, `RESET lock_timeout; RESET statement_timeout`)
	return errors.Join(err, l.SessionLocker.SessionUnlock(ctx, conn))
}

// boundLocks sets the bound for a session, or with "LOCAL" for a transaction, and takes that of
// statements away: it is meant for calls, and an index of a big table takes hours.
func boundLocks(scope string) string {
	return fmt.Sprintf(`SET %[1]s lock_timeout = '%[2]dms'; SET %[1]s statement_timeout = 0`,
		scope, lockTimeout.Milliseconds())
}

// execUnbound runs a statement that is in no transaction for as long as it takes.
func execUnbound(ctx context.Context, db *sql.DB, statement string) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err = conn.ExecContext(ctx, `SET statement_timeout = 0`); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, statement)
	_, reset := conn.ExecContext(ctx, `RESET statement_timeout`)
	return errors.Join(err, reset)
}

// patiently runs what migrates, again while it does not get its locks.
func patiently(ctx context.Context, migrate func() error) error {
	begun := time.Now()
	noticed := begun
	for wait := lockPause; ; wait = min(2*wait, maxLockPause) {
		err := migrate()
		if err == nil || !lacksLock(err) || time.Since(begun) > lockPatience {
			return err
		}
		if time.Since(noticed) > lockNotice {
			noticed = time.Now()
			slog.WarnContext(ctx, "a migration waits for its locks; a long transaction may hold one",
				"waited", time.Since(begun).Round(time.Second), "error", err)
		}
		pause := time.NewTimer(wait + rand.N(wait)) //nolint:gosec // nobody gains by guessing it
		select {
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(context.Cause(ctx), err)
		case <-pause.C:
		}
	}
}

// lacksLock tells a lock that was not to be had in time, or a deadlock, from what
// another try does not fix.
func lacksLock(err error) bool { return hasState(err, "55P03", "40P01") }

// hasState tells whether err is the server's, with one of the SQL states.
func hasState(err error, states ...string) bool {
	state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	return ok && slices.Contains(states, state.SQLState())
}

// execPromptly runs statements that lock a table against writers, in a transaction
// of their own that does not wait for long.
func execPromptly(ctx context.Context, db *sql.DB, statements string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, boundLocks("LOCAL")+"; "+statements)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
