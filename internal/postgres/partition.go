package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/lib/pq"
)

// Partitioning describes how tables are partitioned by time, and how far ahead.
type Partitioning struct {
	// Tables are partitioned alike.
	Tables []string
	// Unit is what a partition covers, "day" or "month" in UTC; Format is the suffix of the table's
	// name, as a to_char format.
	Unit, Format string
	// Make is the statement that makes all partitions from the time $1 until $2 units later, and
	// returns how many tables it made.
	Make string
	// Ahead is how many units beyond the first one get partitions; Needed is how many must have them,
	// so that the rest can wait.
	Ahead, Needed int
}

// months partitions the tables that grow with every event: far enough ahead that a job which fails
// for weeks does no harm.
var months = Partitioning{
	Tables: []string{"events", "deliveries", "attempts"}, Unit: "month", Format: `"_y"YYYY"m"MM`,
	Make:  `SELECT drawbridge_make_partitions($1, $1, $2)`,
	Ahead: 3, Needed: 1,
}

// MakePartitions makes the monthly partitions of events, deliveries and
// attempts from the current month on and returns how many tables it made.
func (db *DB) MakePartitions(ctx context.Context) (int, error) {
	return db.MakeAhead(ctx, months, db.Now())
}

// MakeAhead makes the partitions that are missing from a time on, and returns how many tables it
// made. It takes no lock when there is nothing to make. A new partition locks its parent against
// all access: if something like a long export holds the table, MakeAhead leaves the partition for
// the next run, which is no error unless the partition is needed.
func (db *DB) MakeAhead(ctx context.Context, p Partitioning, from time.Time) (int, error) {
	from = from.UTC()
	var missing, needed bool
	made := 0
	err := db.InTx(ctx, func(tx *Tx) error {
		row := tx.QueryRowxContext(ctx, `
			SELECT coalesce(bool_or(is_missing), false),
			       coalesce(bool_or(is_missing AND step <= $6), false)
			  FROM unnest($2::text[]) AS parent,
			       generate_series(0, $5) AS step,
			       LATERAL (SELECT to_regclass(parent || to_char(
			           date_trunc($3, $1::timestamptz AT TIME ZONE 'UTC')
			             + step * ('1 ' || $3)::interval, $4)) IS NULL) AS found (is_missing)`,
			from, pq.Array(p.Tables), p.Unit, p.Format, p.Ahead, p.Needed)
		if err := row.Scan(&missing, &needed); err != nil || !missing {
			return err
		}
		patience := `SET LOCAL lock_timeout = '100ms'`
		if needed {
			patience = `SET LOCAL lock_timeout = '1s'`
		}
		if _, err := tx.ExecContext(ctx, patience); err != nil {
			return err
		}
		return tx.GetContext(ctx, &made, p.Make, from, p.Ahead)
	})
	if IsLockTimeout(err) && !needed {
		slog.WarnContext(ctx, "partitions are made later: something else holds the table",
			"tables", p.Tables)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("making partitions of %s: %w", strings.Join(p.Tables, ", "), err)
	}
	return made, nil
}

// Owns reports whether this connection's role may alter a table. The service may run as a role that
// owns nothing; then what needs the owner is left to the owner.
func (db *DB) Owns(ctx context.Context, table string) (bool, error) {
	var owns bool
	err := db.GetContext(ctx, &owns, `
		SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = $1::regclass`, table)
	if err != nil {
		return false, fmt.Errorf("asking who owns %s: %w", table, err)
	}
	return owns, nil
}
