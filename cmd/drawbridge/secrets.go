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
		var report reencrypt.Report
		if cmd.Check {
			report, err = service.Check(env.ctx)
		} else {
			report, err = env.rotateKey(service)
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

// rotateKey re-encrypts values. It writes to the audit log before it begins, so that a run which
// is killed leaves an entry too: each batch is encrypted in a separate transaction, and stays so.
func (env *environment) rotateKey(service *reencrypt.Service) (reencrypt.Report, error) {
	record := func(action string, after any) error {
		recorded := entry(action, service.Keys.Current(), "", after)
		recorded.SubjectKind = "secrets_key"
		return env.record(&operator.Service{DB: service.DB}, recorded)
	}
	if err := record("secrets.rotate_begin", nil); err != nil {
		return reencrypt.Report{}, err
	}
	report, err := service.Rotate(env.ctx)
	if err == nil || report.Reencrypted > 0 {
		// The names are those that earlier entries use.
		err = errors.Join(err, record("secrets.rotate_key", map[string]int{
			"resealed": report.Reencrypted, "failed": len(report.Failed),
		}))
	}
	return report, err
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
