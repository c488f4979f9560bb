package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

const (
	// exchangeTries is how often an exchange tries to take its locks, and exchangeRest is the pause in
	// between, in which others can work.
	exchangeTries = 40
	exchangeRest  = 250 * time.Millisecond
)

// parents are the partitioned tables, from the outermost: rows of one refer to rows of the next.
var parents = []string{"attempts", "deliveries", "events"}

// month is one month of the partitioned tables.
type month struct{ begin, end time.Time }

func (m month) String() string { return m.begin.Format("2006-01") }

// in puts the month into a statement: {m} is the suffix of the month's partitions, as
// drawbridge_make_partitions names them, {k} the suffix of the new tables, and {begin} and {end}
// are the month's bounds.
func (m month) in(statement string) string {
	suffix := m.begin.Format("_y2006m01")
	literal := func(at time.Time) string {
		return pq.QuoteLiteral(at.Format(time.RFC3339)) + "::timestamptz"
	}
	return strings.NewReplacer("{m}", suffix, "{k}", suffix+"_kept",
		"{begin}", literal(m.begin), "{end}", literal(m.end)).Replace(statement)
}

// months returns the months whose metadata is due, oldest first.
func (s *Service) months(ctx context.Context, cutoff time.Time) ([]month, error) {
	var names []string
	err := s.DB.SelectContext(ctx, &names, `
		SELECT DISTINCT right(c.relname, 7) AS month
		  FROM pg_inherits i
		  JOIN pg_class c ON c.oid = i.inhrelid
		 WHERE i.inhparent = ANY (ARRAY['attempts', 'deliveries', 'events']::regclass[])
		 ORDER BY month`)
	if err != nil {
		return nil, fmt.Errorf("listing the months: %w", err)
	}
	var due []month
	for _, name := range names {
		begin, err := time.Parse("2006m01", name)
		if m := (month{begin, begin.AddDate(0, 1, 0)}); err == nil && !m.end.After(cutoff) {
			due = append(due, m)
		}
	}
	return due, nil
}

// removeMonths removes the months that are due and whose bodies are gone.
func (s *Service) removeMonths(ctx context.Context, cutoff time.Time, report *Report) error {
	due, err := s.months(ctx, cutoff)
	if err != nil || len(due) == 0 {
		return err
	}
	if owns, err := s.DB.Owns(ctx, "events"); err != nil || !owns {
		for _, m := range due {
			report.LeftToOwner = append(report.LeftToOwner, m.String())
		}
		return err
	}
	var errs []error
	for _, m := range due {
		if ctx.Err() != nil {
			break
		}
		removed, err := s.removeMonth(ctx, m)
		if err != nil {
			errs = append(errs, fmt.Errorf("removing %s: %w", m, err))
		}
		if removed {
			report.Months = append(report.Months, m.String())
		}
	}
	return errors.Join(errs...)
}

// removeMonth reports whether it removed anything.
func (s *Service) removeMonth(ctx context.Context, m month) (removed bool, err error) {
	quiet, err := s.isQuiet(ctx, m)
	if err != nil || !quiet {
		return false, err
	}
	if err := s.dropKept(ctx, m); err != nil {
		return false, err
	}
	defer func() {
		err = errors.Join(err, s.dropKept(context.WithoutCancel(ctx), m))
	}()
	var holds generation // at the time of the copy
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
		if holds, err = generationOf(ctx, tx); err != nil {
			return err
		}
		for _, statement := range survivors {
			if _, err := tx.ExecContext(ctx, m.in(statement)); err != nil {
				return fmt.Errorf("keeping what stays: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	keep, worthwhile, err := s.needsExchange(ctx, m)
	if err != nil || !worthwhile {
		return false, err
	}
	for try := 0; ; try++ {
		removed, err := s.exchange(ctx, m, holds, keep)
		if !postgres.IsLockTimeout(err) {
			return removed, err
		}
		if try == exchangeTries || !postgres.Pause(ctx, exchangeRest) {
			slog.WarnContext(ctx, "retention found no moment to remove a month", "month", m.String())
			return false, nil // the next run tries again
		}
	}
}

// isQuiet reports whether the month can get no more deliveries. Until every body that may go was
// removed, a re-send of its events could still be made; and an event in the outbox gets deliveries
// with the time at which it was recorded.
func (s *Service) isQuiet(ctx context.Context, m month) (bool, error) {
	var quiet bool
	err := s.DB.GetContext(ctx, &quiet, `
		SELECT count(*) = 2
		       AND NOT EXISTS (SELECT
		                         FROM outbox
		                        WHERE occurred_at >= $1 AND occurred_at < $2
		                           OR recorded_at >= $1 AND recorded_at < $2)
		  FROM retention_progress
		 WHERE matter IN ('events', 'attempts')
		   AND done_until >= $2`, m.begin, m.end)
	if err != nil {
		return false, fmt.Errorf("looking what may still come: %w", err)
	}
	return quiet, nil
}

// survivors are the statements that make and fill the new tables, in the order in which they refer
// to each other.
//
//nolint:unqueryvet // a copy has every column, also those of later migrations
var survivors = []string{
	`CREATE TABLE deliveries{k} (LIKE deliveries{m} INCLUDING ALL);
	INSERT INTO deliveries{k}
		SELECT d.*
		  FROM deliveries{m} d
		 WHERE d.application_uid IN (` + legallyHeld + `)
		UNION ALL
		SELECT d.*
		  FROM deliveries{m} d
		 WHERE d.state IN ('pending', 'retrying')
		   AND (d.application_uid IS NULL OR d.application_uid NOT IN (` + legallyHeld + `))`,
	`CREATE TABLE attempts{k} (LIKE attempts{m} INCLUDING ALL);
	INSERT INTO attempts{k}
		SELECT a.*
		  FROM attempts{m} a
		  JOIN deliveries{k} d ON d.delivery_uid = a.delivery_uid
		                      AND d.created_at = a.delivery_created_at`,
	`CREATE TABLE events{k} (LIKE events{m} INCLUDING ALL);
	INSERT INTO events{k}
		SELECT e.*
		  FROM events{m} e
		 WHERE e.application_uid IN (` + legallyHeld + `)
		    OR e.event_uid IN (SELECT event_uid FROM deliveries{k})
		    OR e.event_uid IN (SELECT event_uid
		                         FROM deliveries
		                        WHERE event_at >= {begin}
		                          AND event_at < {end}
		                          AND (created_at < {begin} OR created_at >= {end}))`,
}

// needsExchange reports whether any rows of the month are kept, and so all its tables, and whether
// an exchange is worthwhile: the month has rows besides its survivors, or no survivors at all.
func (s *Service) needsExchange(ctx context.Context, m month) (keep, worthwhile bool, err error) {
	for _, parent := range parents {
		var found struct {
			Kept, Others bool
		}
		err := s.DB.GetContext(ctx, &found, m.in(`
			WITH survivors AS (SELECT count(*) FROM `+parent+`{k})
			SELECT count > 0 AS kept,
			       (SELECT count(*)
			          FROM (SELECT FROM `+parent+`{m} LIMIT (SELECT count + 1 FROM survivors)) AS r
			       ) > count AS others
			  FROM survivors`))
		if err != nil {
			return false, false, fmt.Errorf("counting what stays of %s: %w", parent, err)
		}
		keep, worthwhile = keep || found.Kept, worthwhile || found.Others
	}
	return keep, worthwhile || !keep, nil
}

// generation changes whenever a hold is placed or released.
type generation struct {
	Placed   int64 `db:"placed"`
	Released int64 `db:"released"`
}

func generationOf(ctx context.Context, tx *postgres.Tx) (generation, error) {
	var holds generation
	err := tx.GetContext(ctx, &holds, `
		SELECT coalesce(max(hold_id), 0) AS placed, count(released_at) AS released
		  FROM application_holds`)
	if err != nil {
		return generation{}, fmt.Errorf("looking at the legal holds: %w", err)
	}
	return holds, nil
}

// dropKept removes the new tables if they were not exchanged.
func (s *Service) dropKept(ctx context.Context, m month) error {
	_, err := s.DB.ExecContext(ctx,
		m.in(`DROP TABLE IF EXISTS attempts{k}, deliveries{k}, events{k}`))
	if err != nil {
		return fmt.Errorf("dropping unused tables: %w", err)
	}
	return nil
}
