package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgserver"
	"drawbridge/migrations"
)

// templateName is the database that the others are copies of.
const templateName = "bench_template"

// cluster is the Postgres server of a run.
type cluster struct {
	server *pgserver.Server
	admin  *postgres.DB
	// folder holds what the run keeps: the server's data, uploads, a program.
	folder string
	made   int
}

// startCluster starts a server with the schema in place. It keeps its promises
// as in production, fsync included, unless the options say volatile.
func startCluster(ctx context.Context, o options, progress io.Writer) (_ *cluster, err error) {
	folder, err := os.MkdirTemp(o.dir, "drawbridge-bench-*")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the run: %w", err)
	}
	c := &cluster{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	//nolint:gosec // G302: the server runs as another user than root
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, fmt.Errorf("opening the run's folder: %w", err)
	}
	start := pgserver.Start
	if o.volatile {
		start = pgserver.StartTemporary
	}
	c.server, err = start(ctx, pgserver.Options{
		Dir:      folder,
		Progress: func(line string) { fmt.Fprintln(progress, line) },
	})
	if err != nil {
		return nil, err
	}
	if c.admin, err = postgres.Open(ctx, c.server.URL()); err != nil {
		return nil, err
	}
	if _, err = c.admin.ExecContext(ctx, `CREATE DATABASE `+templateName); err != nil {
		return nil, fmt.Errorf("making the template: %w", err)
	}
	if err := c.migrate(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *cluster) migrate(ctx context.Context) error {
	db, err := postgres.Open(ctx, c.url(templateName))
	if err != nil {
		return err
	}
	return errors.Join(migrations.Up(ctx, db.DB.DB), db.Close())
}

// url is that of one of the server's databases.
func (c *cluster) url(database string) string {
	address, err := url.Parse(c.server.URL())
	if err != nil {
		panic(fmt.Sprintf("the server's own URL is malformed: %v", err))
	}
	address.Path = "/" + database
	return address.String()
}

// newDatabase makes an empty database with the schema and returns its URL.
func (c *cluster) newDatabase(ctx context.Context) (string, error) {
	c.made++
	name := fmt.Sprintf("bench_%d", c.made)
	_, err := c.admin.ExecContext(ctx, `CREATE DATABASE `+name+` TEMPLATE `+templateName)
	if err != nil {
		return "", fmt.Errorf("making database %s: %w", name, err)
	}
	return c.url(name), nil
}

// settle writes out what is dirty, so that a measurement does not pay for the
// preparations, and gives the planner its statistics of the tables that have rows,
// as autovacuum does.
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

// stop ends the server and removes its data.
func (c *cluster) stop() error {
	var errs []error
	if c.admin != nil {
		errs = append(errs, c.admin.Close())
	}
	if c.server != nil {
		// The data is elsewhere when the server's user may not enter the folder.
		data := c.server.Folder()
		//nolint:gosec // G703: it is the folder that the server made
		errs = append(errs, c.server.Stop(), os.RemoveAll(data))
	}
	//nolint:gosec // G703: it is the folder that startCluster made
	return errors.Join(append(errs, os.RemoveAll(c.folder))...)
}
