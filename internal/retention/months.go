package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

const (
	// lockPatience bounds the wait for each lock of the exchange. Anyone who comes
	// after it in the queue waits as long, so it is short.
	lockPatience = 50 * time.Millisecond
	// exchangeTries is how often the locks are asked for, and exchangeRest how
	// long everybody else has in between.
	exchangeTries = 40
	exchangeRest  = 250 * time.Millisecond
)

// parents are the partitioned tables, from the outermost: rows of one refer to
// rows of the next.
var parents = []string{"attempts", "deliveries", "events"}

// month is one month of the partitioned tables.
type month struct{ begin, end time.Time }

func monthAt(begin time.Time) month { return month{begin, begin.AddDate(0, 1, 0)} }

func (m month) String() string { return m.begin.Format("2006-01") }

// partition is the name of the month's table, as drawbridge_make_partitions
// gives it.
func (m month) partition(parent string) string { return parent + m.begin.Format("_y2006m01") }

func (m month) kept(parent string) string { return m.partition(parent) + "_kept" }

// months returns those whose metadata is due, oldest first.
func (s *Service) months(ctx context.Context, cutoff time.Time) ([]month, error) {
	var names []string
	err := s.DB.SelectContext(ctx, &names, `
		SELECT c.relname
		  FROM pg_inherits i
		  JOIN pg_class c ON c.oid = i.inhrelid
		 WHERE i.inhparent = ANY (ARRAY['attempts', 'deliveries', 'events']::regclass[])`)
	if err != nil {
		return nil, fmt.Errorf("listing the months: %w", err)
	}
	var due []month
	for _, name := range names {
		_, suffix, _ := strings.Cut(name, "_y")
		begin, err := time.Parse("2006m01", suffix)
		if err == nil && !monthAt(begin).end.After(cutoff) && !slices.Contains(due, monthAt(begin)) {
			due = append(due, monthAt(begin))
		}
	}
	slices.SortFunc(due, func(a, b month) int { return a.begin.Compare(b.begin) })
	return due, nil
}

// removeMonths takes the months off that are due and whose bodies are gone.
func (s *Service) removeMonths(
	ctx context.Context, settings Settings, now time.Time, report *Report,
) error {
	due, err := s.months(ctx, settings.monthCutoff(now))
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

// removeMonth tells whether it removed anything.
func (s *Service) removeMonth(ctx context.Context, m month) (bool, error) {
	quiet, err := s.isQuiet(ctx, m)
	if err != nil || !quiet {
		return false, err
	}
	if err := s.dropKept(ctx, m); err != nil {
		return false, err
	}
	var holds generation // that the copy goes by
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
		if holds, err = generationOf(ctx, tx); err != nil {
			return err
		}
		for _, table := range survivors {
			if err := fill(ctx, tx, m, table.parent, table.fill); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, errors.Join(err, s.dropKept(context.WithoutCancel(ctx), m))
	}
	worthwhile, err := s.isWorthwhile(ctx, m)
	if err == nil && worthwhile {
		worthwhile, err = s.exchangeSoon(ctx, m, holds)
	}
	return worthwhile && err == nil, errors.Join(err, s.dropKept(context.WithoutCancel(ctx), m))
}

// isQuiet tells whether no delivery can come into the month any more. Until every body that may
// go was removed, a re-send could still be made of its events; and what waits in the outbox gets
// deliveries as of when it was recorded.
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

// survivors are the statements that fill the new tables, in the order in which
// they refer to each other. {m} stands for the month's tables, {k} for the new
// ones, $1 and $2 are the bounds of the month.
//
//nolint:unqueryvet // a copy has every column, also those of later migrations
var survivors = []struct{ parent, fill string }{
	{"deliveries", `
		SELECT d.*
		  FROM deliveries{m} d
		 WHERE d.application_uid IN (` + legallyHeld + `)
		UNION ALL
		SELECT d.*
		  FROM deliveries{m} d
		 WHERE d.state IN ('pending', 'retrying')
		   AND (d.application_uid IS NULL OR d.application_uid NOT IN (` + legallyHeld + `))`},
	{"attempts", `
		SELECT a.*
		  FROM attempts{m} a
		  JOIN deliveries{k} d ON d.delivery_uid = a.delivery_uid
		                      AND d.created_at = a.delivery_created_at`},
	{"events", `
		SELECT e.*
		  FROM events{m} e
		 WHERE e.application_uid IN (` + legallyHeld + `)
		    OR e.event_uid IN (SELECT event_uid FROM deliveries{k})
		    OR e.event_uid IN (SELECT event_uid
		                         FROM deliveries
		                        WHERE event_at >= $1
		                          AND event_at < $2
		                          AND (created_at < $1 OR created_at >= $2))`},
}

func fill(ctx context.Context, tx *postgres.Tx, m month, parent, query string) error {
	kept := pq.QuoteIdentifier(m.kept(parent))
	_, err := tx.ExecContext(ctx, fmt.Sprintf(`CREATE TABLE %s (LIKE %s INCLUDING ALL)`,
		kept, pq.QuoteIdentifier(m.partition(parent))))
	if err != nil {
		return fmt.Errorf("making a table for what stays of %s: %w", parent, err)
	}
	suffix := m.begin.Format("_y2006m01")
	query = strings.NewReplacer("{m}", suffix, "{k}", suffix+"_kept").Replace(query)
	query = strings.NewReplacer("$2", literal(m.end), "$1", literal(m.begin)).Replace(query)
	if _, err := tx.ExecContext(ctx, `INSERT INTO `+kept+query); err != nil {
		return fmt.Errorf("keeping what stays of %s: %w", parent, err)
	}
	return nil
}

func literal(at time.Time) string {
	return pq.QuoteLiteral(at.Format(time.RFC3339)) + "::timestamptz"
}

// isWorthwhile tells whether the month holds anything beside its survivors, or
// has none and can go whole.
func (s *Service) isWorthwhile(ctx context.Context, m month) (bool, error) {
	whole := true
	for _, parent := range parents {
		var kept, some int
		table := pq.QuoteIdentifier(m.kept(parent))
		if err := s.DB.GetContext(ctx, &kept, `SELECT count(*) FROM `+table); err != nil {
			return false, fmt.Errorf("counting what stays of %s: %w", parent, err)
		}
		err := s.DB.GetContext(ctx, &some, fmt.Sprintf(
			`SELECT count(*) FROM (SELECT FROM %s LIMIT $1) AS counted`,
			pq.QuoteIdentifier(m.partition(parent))), kept+1)
		if err != nil {
			return false, fmt.Errorf("counting %s: %w", parent, err)
		}
		if some > kept {
			return true, nil
		}
		whole = whole && kept == 0
	}
	return whole, nil
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

// dropKept removes the new tables that did not take their place.
func (s *Service) dropKept(ctx context.Context, m month) error {
	for _, parent := range parents {
		_, err := s.DB.ExecContext(ctx,
			`DROP TABLE IF EXISTS `+pq.QuoteIdentifier(m.kept(parent)))
		if err != nil {
			return fmt.Errorf("dropping an unused table: %w", err)
		}
	}
	return nil
}
