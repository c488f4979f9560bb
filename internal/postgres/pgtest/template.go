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

// templateName changes with the migrations and with the month: the migrations
// make the partitions of the months around the day on which they run.
func templateName(now time.Time) string {
	return "drawbridge_template_" + migrations.Hash() + "_" + now.UTC().Format("200601")
}

// copying is the way to copy a database that costs least: by files, and not page by
// page through the log, which takes three times as much of a processor. Version 14
// knows no other way, and no name for it.
const copying = `SELECT CASE WHEN current_setting('server_version_num')::int >= 150000
	THEN ' STRATEGY file_copy' ELSE '' END`

// makeTemplate makes the server's template unless it exists. Of processes that
// start together one makes it and the others wait.
func (s *server) makeTemplate(ctx context.Context) (err error) {
	connection, err := s.admin.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the test server: %w", err)
	}
	// Closing returns the connection to the pool with its lock, hence unlock.
	defer func() { err = errors.Join(err, connection.Close()) }()
	if _, err := connection.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return fmt.Errorf("waiting for the template: %w", err)
	}
	defer func() {
		_, unlockErr := connection.ExecContext(
			context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, templateLock)
		err = errors.Join(err, unlockErr)
	}()
	if err := connection.QueryRowContext(ctx, copying).Scan(&s.clone); err != nil {
		return fmt.Errorf("asking the test server for its version: %w", err)
	}
	var exists bool
	const query = `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	if err := connection.QueryRowContext(ctx, query, s.template).Scan(&exists); err != nil {
		return fmt.Errorf("looking for the template: %w", err)
	}
	if exists {
		return nil
	}
	return s.buildTemplate(ctx)
}

// buildTemplate migrates a draft and then gives it its name, so that nobody
// ever clones half a schema.
func (s *server) buildTemplate(ctx context.Context) error {
	draft := s.template + "_draft"
	if err := s.execute(ctx, `DROP DATABASE IF EXISTS %s WITH (FORCE)`, draft); err != nil {
		return fmt.Errorf("dropping an unfinished template: %w", err)
	}
	if err := s.execute(ctx, `CREATE DATABASE %s`, draft); err != nil {
		return fmt.Errorf("creating the template: %w", err)
	}
	db, err := sql.Open("postgres", withDatabase(s.base, draft))
	if err != nil {
		return fmt.Errorf("connecting to the template: %w", err)
	}
	if err := errors.Join(migrations.Up(ctx, db), db.Close()); err != nil {
		return fmt.Errorf("migrating the template: %w", err)
	}
	if err := s.execute(ctx, `ALTER DATABASE %s RENAME TO %s`, draft, s.template); err != nil {
		return fmt.Errorf("naming the template: %w", err)
	}
	return nil
}
