package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
)

// checkupTimeout bounds one check of the doctor.
const checkupTimeout = 10 * time.Second

// finding is how a check ended.
type finding string

// The findings.
const (
	findingOK      finding = "ok"
	findingWarning finding = "warning"
	findingFailed  finding = "failed"
	findingSkipped finding = "skipped"
)

// checkup is one thing that the doctor looked at.
type checkup struct {
	Name    string  `json:"name"`
	Finding finding `json:"finding"`
	// Detail says what was found, Remedy what to do about it.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"`
}

type doctorCmd struct {
	HTTPS []string `help:"URL to reach over HTTPS as a webhook would (repeatable); without one, the newest subscriptions' hosts." name:"https" placeholder:"URL"`
	JSON  bool     `help:"Print one JSON document."`
}

// Help says what is looked at.
func (doctorCmd) Help() string {
	return "Looks at the settings, the database, the migrations, the clock, the keys (opens every " +
		"sealed value), whether a restored database holds everything, the bucket, the folder of " +
		"temporary files, the mail server (which it tells the sender) and the way out over HTTPS, and " +
		"says what to do about each fault. It sends no mail and no webhook, and changes nothing but a " +
		"small object in the bucket and a temporary file, which it removes. Ends with 1 when something " +
		"failed."
}

// Run makes every check that the faults before it leave possible.
func (cmd doctorCmd) Run(env *environment) error {
	checkups := cmd.examine(env)
	document := map[string]any{"checks": checkups}
	if err := env.print(cmd.JSON, document, func(w io.Writer) {
		for _, checkup := range checkups {
			fmt.Fprintf(w, "%-8s %-11s %s\n", checkup.Finding, checkup.Name, checkup.Detail)
			if checkup.Remedy != "" {
				fmt.Fprintf(w, "%-8s %-11s -> %s\n", "", "", checkup.Remedy)
			}
		}
	}); err != nil {
		return err
	}
	var failed []string
	for _, checkup := range checkups {
		if checkup.Finding == findingFailed {
			failed = append(failed, checkup.Name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("something is wrong with: %s", strings.Join(failed, ", "))
	}
	return nil
}

// examine checks the settings and the database, and over them the rest.
func (cmd doctorCmd) examine(env *environment) []checkup {
	settings, err := env.config()
	if err != nil {
		return []checkup{{
			Name: "settings", Finding: findingFailed, Detail: err.Error(),
			Remedy: "Mend the named variables; drawbridge config lists all of them.",
		}}
	}
	found := []checkup{{
		Name: "settings", Finding: findingOK,
		Detail: fmt.Sprintf("The settings can be used for %s.", settings.Env),
	}}
	for _, warning := range settings.Warnings() {
		found = append(found, checkup{
			Name: "settings", Finding: findingWarning, Detail: warning + ".",
		})
	}
	db, err := env.open(settings)
	if err != nil {
		return append(found, checkup{
			Name: "database", Finding: findingFailed, Detail: sentence(err),
			Remedy: "Check DATABASE_URL, and that Postgres runs and lets this machine in.",
		})
	}
	found = append(found, examineDatabase(env.ctx, db.DB)...)
	found = append(found, cmd.examineServices(env, settings, db.DB)...)
	if err := db.close(); err != nil {
		found = append(found, checkup{
			Name: "database", Finding: findingWarning, Detail: sentence(err),
		})
	}
	return found
}

// examineServices checks what needs more than the database.
func (cmd doctorCmd) examineServices(
	env *environment, settings config.Config, db *postgres.DB,
) []checkup {
	keys, err := keyring(settings)
	if err != nil {
		return []checkup{{
			Name: "keys", Finding: findingFailed, Detail: sentence(err),
			Remedy: "Set DRAWBRIDGE_SECRETS_KEY to the key that the database was used with.",
		}}
	}
	s, err := newServices(settings, db, keys)
	if err != nil {
		return []checkup{{Name: "settings", Finding: findingFailed, Detail: sentence(err)}}
	}
	var found []checkup
	for _, examine := range []func(ctx context.Context, s *services) []checkup{
		examineKeys, examineHold, examineBucket, examineMail, cmd.examineWayOut,
	} {
		ctx, cancel := context.WithTimeout(env.ctx, checkupTimeout)
		found = append(found, examine(ctx, s)...)
		cancel()
	}
	return found
}

// sentence makes an error fit for people.
func sentence(err error) string {
	text := oneLine(err)
	if deadline := context.DeadlineExceeded; errors.Is(err, deadline) {
		text = strings.ReplaceAll(text, deadline.Error(), "no answer in time")
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
