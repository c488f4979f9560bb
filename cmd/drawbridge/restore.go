package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/restore"
	"drawbridge/migrations"
)

const (
	// holdPoll is how often a worker asks whether the hold was decided.
	holdPoll = 2 * time.Second
	// holdReminder is how often it says in the log that it waits.
	holdReminder = time.Minute
	// releaseCommand is how a hold ends.
	releaseCommand = "drawbridge restore release --deliveries send|cancel --mails send|cancel " +
		"--reason TEXT"
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

// restoreJSON is the state as commands print it.
type restoreJSON struct {
	Held       bool       `json:"held"`
	HeldAt     *time.Time `json:"held_at"`
	Reason     *string    `json:"reason"`
	Deliveries int        `json:"deliveries"`
	Mails      int        `json:"mails"`
}

type restoreShowCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run shows the state.
func (cmd restoreShowCmd) Run(env *environment) error {
	return env.withServices(func(s *services) error { return env.printRestore(s, cmd.JSON) })
}

// heldNow is the state of the guard, with what it holds.
func (s *services) heldNow(ctx context.Context) (restoreJSON, error) {
	state, err := s.restored.State(ctx)
	if err != nil {
		return restoreJSON{}, err
	}
	shown := restoreJSON{Held: state.IsHeld(), HeldAt: utc(state.HeldAt), Reason: state.Reason}
	if !shown.Held {
		return shown, nil
	}
	if shown.Deliveries, err = s.webhooks.CountOpen(ctx, *state.HeldAt); err != nil {
		return shown, err
	}
	shown.Mails, err = s.emails.CountQueued(ctx, s.db, *state.HeldAt)
	return shown, err
}

func (env *environment) printRestore(s *services, asJSON bool) error {
	shown, err := s.heldNow(env.ctx)
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
			*shown.Reason, shown.Deliveries, shown.Mails, releaseCommand)
	})
}

type restoreHoldCmd struct {
	Reason string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run begins a hold.
func (cmd restoreHoldCmd) Run(env *environment) error {
	return env.change(func(s *services, tx *postgres.Tx) (func() error, error) {
		err := errors.Join(s.restored.Hold(env.ctx, tx, cmd.Reason),
			s.auditRestore(env.ctx, tx, "restore.hold", cmd.Reason, nil))
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
	return env.change(func(s *services, tx *postgres.Tx) (func() error, error) {
		began, err := s.restored.Release(env.ctx, tx)
		if err != nil {
			return nil, err
		}
		done, err := cmd.decide(env.ctx, s, tx, began)
		if err != nil {
			return nil, err
		}
		err = s.auditRestore(env.ctx, tx, "restore.release", cmd.Reason, map[string]any{
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
	ctx context.Context, s *services, tx *postgres.Tx, until time.Time,
) (done releasedJSON, err error) {
	if cmd.Deliveries == "cancel" {
		if done.CancelledDeliveries, err = s.webhooks.CancelOpen(ctx, tx, until); err != nil {
			return done, err
		}
	}
	if cmd.Mails == "cancel" {
		done.CancelledMails, err = s.emails.GiveUpQueued(ctx, tx, until)
	}
	return done, err
}

func (s *services) auditRestore(
	ctx context.Context, tx *postgres.Tx, action, reason string, after any,
) error {
	return s.operators.Audit(ctx, tx, operator.Entry{
		Actor: cliActor, Action: action, SubjectKind: "settings", Subject: "restore",
		Reason: reason, After: after,
	})
}

// noticeRestore lets a process of any role find out that its database was
// restored. One whose schema is behind finds out once that is current.
func noticeRestore(ctx context.Context, s *services) error {
	missing, err := migrations.Pending(ctx, s.db.DB.DB)
	if err != nil || len(missing) > 0 {
		return err
	}
	_, err = s.restored.Check(ctx)
	return err
}

// waitForDecision keeps a worker from sending what a restored database knows as
// waiting. It returns when ctx ends, too.
func waitForDecision(ctx context.Context, s *services) error {
	state, err := s.restored.Check(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(holdPoll)
	defer ticker.Stop()
	var said time.Time
	for state.IsHeld() {
		said = sayHeld(ctx, state, said)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now, err := s.restored.State(ctx)
		if err != nil { // the database is away for a moment; what it said last holds
			slog.WarnContext(ctx, "asking whether the hold was decided", "error", err)
			continue
		}
		state = now
	}
	return nil
}

func sayHeld(ctx context.Context, state restore.State, said time.Time) time.Time {
	if time.Since(said) < holdReminder {
		return said
	}
	slog.WarnContext(ctx, "nothing is sent: the database was restored; "+
		"decide with drawbridge restore release", "held_at", state.HeldAt)
	return time.Now()
}
