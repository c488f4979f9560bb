package main

import (
	"errors"
	"fmt"
	"io"

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

// withDatabase opens the database as it is, without touching its schema.
func (env *environment) withDatabase(do func(db *database) error) (err error) {
	settings, err := env.config()
	if err != nil {
		return err
	}
	db, err := env.open(settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	return do(db)
}

// Run migrates up and prints the resulting status.
func (cmd migrateUpCmd) Run(env *environment) error {
	return env.withDatabase(func(db *database) error {
		if err := migrations.Up(env.ctx, db.DB.DB.DB); err != nil {
			return err
		}
		return env.printStatus(db, cmd.JSON)
	})
}

// Run takes one migration back and prints the resulting status.
func (cmd migrateDownCmd) Run(env *environment) error {
	return env.withDatabase(func(db *database) error {
		if _, err := migrations.Down(env.ctx, db.DB.DB.DB); err != nil {
			return err
		}
		return env.printStatus(db, cmd.JSON)
	})
}

// Run prints the status.
func (cmd migrateStatusCmd) Run(env *environment) error {
	return env.withDatabase(func(db *database) error { return env.printStatus(db, cmd.JSON) })
}

func (env *environment) printStatus(db *database, asJSON bool) error {
	steps, err := migrations.Status(env.ctx, db.DB.DB.DB)
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
