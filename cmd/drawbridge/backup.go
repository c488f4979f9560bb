package main

import (
	"fmt"
	"io"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/postgres"
)

type backupCmd struct {
	Record backupRecordCmd `cmd:"" help:"Record that a backup was made now; what makes backups calls it after each."`
}

// Help says what the record is for.
func (backupCmd) Help() string {
	return "Backups are made by the tools of the database and of the bucket: see Back up and " +
		"restore in the operations manual. The record of the last one is what an alert and " +
		"drawbridge doctor go by."
}

type backupRecordCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run records a backup.
func (cmd backupRecordCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		at, err := s.Restored.RecordBackup(env.ctx, tx)
		printed := map[string]time.Time{"backed_up_at": at}
		return did(settingsEntry("backup.record", "", printed), output{printed, func(w io.Writer) {
			fmt.Fprintf(w, "a backup of %s is recorded\n", at.Format(time.RFC3339))
		}}), err
	})
}
