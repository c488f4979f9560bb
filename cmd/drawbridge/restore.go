package main

import (
	"context"
	"errors"
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
	return env.withServices(func(s *app.Services) error { return env.printRestore(s, cmd.JSON) })
}

func (env *environment) printRestore(s *app.Services, asJSON bool) error {
	shown, err := s.Held(env.ctx)
	if err != nil {
		return err
	}
	return env.print(asJSON, shown, func(w io.Writer) {
		if !shown.Held {
			fmt.Fprintln(w, "nothing is held")
			return
		}
		fmt.Fprintf(w, "held since %s: %s\n%d deliveries and %d e-mails from before may have been "+
			"sent already\ndecide: %s\n", shown.HeldAt.Format(time.RFC3339),
			*shown.Reason, shown.Deliveries, shown.Mails, app.ReleaseCommand)
	})
}

type restoreHoldCmd struct {
	Reason string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run begins a hold.
func (cmd restoreHoldCmd) Run(env *environment) error {
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		err := errors.Join(s.Restored.Hold(env.ctx, tx, cmd.Reason),
			env.auditRestore(s, tx, "restore.hold", cmd.Reason, nil))
		return func() error { return env.printRestore(s, cmd.JSON) }, err
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
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		began, err := s.Restored.Release(env.ctx, tx)
		if err != nil {
			return nil, err
		}
		done, err := cmd.decide(env.ctx, s, tx, began)
		if err != nil {
			return nil, err
		}
		err = env.auditRestore(s, tx, "restore.release", cmd.Reason, map[string]any{
			"deliveries": cmd.Deliveries, "mails": cmd.Mails, "held_at": began.UTC(), "done": done,
		})
		return func() error {
			return env.print(cmd.JSON, done, func(w io.Writer) {
				fmt.Fprintf(w, "released; cancelled %d deliveries and %d e-mails\n",
					done.CancelledDeliveries, done.CancelledMails)
			})
		}, err
	})
}

func (cmd restoreReleaseCmd) decide(
	ctx context.Context, s *app.Services, tx *postgres.Tx, until time.Time,
) (done releasedJSON, err error) {
	if cmd.Deliveries == "cancel" {
		if done.CancelledDeliveries, err = s.Webhooks.CancelOpen(ctx, tx, until); err != nil {
			return done, err
		}
	}
	if cmd.Mails == "cancel" {
		done.CancelledMails, err = s.Emails.GiveUpQueued(ctx, tx, until)
	}
	return done, err
}

// auditRestore notes what a command did about the hold.
func (env *environment) auditRestore(
	s *app.Services, tx *postgres.Tx, action, reason string, after any,
) error {
	return s.Operators.Audit(env.ctx, tx, operator.Entry{
		Actor: cliActor, Action: action, SubjectKind: "settings", Subject: "restore",
		Reason: reason, After: after,
	})
}
