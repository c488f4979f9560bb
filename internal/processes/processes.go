// Package processes keeps track of the serving processes, hands the jobs of dead ones back to the
// queue, and reports on the whole of Drawbridge: its database, its queues, its chores.
package processes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

const (
	// beatEvery is how often a process shows that it is alive.
	beatEvery = 15 * time.Second
	// Lost is how long a process may go without a beat before it is considered dead: see Watch.
	Lost = time.Minute
	// forgetAfter is when the row of a dead process is removed.
	forgetAfter = 24 * time.Hour
	// leaveTimeout bounds the removal of the row when the process stops.
	leaveTimeout = 5 * time.Second
)

// Service reads and writes the data that concerns all processes.
type Service struct {
	DB *postgres.DB
	// Working are the jobs of this process.
	Working Roster

	skewUS atomic.Int64 // of the last comparison of the clocks
	// lockKey is the key of the lock that the process holds, 0 while it holds none.
	lockKey atomic.Int64

	activity postgres.ThrottledCache[activitySpan, Activity]
}

// Process is a process that serves, or did until recently.
type Process struct {
	UID     uuid.UUID      `db:"process_uid"`
	Host    string         `db:"host"`
	PID     int            `db:"pid"`
	Roles   pq.StringArray `db:"roles"`
	Version string         `db:"version"`
	// URL is where it can be reached, as far as known.
	URL       string    `db:"url"`
	StartedAt time.Time `db:"started_at"`
	// LastBeatAt is by the clock of the database.
	LastBeatAt time.Time `db:"last_beat_at"`
	// SkewUS is how far the process's clock is ahead of the database's, in microseconds, as far as
	// that can be measured.
	SkewUS int64 `db:"skew_us"`
}

// Skew is how far the process's clock is ahead of the database's.
func (p Process) Skew() time.Duration { return time.Duration(p.SkewUS) * time.Microsecond }

// New describes this process.
func (s *Service) New(roles []string, version string) Process {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	now := s.DB.Now().UTC()
	return Process{
		UID: postgres.NewUID(now), Host: host, PID: os.Getpid(), Roles: roles, Version: version,
		StartedAt: now,
	}
}

// Run keeps the process's row alive until ctx ends, and then removes it. The next beat makes up for
// a failed one.
func (s *Service) Run(ctx context.Context, process Process) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	relocked := make(chan struct{}, 1)
	var holding sync.WaitGroup
	holding.Go(func() { s.hold(ctx, process, relocked) })
	for {
		err := s.Beat(ctx, process)
		if err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "showing that the process lives", "error", err)
		}
		select {
		case <-ctx.Done():
			s.leave(ctx, process)
			holding.Wait()
			return
		case <-ticker.C:
		case <-relocked:
		}
	}
}

// Beat writes the process's row, and makes its clock follow the database's. The row is written over
// the engine's connections, so that requests waiting for a lock cannot delay it.
func (s *Service) Beat(ctx context.Context, process Process) error {
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	syncing, stop := context.WithTimeout(ctx, beatEvery/3) // long before the row is late
	skew, syncErr := s.DB.SyncClock(syncing)
	stop()
	if syncErr == nil {
		s.skewUS.Store(skew.Microseconds())
	}
	_, err := s.DB.Engine().ExecContext(ctx, `
		INSERT INTO processes (process_uid, host, pid, roles, version, started_at, last_beat_at,
		                       skew_us, notes_attempts, url, lock_key)
		VALUES ($1, $2, $3, $4, $5, $6, now(), $7, true, $8, nullif($9::bigint, 0))
		    ON CONFLICT (process_uid) DO UPDATE
		   SET last_beat_at = excluded.last_beat_at,
		       skew_us = excluded.skew_us,
		       lock_key = excluded.lock_key`,
		process.UID, process.Host, process.PID, process.Roles, process.Version,
		process.StartedAt, s.skewUS.Load(), process.URL, s.lockKey.Load())
	if err = errors.Join(err, syncErr); err != nil {
		return fmt.Errorf("writing the row of the process: %w", err)
	}
	_, err = s.DB.ExecContext(ctx, `
		DELETE FROM processes
		 WHERE last_beat_at < now() - make_interval(secs => $1)`, forgetAfter.Seconds())
	if err != nil {
		return fmt.Errorf("forgetting dead processes: %w", err)
	}
	return nil
}

// Serving returns the address of the newest live process that serves the console, empty if there is
// none.
func (s *Service) Serving(ctx context.Context) (string, error) {
	var url string
	err := s.DB.GetContext(ctx, &url, `
		SELECT url
		  FROM processes
		 WHERE 'console' = ANY (roles)
		   AND last_beat_at > now() - make_interval(secs => $1)
		 ORDER BY started_at DESC
		 LIMIT 1`, Lost.Seconds())
	if err != nil && !postgres.IsNoRows(err) {
		return "", fmt.Errorf("looking for a process that serves: %w", err)
	}
	return url, nil
}

// Living returns the processes that serve the database, as far as that is known without a Watch:
// their last beat is less than a minute old, and the server has not freed their locks. The rows in
// a copy describe processes that serve the database it was copied from.
func Living(ctx context.Context, db postgres.Querier, isCopy bool) ([]Process, error) {
	var found []Process
	err := db.SelectContext(ctx, &found, `
		SELECT process_uid, host, pid, roles, version, started_at, last_beat_at, skew_us
		  FROM processes
		 WHERE last_beat_at > now() - make_interval(secs => $1)
		   AND CASE WHEN lock_key IS NULL THEN NOT $2
		            ELSE `+postgres.LockHeld(`lock_key`)+` END
		 ORDER BY started_at, process_uid`, Lost.Seconds(), isCopy)
	if err != nil {
		return nil, fmt.Errorf("looking for processes that serve: %w", err)
	}
	return found, nil
}

func (s *Service) leave(ctx context.Context, process Process) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	// The row stays if jobs are left, so that other processes find them.
	_, err := s.DB.ExecContext(ctx, `
		DELETE FROM processes p
		 WHERE process_uid = $1
		   AND NOT EXISTS (
		           SELECT 1
		             FROM river_job
		            WHERE state = 'running'
		              AND attempted_by[array_upper(attempted_by, 1)] = p.process_uid::text)`,
		process.UID)
	if err != nil {
		slog.WarnContext(ctx, "removing the row of the process", "error", err)
	}
}
