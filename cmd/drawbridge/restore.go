package main

import (
	"fmt"
	"io"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/restore"
)

type restoreCmd struct {
	Show    restoreShowCmd       `cmd:"" help:"Show whether the database is in quarantine, and what is held."`
	Hold    restoreQuarantineCmd `cmd:"" help:"Begin a quarantine by hand and sign everybody out, after the database was set back in time. Running workers stop taking work within seconds."`
	Release restoreReleaseCmd    `cmd:"" help:"Decide what happens to held deliveries and e-mails, and let the workers start."`
}

// Help says what the commands are for.
func (restoreCmd) Help() string {
	return "In a backup, deliveries and e-mails that were sent after it was made still wait. " +
		"A process that starts on a restored database, or finds itself on one, detects this, and its " +
		"workers send nothing until somebody decides: see Back up and restore in the operations manual."
}

type restoreShowCmd struct{ jsonFlag }

// Run shows whether the database is in quarantine.
func (cmd restoreShowCmd) Run(env *environment) error {
	return env.show(cmd.JSON, env.restoreOutput)
}

func (env *environment) restoreOutput(s *app.Services) (output, error) {
	shown, err := s.Quarantine(env.ctx)
	return output{shown, func(w io.Writer) {
		switch {
		case shown.Copied:
			fmt.Fprintln(w, restore.Unnoticed)
			return
		case !shown.Active:
			fmt.Fprintln(w, "nothing is held")
			return
		}
		fmt.Fprintf(w, "held since %s: %s\n%d deliveries and %d e-mails from before may have been "+
			"sent already\ndecide: %s\n", shown.Since.Format(time.RFC3339),
			*shown.Reason, shown.Deliveries, shown.Mails, app.ReleaseCommand)
	}}, err
}

type restoreQuarantineCmd struct {
	Reason string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run begins a quarantine.
func (cmd restoreQuarantineCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		return done{
			entries: []operator.Entry{settingsEntry("restore.hold", cmd.Reason,
				map[string]any{"held": false}, map[string]any{"held": true})},
			after: func() (output, error) { return env.restoreOutput(s) },
		}, byFlags(s.Restored.Quarantine(env.ctx, tx, cmd.Reason))
	})
}

type restoreReleaseCmd struct {
	Deliveries string `required:"" enum:"send,cancel" help:"Deliveries that waited when the backup was made: send them, perhaps a second time, or cancel them." placeholder:"send|cancel"`
	Mails      string `required:"" enum:"send,cancel" help:"The same for e-mails." placeholder:"send|cancel"`
	Reason     string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	JSON       bool   `name:"json" help:"Print one JSON document."`
}

// releasedJSON is the result of ending a quarantine.
type releasedJSON struct {
	CancelledDeliveries int `json:"cancelled_deliveries"`
	CancelledMails      int `json:"cancelled_mails"`
}

// Run ends the quarantine.
func (cmd restoreReleaseCmd) Run(env *environment) error {
	reason, err := restore.CheckReason(cmd.Reason)
	if err != nil {
		return byFlags(err)
	}
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		began, err := s.Restored.Release(env.ctx, tx)
		if err != nil {
			return done{}, err
		}
		var released releasedJSON
		if cmd.Deliveries == "cancel" {
			released.CancelledDeliveries, err = s.Webhooks.Deliveries.CancelOpen(env.ctx, tx, began)
		}
		if err == nil && cmd.Mails == "cancel" {
			released.CancelledMails, err = s.Emails.GiveUpQueued(env.ctx, tx, began)
		}
		return did(settingsEntry("restore.release", reason,
			map[string]any{"held": true, "held_at": began.UTC()}, map[string]any{
				"held": false, "deliveries": cmd.Deliveries, "mails": cmd.Mails, "held_at": began.UTC(),
				"done": released,
			}),
			output{released, func(w io.Writer) {
				fmt.Fprintf(w, "released; cancelled %d deliveries and %d e-mails\n",
					released.CancelledDeliveries, released.CancelledMails)
			}},
		), err
	})
}

type environmentCmd struct {
	Show environmentShowCmd `cmd:"" help:"Show the environment that the database records."`
	Set  environmentSetCmd  `cmd:"" help:"Change the record of a database that no process serves."`
}

// Help says what the record is for.
func (environmentCmd) Help() string {
	return "The first drawbridge serve on a database records its DRAWBRIDGE_ENV there. With another " +
		"DRAWBRIDGE_ENV, serve refuses to start, so that a sandbox does not take production's mails " +
		"for its own. So do all other commands except doctor, migrate and these two."
}

// withRecord opens a database of any environment without changing it. It migrates nothing and
// creates no key, since the settings may be those of another environment.
func (env *environment) withRecord(do func(db *postgres.DB, record *restore.Service) error) error {
	return env.withDatabase(func(_ config.Config, db *postgres.DB) error {
		return env.withDatabaseTimeout(func() error { return do(db, &restore.Service{DB: db}) })
	})
}

type environmentShowCmd struct{ jsonFlag }

// Run shows the record.
func (cmd environmentShowCmd) Run(env *environment) error {
	return env.withRecord(func(db *postgres.DB, record *restore.Service) error {
		recorded, err := record.Environment(env.ctx, db)
		if err != nil && !postgres.IsMissing(err) {
			return err
		}
		return env.print(cmd.JSON, environmentOutput(recorded))
	})
}

// environmentOutput prints null before the first serve.
func environmentOutput(recorded *string) output {
	return output{map[string]any{"environment": recorded}, func(w io.Writer) {
		if recorded == nil {
			fmt.Fprintln(w, "none recorded yet; the first drawbridge serve records it")
			return
		}
		fmt.Fprintln(w, *recorded)
	}}
}

type environmentSetCmd struct {
	Name string `arg:"" enum:"development,sandbox,production" help:"development, sandbox or production."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run changes the record.
func (cmd environmentSetCmd) Run(env *environment) error {
	return env.withRecord(func(db *postgres.DB, record *restore.Service) error {
		if err := checkSchema(env.ctx, db); err != nil {
			return err
		}
		err := commit(env.ctx, &operator.Service{DB: db}, func(
			tx *postgres.Tx,
		) ([]operator.Entry, error) {
			before, err := record.Environment(env.ctx, tx)
			if err == nil {
				err = record.SetEnvironment(env.ctx, tx, cmd.Name)
			}
			return []operator.Entry{settingsEntry("environment.set", "",
				map[string]any{"environment": before}, map[string]any{"environment": cmd.Name})}, err
		})
		if err != nil {
			return err
		}
		return env.print(cmd.JSON, environmentOutput(&cmd.Name))
	})
}

type backupCmd struct {
	Record backupRecordCmd `cmd:"" help:"Record that a backup was made just now; run this after each backup."`
}

// Help says what the record is for.
func (backupCmd) Help() string {
	return "Backups are made by the tools of the database and of the bucket: see Back up and " +
		"restore in the operations manual. An alert and drawbridge doctor " +
		"rely on the record of the last one."
}

type backupRecordCmd struct{ jsonFlag }

// Run records a backup.
func (cmd backupRecordCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, at, err := s.Restored.RecordBackup(env.ctx, tx)
		printed := map[string]time.Time{"backed_up_at": at}
		recorded := settingsEntry("backup.record", "",
			map[string]any{"backed_up_at": utc(before)}, printed)
		return did(recorded, output{printed, func(w io.Writer) {
			fmt.Fprintf(w, "recorded a backup made at %s\n", at.Format(time.RFC3339))
		}}), err
	})
}
