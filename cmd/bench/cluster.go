package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgserver"
	"drawbridge/migrations"
)

// templateName is the database from which the others are copied.
const templateName = "bench_template"

// cluster is the Postgres server of a run.
type cluster struct {
	server *pgserver.Server
	admin  *postgres.DB
	// folder holds the files of the run: the server's data, uploads, a program.
	folder string
	made   int
}

// serverOptions say where the server keeps its data, and whether it is as durable as in
// production, fsync included.
type serverOptions struct {
	dir      string
	volatile bool
}

// startCluster starts a server with the schema in place; open stops it.
func startCluster(w *world, open *cleanup, o serverOptions) (*cluster, error) {
	folder, err := os.MkdirTemp(o.dir, "drawbridge-bench-*")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the run: %w", err)
	}
	open.add(func() error { return os.RemoveAll(folder) })
	//nolint:gosec // G302: the server runs as another user than root
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, fmt.Errorf("opening the run's folder: %w", err)
	}
	start := pgserver.Start
	if o.volatile {
		start = pgserver.StartTemporary
	}
	c := &cluster{folder: folder}
	c.server, err = start(w.ctx, pgserver.Options{
		Dir: folder, Progress: func(line string) { w.say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	// The data is elsewhere if the server's user may not enter the folder.
	data := c.server.Folder()
	open.add(func() error { return errors.Join(c.server.Stop(), os.RemoveAll(data)) })
	if c.admin, err = postgres.Open(w.ctx, c.server.URL()); err != nil {
		return nil, err
	}
	open.add(c.admin.Close)
	if _, err = c.admin.ExecContext(w.ctx, `CREATE DATABASE `+templateName); err != nil {
		return nil, fmt.Errorf("making the template: %w", err)
	}
	db, err := postgres.Open(w.ctx, c.url(templateName))
	if err != nil {
		return nil, err
	}
	return c, errors.Join(migrations.Up(w.ctx, db.DB.DB), db.Close())
}

// url is the URL of one of the server's databases.
func (c *cluster) url(database string) string {
	address, err := url.Parse(c.server.URL())
	if err != nil {
		panic(fmt.Sprintf("the server's own URL is malformed: %v", err))
	}
	address.Path = "/" + database
	return address.String()
}

// newDatabase creates a database with the schema but without rows, and returns its URL.
func (c *cluster) newDatabase(ctx context.Context) (string, error) {
	c.made++
	name := fmt.Sprintf("bench_%d", c.made)
	_, err := c.admin.ExecContext(ctx, `CREATE DATABASE `+name+` TEMPLATE `+templateName)
	if err != nil {
		return "", fmt.Errorf("making database %s: %w", name, err)
	}
	return c.url(name), nil
}

// settle writes out dirty buffers, so that a measurement does not pay for the preparations, and
// updates the planner's statistics of tables that have rows, as autovacuum does.
func settle(ctx context.Context, db *postgres.DB) error {
	var filled []string
	err := db.SelectContext(ctx, &filled, `
		SELECT format('%I', relname)
		  FROM pg_stat_user_tables
		 WHERE n_tup_ins > 0`)
	if err != nil {
		return fmt.Errorf("listing the tables with rows: %w", err)
	}
	statements := []string{`CHECKPOINT`}
	if len(filled) > 0 {
		statements = append(statements, `VACUUM (ANALYZE) `+strings.Join(filled, ", "))
	}
	for _, statement := range slices.Backward(statements) {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("settling the database: %w", err)
		}
	}
	return nil
}
