package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// listsVersion is the migration's number.
const listsVersion = 12

// listTables hold the saved views of lists.
const listTables = `
	CREATE TABLE IF NOT EXISTS saved_views (
		view_uid   uuid PRIMARY KEY,
		user_uid   uuid NOT NULL REFERENCES users,
		name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
		path       text NOT NULL CHECK (length(path) BETWEEN 1 AND 200),
		query      text NOT NULL CHECK (length(query) <= 2000),
		created_at timestamptz NOT NULL,
		UNIQUE (user_uid, path, name)
	);`

// partitionedIndex is an index of a partitioned table.
type partitionedIndex struct {
	name, table string
	// definition is what follows the table's name.
	definition string
}

// listIndexes let the filters of the delivery list, alone and combined, be
// answered by an index. The first two grow only with attempts that fail and
// endpoints that answer another success than 200, the next three only with
// what they are named after: a delivery that goes well costs none of them
// anything.
var listIndexes = []partitionedIndex{
	{"deliveries_trouble", "deliveries", `(created_at DESC, delivery_uid DESC, state,
		last_error_class, last_http_status, event, subscription_uid)
		WHERE last_error_class IS NOT NULL OR state IN ('failed', 'retrying')`},
	{"deliveries_other_success", "deliveries", `(last_http_status, created_at DESC,
		delivery_uid DESC) WHERE last_http_status <> 200 AND last_http_status < 300`},
	{"deliveries_slow", "deliveries", `(created_at DESC, delivery_uid DESC)
		WHERE last_duration_us >= 5000000`},
	{"deliveries_tests", "deliveries", `(created_at DESC, delivery_uid DESC) WHERE test`},
	{"deliveries_resent", "deliveries", `(created_at DESC, delivery_uid DESC)
		WHERE resend_of IS NOT NULL`},
	// Finds the later deliveries of an old month's events; it costs writers next to nothing.
	{"deliveries_event_at", "deliveries", `USING brin (event_at) WITH (autosummarize = on)`},
	// The console lists a partner's events, newest first. What stands behind the order
	// leaves out those of other merchants and kinds without a look at their rows.
	{"events_partner", "events", `(partner_uid, occurred_at DESC, event_uid DESC, merchant_uid,
		kind)`},
}

// searchIndexes find partners, merchants and subscriptions by how their names
// begin; these tables are small.
const searchIndexes = `
	CREATE INDEX IF NOT EXISTS partners_search
		ON partners (lower(name) text_pattern_ops);
	CREATE INDEX IF NOT EXISTS merchants_search
		ON merchants (lower(name) text_pattern_ops);
	CREATE INDEX IF NOT EXISTS subscriptions_search
		ON subscriptions (lower(substring(url FROM '^[a-z]+://(.*)$')) text_pattern_ops);`

// plainIndex is an index of a table without partitions.
type plainIndex struct {
	name string
	// definition begins with the table's name.
	definition string
}

// applicationIndexes find applications by how references and addresses begin.
// An application costs one insertion into each, once.
var applicationIndexes = []plainIndex{
	{"applications_email_search", `applications (lower(borrower_email) text_pattern_ops)`},
	{"applications_reference_search", `applications (lower(external_reference) text_pattern_ops)
		WHERE external_reference IS NOT NULL`},
}

// listsUp runs outside a transaction, so that indexes of big tables can be
// built while they are written to. Whatever it began before, it completes.
func listsUp(ctx context.Context, db *sql.DB) error {
	if err := execPromptly(ctx, db, listTables+searchIndexes); err != nil {
		return fmt.Errorf("making the tables of lists: %w", err)
	}
	return buildAll(ctx, db, applicationIndexes, listIndexes)
}

// buildAll builds those indexes that are missing, of tables without and with
// partitions.
func buildAll(
	ctx context.Context, db *sql.DB, plain []plainIndex, partitioned []partitionedIndex,
) error {
	for _, index := range plain {
		if err := index.build(ctx, db); err != nil {
			return fmt.Errorf("building the index %s: %w", index.name, err)
		}
	}
	for _, index := range partitioned {
		if err := index.build(ctx, db); err != nil {
			return fmt.Errorf("building the index %s: %w", index.name, err)
		}
	}
	return nil
}

func listsDown(ctx context.Context, db *sql.DB) error {
	names := []string{
		"partners_search", "merchants_search", "subscriptions_search",
		"applications_email_search", "applications_reference_search",
	}
	for _, index := range listIndexes {
		names = append(names, index.name)
	}
	_, err := db.ExecContext(ctx, `DROP INDEX IF EXISTS `+strings.Join(names, ", ")+`;
		DROP TABLE IF EXISTS saved_views`)
	if err != nil {
		return fmt.Errorf("taking the indexes of lists back: %w", err)
	}
	return nil
}

// build makes the index without blocking writers.
func (i plainIndex) build(ctx context.Context, db *sql.DB) error {
	var whole bool
	err := db.QueryRowContext(ctx, `
		SELECT EXISTS (
		       SELECT 1 FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid)`,
		i.name).Scan(&whole)
	if err != nil || whole {
		return err
	}
	for _, step := range []string{
		// One that was interrupted is there, but not valid.
		`DROP INDEX CONCURRENTLY IF EXISTS ` + i.name,
		`CREATE INDEX CONCURRENTLY ` + i.name + ` ON ` + i.definition,
	} {
		if err := execUnbound(ctx, db, step); err != nil {
			return err
		}
	}
	return nil
}

// build makes the index on the parent, which every later partition inherits,
// then on each partition without blocking its writers, and joins them.
func (i partitionedIndex) build(ctx context.Context, db *sql.DB) error {
	err := execPromptly(ctx, db, fmt.Sprintf(`CREATE INDEX IF NOT EXISTS %s ON ONLY %s %s`,
		i.name, i.table, i.definition))
	if err != nil {
		return err
	}
	partitions, err := i.missing(ctx, db)
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		child := partition + strings.TrimPrefix(i.name, i.table)
		for _, step := range []string{
			// One that was interrupted is there, but not valid.
			`DROP INDEX CONCURRENTLY IF EXISTS ` + child,
			fmt.Sprintf(`CREATE INDEX CONCURRENTLY %s ON %s %s`, child, partition, i.definition),
		} {
			if err := execUnbound(ctx, db, step); err != nil {
				return fmt.Errorf("on %s: %w", partition, err)
			}
		}
		err := patiently(ctx, func() error {
			return execPromptly(ctx, db, fmt.Sprintf(`ALTER INDEX %s ATTACH PARTITION %s`, i.name, child))
		})
		if err != nil {
			return fmt.Errorf("on %s: %w", partition, err)
		}
	}
	return nil
}

// missing lists the partitions that have no part of the index.
func (i partitionedIndex) missing(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, `
		SELECT part.relname
		  FROM pg_inherits parts
		  JOIN pg_class part ON part.oid = parts.inhrelid
		 WHERE parts.inhparent = $1::regclass
		   AND NOT EXISTS (
		       SELECT 1
		         FROM pg_inherits indexes
		         JOIN pg_index child ON child.indexrelid = indexes.inhrelid
		        WHERE indexes.inhparent = $2::regclass
		          AND child.indrelid = part.oid)
		 ORDER BY part.relname`, i.table, i.name)
	if err != nil {
		return nil, fmt.Errorf("listing partitions: %w", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("reading a partition: %w", err)
		}
		found = append(found, name)
	}
	return found, rows.Err()
}
