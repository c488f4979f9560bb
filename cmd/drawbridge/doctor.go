package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/doctor"
)

type doctorCmd struct {
	HTTPS []string `help:"URL to reach over HTTPS as a webhook would (repeatable); default: the hosts of the newest subscriptions." name:"https" placeholder:"URL"`
	JSON  bool     `help:"Print one JSON document."`
}

// Help lists what is checked.
func (doctorCmd) Help() string {
	return "Checks the settings, the database (whether it can be written, its settings, its " +
		"connections, its tables, open transactions, backups), the migrations, the clock, the " +
		"workers, the queues, overdue deliveries, the keys (decrypts every value), subscriptions " +
		"that are stopped because a key is missing, published credentials, whether a restored " +
		"database is in quarantine, the bucket, the folder of temporary files, the mail server " +
		"(to which it gives the sender address) and outgoing HTTPS, and says how to fix each " +
		"problem. It sends no mail and no webhook, and changes nothing except a small object in " +
		"the bucket, a temporary file and a temporary table, which it removes. Exits with 1 if a " +
		"check failed."
}

// findingColours are the colours of findings on a terminal.
var findingColours = map[doctor.Finding]string{
	doctor.OK: green, doctor.Warning: yellow, doctor.Failed: red, doctor.Skipped: faint,
}

// Run makes every check that earlier errors do not prevent.
func (cmd doctorCmd) Run(env *environment) error {
	checkups := cmd.examine(env)
	if err := env.print(cmd.JSON, output{map[string]any{"checks": checkups}, func(w io.Writer) {
		style := env.styleOf(env.stdout)
		for _, checkup := range checkups {
			finding := style.paint(findingColours[checkup.Finding], fmt.Sprintf("%-8s", checkup.Finding))
			fmt.Fprintf(w, "%s %-11s %s\n", finding, checkup.Name, checkup.Detail)
			if checkup.Remedy != "" {
				fmt.Fprintf(w, "%-8s %-11s -> %s\n", "", "", checkup.Remedy)
			}
		}
	}}); err != nil {
		return err
	}
	var failed []string
	for _, checkup := range checkups {
		if checkup.Finding == doctor.Failed {
			failed = append(failed, checkup.Name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed checks: %s", strings.Join(failed, ", "))
	}
	return nil
}

// examine checks the settings and the database, and then everything that needs them.
func (cmd doctorCmd) examine(env *environment) []doctor.Checkup {
	const remedy = "Fix the named variables; drawbridge config lists all of them."
	settings, err := env.config()
	if err != nil {
		return []doctor.Checkup{doctor.Failure("settings", err, remedy)}
	}
	found := []doctor.Checkup{{
		Name: "settings", Finding: doctor.OK,
		Detail: fmt.Sprintf("The settings are valid for %s.", settings.Env),
	}}
	wrong := check(settings)
	if wrong != nil {
		found[0] = doctor.Failure("settings", wrong, remedy)
	}
	for _, warning := range settings.Warnings() {
		found = append(found, doctor.Checkup{
			Name: "settings", Finding: doctor.Warning, Detail: warning + ".",
		})
	}
	db, end, err := env.open(settings)
	if err != nil {
		return append(found, doctor.Unreachable(err))
	}
	found = append(found, doctor.Database(env.ctx, db)...)
	if other := app.CheckEnvironment(env.ctx, settings.Env, db); other != nil {
		found = append(found, doctor.Failure("environment", other,
			"Run the command with the settings of the service."), doctor.Checkup{
			Name: "services", Finding: doctor.Skipped,
			Detail: "The settings must first be those of the database.",
		})
	} else if wrong != nil {
		found = append(found, doctor.Checkup{
			Name: "services", Finding: doctor.Skipped, Detail: "The settings must first be correct.",
		})
	} else if _, err := keyring(settings); err != nil {
		found = append(found, doctor.Failure("keys", err,
			"Set DRAWBRIDGE_SECRETS_KEY to the key that the database has been used with."))
	} else if s, err := env.services(settings, db); err != nil {
		found = append(found, doctor.Failure("settings", err, ""))
	} else {
		found = append(found, doctor.Services(env.ctx, s, cmd.HTTPS)...)
	}
	if err := end(); err != nil {
		found = append(found, doctor.Checkup{
			Name: "database", Finding: doctor.Warning, Detail: doctor.Sentence(err),
		})
	}
	return found
}

type configCmd struct{ jsonFlag }

// Help says which settings the command does not print.
func (configCmd) Help() string {
	return "Prints every setting as the service would read it here: its value, with secrets masked, " +
		"where it comes from, and what is wrong with it. Exits with 2 if the service would not start."
}

// Run prints the settings, and fails if the service would not start with them.
func (cmd configCmd) Run(env *environment) error {
	getenv, names, err := config.WithDotEnv(env.getenv, ".env")
	if err != nil {
		return err
	}
	settings := config.Effective(env.getenv, getenv)
	read, wrong := config.Load(getenv, append(names, env.names...)...)
	if wrong == nil {
		wrong = check(read)
	}
	errs, _ := errors.AsType[config.Errors](wrong)
	for i := range settings {
		settings[i].Error = errs.Of(settings[i].Name)
	}
	if err := env.print(cmd.JSON, output{
		map[string]any{"settings": settings}, func(w io.Writer) {
			var lines strings.Builder
			aligned(func(w io.Writer) {
				fmt.Fprintln(w, "SETTING\tVALUE\tFROM\tFAULT")
				for _, setting := range settings {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", setting.Name, cmp.Or(setting.Value, "(empty)"),
						setting.Source, setting.Error)
				}
			})(&lines)
			fmt.Fprint(w, env.styleOf(env.stdout).head(lines.String()))
		},
	}); err != nil {
		return err
	}
	return wrong
}
