package postgres

import (
	"context"
	"fmt"
)

// partitionsAhead is for how many months beyond the current one partitions
// exist: enough that a job which fails for weeks harms nobody.
const partitionsAhead = 3

// MakePartitions makes the monthly partitions of events, deliveries and
// attempts from the current month on and returns how many tables it made. It takes
// no lock when there is nothing to make.
func (db *DB) MakePartitions(ctx context.Context) (int, error) {
	var made int
	err := db.InTx(ctx, func(tx *Tx) error {
		var missing bool
		err := tx.GetContext(ctx, &missing, `
			SELECT bool_or(to_regclass(parent || to_char(
			           date_trunc('month', $1::timestamptz AT TIME ZONE 'UTC')
			             + make_interval(months => month),
			           '"_y"YYYY"m"MM')) IS NULL)
			  FROM unnest(ARRAY['events', 'deliveries', 'attempts']) AS parent,
			       generate_series(0, $2) AS month`, tx.Now, partitionsAhead)
		if err != nil || !missing {
			return err
		}
		// A new partition locks its parent for everybody: behind a long export,
		// it is better made an hour later.
		if _, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
			return err
		}
		return tx.GetContext(ctx, &made,
			`SELECT drawbridge_make_partitions($1, $1, $2)`, tx.Now, partitionsAhead)
	})
	if err != nil {
		return 0, fmt.Errorf("making partitions: %w", err)
	}
	return made, nil
}

// Owns tells whether this connection's role may alter a table. The service may
// run as a role that owns nothing; what needs an owner is left to one then.
func (db *DB) Owns(ctx context.Context, table string) (bool, error) {
	var owns bool
	err := db.GetContext(ctx, &owns, `
		SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = $1::regclass`, table)
	if err != nil {
		return false, fmt.Errorf("asking who owns %s: %w", table, err)
	}
	return owns, nil
}
