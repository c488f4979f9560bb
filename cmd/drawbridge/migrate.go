package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"

	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/migrations"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply every missing migration; concurrent runs wait for each other."`
	Down   migrateDownCmd   `cmd:"" help:"Revert the newest migration."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations and whether each is applied."`
}

type migrateUpCmd struct{ migrateStatusCmd }

type migrateDownCmd struct{ migrateStatusCmd }

type migrateStatusCmd struct{ jsonFlag }

// Run migrates up and prints the resulting status.
func (cmd migrateUpCmd) Run(env *environment) error { return cmd.after(env, migrations.Up) }

// Run takes one migration back and prints the resulting status.
func (cmd migrateDownCmd) Run(env *environment) error {
	return cmd.after(env, func(ctx context.Context, db *sql.DB) error {
		_, err := migrations.Down(ctx, db)
		return err
	})
}

// Run prints the status.
func (cmd migrateStatusCmd) Run(env *environment) error {
	return cmd.after(env, func(context.Context, *sql.DB) error { return nil })
}

// after prints the status after a step.
func (cmd migrateStatusCmd) after(
	env *environment, step func(ctx context.Context, db *sql.DB) error,
) error {
	return env.withDatabase(func(_ config.Config, db *postgres.DB) error {
		if err := step(env.ctx, db.DB.DB); err != nil {
			return err
		}
		steps, err := migrations.Status(env.ctx, db.DB.DB)
		if err != nil {
			return err
		}
		return env.print(cmd.JSON, output{map[string]any{"migrations": steps}, func(w io.Writer) {
			for _, step := range steps {
				state := "missing"
				if step.Applied {
					state = "applied"
				}
				fmt.Fprintf(w, "%04d  %-8s %s\n", step.Version, state, step.Name)
			}
		}})
	})
}
