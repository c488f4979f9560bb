package main

import (
	"fmt"
	"io"

	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/migrations"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" help:"Apply every missing migration; concurrent runs wait for each other."`
	Down   migrateDownCmd   `cmd:"" help:"Take back the newest migration."`
	Status migrateStatusCmd `cmd:"" help:"List the migrations."`
}

type migrateUpCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

type migrateDownCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

type migrateStatusCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run migrates up and prints the resulting status.
func (cmd migrateUpCmd) Run(env *environment) error {
	return env.withDatabase(func(_ config.Config, db *postgres.DB) error {
		if err := migrations.Up(env.ctx, db.DB.DB); err != nil {
			return err
		}
		return env.printStatus(db, cmd.JSON)
	})
}

// Run takes one migration back and prints the resulting status.
func (cmd migrateDownCmd) Run(env *environment) error {
	return env.withDatabase(func(_ config.Config, db *postgres.DB) error {
		if _, err := migrations.Down(env.ctx, db.DB.DB); err != nil {
			return err
		}
		return env.printStatus(db, cmd.JSON)
	})
}

// Run prints the status.
func (cmd migrateStatusCmd) Run(env *environment) error {
	return env.withDatabase(func(_ config.Config, db *postgres.DB) error {
		return env.printStatus(db, cmd.JSON)
	})
}

func (env *environment) printStatus(db *postgres.DB, asJSON bool) error {
	steps, err := migrations.Status(env.ctx, db.DB.DB)
	if err != nil {
		return err
	}
	return env.print(asJSON, map[string]any{"migrations": steps}, func(w io.Writer) {
		for _, step := range steps {
			state := "missing"
			if step.Applied {
				state = "applied"
			}
			fmt.Fprintf(w, "%04d  %-8s %s\n", step.Version, state, step.Name)
		}
	})
}
