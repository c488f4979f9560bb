package retention

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

// exchangeSoon tries to get the locks until it works. It tells whether the
// month was exchanged; if not, somebody always had a lock, or a hold changed,
// and the next run tries again.
func (s *Service) exchangeSoon(ctx context.Context, m month, holds generation) (bool, error) {
	for try := 0; ; try++ {
		done, err := s.exchange(ctx, m, holds)
		if !postgres.IsLockTimeout(err) {
			return done, err
		}
		if try == exchangeTries || !wait(ctx, exchangeRest) {
			slog.WarnContext(ctx, "retention found no moment to remove a month", "month", m.String())
			return false, nil // the next run tries again
		}
	}
}

// exchange puts the new tables in the place of the month's partitions. It does
// not, when a hold was placed or released since the survivors were copied.
//
// The locks come in the order in which the rest of the program takes them: events,
// deliveries, attempts. No other table is locked, since none is referred to.
func (s *Service) exchange(ctx context.Context, m month, holds generation) (bool, error) {
	done := false
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		keep, err := anyKept(ctx, tx, m)
		if err != nil {
			return err
		}
		if err := lockAll(ctx, tx); err != nil {
			return err
		}
		now, err := generationOf(ctx, tx)
		if err != nil || now != holds {
			return err
		}
		if err := copyUnsettledAgain(ctx, tx, m); err != nil {
			return err
		}
		for _, parent := range parents {
			partition := pq.QuoteIdentifier(m.partition(parent))
			statements := []string{`DROP TABLE IF EXISTS ` + partition}
			if keep {
				statements = append(statements,
					fmt.Sprintf(`ALTER TABLE %s RENAME TO %s`, pq.QuoteIdentifier(m.kept(parent)), partition),
					fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)`,
						parent, partition, literal(m.begin), literal(m.end)))
			}
			for _, statement := range statements {
				if _, err := tx.ExecContext(ctx, statement); err != nil {
					return fmt.Errorf("exchanging %s: %w", m.partition(parent), err)
				}
			}
		}
		done = true
		return nil
	})
	return done && err == nil, err
}

// anyKept tells whether anything of the month stays; then all of its tables do.
func anyKept(ctx context.Context, tx *postgres.Tx, m month) (bool, error) {
	for _, parent := range parents {
		var some bool
		err := tx.GetContext(ctx, &some,
			`SELECT EXISTS (SELECT FROM `+pq.QuoteIdentifier(m.kept(parent))+`)`)
		if err != nil || some {
			return some, err
		}
	}
	return false, nil
}

// lockAll gets every lock that the exchange needs, each with short patience.
func lockAll(ctx context.Context, tx *postgres.Tx) error {
	statements := []string{
		fmt.Sprintf(`SET LOCAL lock_timeout = '%dms'`, lockPatience.Milliseconds()),
		`LOCK TABLE application_holds IN SHARE MODE`,
	}
	for _, parent := range []string{"events", "deliveries", "attempts"} {
		statements = append(statements, `LOCK TABLE ONLY `+parent+` IN ACCESS EXCLUSIVE MODE`)
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("locking the month: %w", err)
		}
	}
	return nil
}

// copyUnsettledAgain takes over what happened since they were copied to deliveries that had not
// arrived, by themselves or by a re-send; nothing else of an old month changes.
func copyUnsettledAgain(ctx context.Context, tx *postgres.Tx, m month) error {
	suffix := m.begin.Format("_y2006m01")
	names := strings.NewReplacer("{m}", suffix, "{k}", suffix+"_kept")
	for _, statement := range []string{
		`CREATE TEMP TABLE unsettled ON COMMIT DROP AS
			SELECT delivery_uid, created_at
			  FROM deliveries{k}
			 WHERE state <> 'delivered' AND made_good_by IS NULL`,
		`DELETE FROM attempts{k} a
			  USING unsettled o
			  WHERE a.delivery_uid = o.delivery_uid AND a.delivery_created_at = o.created_at`,
		`DELETE FROM deliveries{k} d
			  USING unsettled o
			  WHERE d.delivery_uid = o.delivery_uid AND d.created_at = o.created_at`,
		`INSERT INTO deliveries{k}
			SELECT d.*
			  FROM unsettled o
			  JOIN deliveries{m} d ON d.delivery_uid = o.delivery_uid AND d.created_at = o.created_at`,
		`INSERT INTO attempts{k}
			SELECT a.*
			  FROM unsettled o
			  JOIN attempts{m} a ON a.delivery_uid = o.delivery_uid
			                    AND a.delivery_created_at = o.created_at`,
	} {
		if _, err := tx.ExecContext(ctx, names.Replace(statement)); err != nil {
			return fmt.Errorf("copying deliveries again: %w", err)
		}
	}
	return nil
}
