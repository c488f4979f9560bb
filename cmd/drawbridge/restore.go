package main

import (
	"fmt"
	"io"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

type restoreCmd struct {
	Show    restoreShowCmd    `cmd:"" help:"Show whether workers hold everything, and what that is."`
	Hold    restoreHoldCmd    `cmd:"" help:"Hold by hand, before any worker starts: the database was taken back in time."`
	Release restoreReleaseCmd `cmd:"" help:"Decide what becomes of what is held, and let the workers begin."`
}

// Help says what the commands are for.
func (restoreCmd) Help() string {
	return "A backup knows deliveries and e-mails as waiting that were sent after it was made. " +
		"A process that starts on a restored database notices, and its workers send nothing until " +
		"somebody decides: see Back up and restore in the operations manual."
}

type restoreShowCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run shows the state.
func (cmd restoreShowCmd) Run(env *environment) error {
	return env.show(cmd.JSON, env.restoreOutput)
}

func (env *environment) restoreOutput(s *app.Services) (output, error) {
	shown, err := s.Held(env.ctx)
	return output{shown, func(w io.Writer) {
		if !shown.Held {
			fmt.Fprintln(w, "nothing is held")
			return
		}
		fmt.Fprintf(w, "held since %s: %s\n%d deliveries and %d e-mails from before may have been "+
			"sent already\ndecide: %s\n", shown.HeldAt.Format(time.RFC3339),
			*shown.Reason, shown.Deliveries, shown.Mails, app.ReleaseCommand)
	}}, err
}

type restoreHoldCmd struct {
	Reason string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run begins a hold.
func (cmd restoreHoldCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		return done{
			entries: []operator.Entry{settingsEntry("restore.hold", cmd.Reason, nil)},
			after:   func() (output, error) { return env.restoreOutput(s) },
		}, s.Restored.Hold(env.ctx, tx, cmd.Reason)
	})
}

type restoreReleaseCmd struct {
	Deliveries string `required:"" enum:"send,cancel" help:"What waited when the backup was made: send it, perhaps a second time, or cancel it." placeholder:"send|cancel"`
	Mails      string `required:"" enum:"send,cancel" help:"The same for e-mails." placeholder:"send|cancel"`
	Reason     string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	JSON       bool   `name:"json" help:"Print one JSON document."`
}

// releasedJSON is what a decision did.
type releasedJSON struct {
	CancelledDeliveries int `json:"cancelled_deliveries"`
	CancelledMails      int `json:"cancelled_mails"`
}

// Run decides.
func (cmd restoreReleaseCmd) Run(env *environment) error {
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
		return did(
			settingsEntry("restore.release", cmd.Reason, map[string]any{
				"deliveries": cmd.Deliveries, "mails": cmd.Mails, "held_at": began.UTC(),
				"done": released,
			}),
			output{released, func(w io.Writer) {
				fmt.Fprintf(w, "released; cancelled %d deliveries and %d e-mails\n",
					released.CancelledDeliveries, released.CancelledMails)
			}},
		), err
	})
}
