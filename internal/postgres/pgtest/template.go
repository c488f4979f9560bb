package pgtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"drawbridge/migrations"
)

// templateLock is the advisory lock under which a template is made. Its value
// has no meaning but must not change.
const templateLock = 7_305_140_322

// template is a database that others are copied from.
type template string

const (
	// whole is a database as the migrations leave it.
	whole template = ""
	// near is a copy without the partitions of later months and days, which are made when they are
	// missing, as in production.
	near template = "_near"
)

// templateNames changes with the migrations and with the month: the migrations make the partitions
// of the months around the day on which they run.
func templateNames(now time.Time) map[template]string {
	name := "drawbridge_template_" + migrations.Hash() + "_" + now.UTC().Format("200601")
	return map[template]string{whole: name, near: name + string(near)}
}

// copying is the cheapest strategy to copy a database: by files, and not page by page through the
// write-ahead log, which takes three times as much processor time. Version 14 has only the former,
// and no name for it.
const copying = `SELECT CASE WHEN current_setting('server_version_num')::int >= 150000
	THEN ' STRATEGY file_copy' ELSE '' END`

const dropLater = `
	DO $$
	DECLARE later text;
	BEGIN
		FOR later IN SELECT relname FROM pg_class
			WHERE relispartition AND relkind = 'r'
			  AND (substring(relname FROM 'y\d{4}m\d{2}$')
			           > to_char(now() AT TIME ZONE 'UTC' + interval '1 month', '"y"YYYY"m"MM') OR
			       substring(relname FROM 'y\d{4}m\d{2}d\d{2}$')
			           > to_char(now() AT TIME ZONE 'UTC' + interval '1 day', '"y"YYYY"m"MM"d"DD'))
		LOOP
			EXECUTE 'DROP TABLE ' || quote_ident(later);
		END LOOP;
	END $$`

// makeTemplates makes those of the server's templates that do not exist. When several processes
// start together, one makes them and the others wait.
func (s *server) makeTemplates(ctx context.Context) (err error) {
	connection, err := s.admin.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the test server: %w", err)
	}
	// Closing returns the connection to the pool with its lock, hence unlock.
	defer func() { err = errors.Join(err, connection.Close()) }()
	if _, err := connection.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return fmt.Errorf("waiting for the templates: %w", err)
	}
	defer func() {
		_, unlockErr := connection.ExecContext(
			context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, templateLock)
		err = errors.Join(err, unlockErr)
	}()
	if err := connection.QueryRowContext(ctx, copying).Scan(&s.clone); err != nil {
		return fmt.Errorf("asking the test server for its version: %w", err)
	}
	for _, made := range []struct {
		template
		of   string
		fill func(context.Context, *sql.DB) error
	}{
		{whole, "template1", migrations.Up},
		{near, s.templates[whole], func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, dropLater)
			return err
		}},
	} {
		name := s.templates[made.template]
		var exists bool
		const query = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
		if err := connection.QueryRowContext(ctx, query, name).Scan(&exists); err != nil {
			return fmt.Errorf("looking for the template %s: %w", name, err)
		}
		if exists {
			continue
		}
		if err := s.makeTemplate(ctx, name, made.of, made.fill); err != nil {
			return fmt.Errorf("making the template %s: %w", name, err)
		}
	}
	return nil
}

// makeTemplate fills a copy of another database before giving it its name, so that nobody ever
// clones half a schema.
func (s *server) makeTemplate(
	ctx context.Context, name, of string, fill func(context.Context, *sql.DB) error,
) error {
	draft := name + "_draft"
	if err := s.execute(ctx, `DROP DATABASE IF EXISTS %s WITH (FORCE)`, draft); err != nil {
		return err
	}
	if err := s.execute(ctx, `CREATE DATABASE %s TEMPLATE %s`+s.clone, draft, of); err != nil {
		return err
	}
	db, err := sql.Open("postgres", withDatabase(s.base, draft))
	if err != nil {
		return err
	}
	if err := errors.Join(fill(ctx, db), db.Close()); err != nil {
		return err
	}
	return s.execute(ctx, `ALTER DATABASE %s RENAME TO %s`, draft, name)
}
