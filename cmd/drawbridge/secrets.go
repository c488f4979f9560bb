package main

import (
	"errors"
	"fmt"
	"io"

	"drawbridge/internal/config"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/reencrypt"
)

type secretsCmd struct {
	RotateKey secretsRotateKeyCmd `cmd:"" help:"Re-encrypt every value not encrypted with the first key of DRAWBRIDGE_SECRETS_KEY. Safe while the service runs; can be interrupted and repeated."`
}

type secretsRotateKeyCmd struct {
	Check bool `help:"Only count how many values each key encrypts."`
	JSON  bool `name:"json" help:"Print one JSON document."`
}

// Run re-encrypts values, or counts them. It fails when values remain that the
// first key has not encrypted, or, with --check, that no key of the list opens.
func (cmd secretsRotateKeyCmd) Run(env *environment) error {
	return env.use(func(settings config.Config, db *postgres.DB) error {
		keys, err := keyring(settings)
		if err != nil {
			return err
		}
		service := &reencrypt.Service{DB: db, Keys: keys}
		work := service.Rotate
		if cmd.Check {
			work = service.Check
		}
		report, err := work(env.ctx)
		if !cmd.Check && (err == nil || report.Reencrypted > 0) {
			// Each batch of values was encrypted in a separate transaction, and remains encrypted if
			// a later one fails.
			recorded := entry("secrets.rotate_key", keys.Current(), "", map[string]int{
				"resealed": report.Reencrypted, "failed": len(report.Failed), // the names that earlier entries use
			})
			recorded.SubjectKind = "secrets_key"
			err = errors.Join(err, env.record(&operator.Service{DB: db}, recorded))
		}
		if err != nil {
			return err
		}
		err = env.print(cmd.JSON, output{report, func(w io.Writer) { printKeys(w, report) }})
		switch {
		case err != nil:
			return err
		case report.Lost > 0:
			return fmt.Errorf("%d values name a key that is not in DRAWBRIDGE_SECRETS_KEY; "+
				"put that key back after the first one", report.Lost)
		case !cmd.Check && report.Stale > 0:
			return fmt.Errorf("%d values are not encrypted with the key %s yet; "+
				"run the command again once it is the first key of every process", report.Stale, report.Current)
		}
		return nil
	})
}

func printKeys(w io.Writer, report reencrypt.Report) {
	fmt.Fprintf(w, "key that encrypts: %s, known keys %v\n", report.Current, report.Known)
	for _, column := range report.Columns {
		fmt.Fprintf(w, "  %-38s", column.Column)
		for _, id := range report.Used() {
			if number := column.Keys[id]; number > 0 {
				fmt.Fprintf(w, "  %d by %s", number, id)
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "re-encrypted: %d, changed meanwhile: %d, not encrypted with %s: %d\n",
		report.Reencrypted, report.Skipped, report.Current, report.Stale)
	for _, failure := range report.Failed {
		fmt.Fprintf(w, "  %s\n", failure)
	}
}
