package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

type emailCmd struct {
	List   emailListCmd   `cmd:"" help:"List e-mails, newest first."`
	Show   emailShowCmd   `cmd:"" help:"Show one e-mail with its attempts."`
	Resend emailResendCmd `cmd:"" help:"Send e-mails again: each becomes a new e-mail with the same text."`
}

// emailFlags are the filters of the log.
type emailFlags struct {
	State       string `help:"queued, sent, failed, suppressed, not_sent or captured." placeholder:"STATE"`
	Application string `help:"Only this application's." placeholder:"UID"`
	Kind        string `help:"Only this kind, such as welcome, stipulation or task." placeholder:"KIND"`
	Since       string `help:"Created at or after, such as 2026-11-21T09:30:00Z." placeholder:"TIME"`
	Until       string `help:"Created before." placeholder:"TIME"`
}

func (f emailFlags) filter(env *environment) email.Filter {
	return email.Filter{
		ApplicationUID: env.optionalUID("--application", f.Application),
		State:          oneOf(env, "--state", f.State, email.States()),
		Kind:           oneOf(env, "--kind", f.Kind, email.Kinds()),
		Since:          env.time("--since", f.Since), Until: env.time("--until", f.Until),
	}
}

// oneOf reads a flag whose value is empty or one of some names.
func oneOf[T ~string](env *environment, flag, text string, names []T) T {
	if text != "" && !slices.Contains(names, T(text)) {
		env.refusef("%s is %q; it must be one of %s", flag, text, lending.JoinNames(names))
	}
	return T(text)
}

// emailJSON is an e-mail as commands print it.
type emailJSON struct {
	UID         uuid.UUID   `json:"email_uid"`
	Application *uuid.UUID  `json:"application_uid"`
	To          string      `json:"to"`
	Kind        email.Kind  `json:"kind"`
	State       email.State `json:"state"`
	// AttemptCount does not count attempts at which the server refused this installation.
	AttemptCount int       `json:"attempt_count"`
	CreatedAt    time.Time `json:"created_at"`
	Reason       *string   `json:"reason"`
	// WaitsFor is "server" or "welcome" while the e-mail waits for one of them.
	WaitsFor *email.Wait `json:"waits_for"`
}

func newEmailJSON(m email.Email) emailJSON {
	return emailJSON{
		UID: m.EmailUID, Application: orNull(m.ApplicationUID.UUID), To: m.ToAddress, Kind: m.Kind,
		State: m.State, AttemptCount: m.Tries(), CreatedAt: m.CreatedAt.UTC(),
		Reason: orNull(m.Reason), WaitsFor: orNull(waitsFor(m)),
	}
}

// emailDetailJSON is an e-mail with its text and attempts.
type emailDetailJSON struct {
	emailJSON
	Subject          string             `json:"subject"`
	OutcomeUnknown   bool               `json:"outcome_unknown"`
	NextAttemptAt    *time.Time         `json:"next_attempt_at"`
	FinishedAt       *time.Time         `json:"finished_at"`
	ResendOf         *uuid.UUID         `json:"resend_of"`
	MessageID        *string            `json:"message_id"`
	Text             string             `json:"text"`
	ContentRemovedAt *time.Time         `json:"content_removed_at"`
	Attempts         []emailAttemptJSON `json:"attempts"`
}

type emailAttemptJSON struct {
	Number     int            `json:"number"`
	StartedAt  time.Time      `json:"started_at"`
	DurationMS float64        `json:"duration_ms"`
	Outcome    *email.Outcome `json:"outcome"`
	Stage      email.Stage    `json:"stage"`
	ReplyCode  *int           `json:"reply_code"`
	Reply      *string        `json:"reply"`
	Error      *string        `json:"error"`
	Server     string         `json:"server"`
	TLS        *string        `json:"tls"`
}

// waitsFor is what a queued e-mail waits for apart from its next attempt's time.
func waitsFor(m email.Email) email.Wait {
	if m.State != email.StateQueued {
		return email.WaitNothing
	}
	return m.WaitsFor
}

// emailNote explains the state of an e-mail.
func emailNote(m email.Email) string {
	switch waitsFor(m) {
	case email.WaitServer:
		return "waits: the mail server refuses us, or this e-mail"
	case email.WaitWelcome:
		return "waits for the welcome e-mail"
	case email.WaitNothing:
	}
	return m.Reason
}

type emailListCmd struct {
	emailFlags
	listFlags
}

// Run lists e-mails.
func (cmd emailListCmd) Run(env *environment) error {
	filter := cmd.filter(env)
	return rowsOf("emails", newEmailJSON,
		"E-MAIL\tCREATED\tSTATE\tTRIES\tKIND\tTO\tNOTE",
		func(w io.Writer, m email.Email) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", m.EmailUID,
				m.CreatedAt.UTC().Format(time.RFC3339), m.State, m.Tries(), m.Kind, m.ToAddress, emailNote(m))
		}).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]email.Email, postgres.Cursor, error) {
			return email.List(env.ctx, s.DB, filter, page)
		})
}

type emailShowCmd struct {
	UID  string `arg:"" help:"E-mail."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run shows one e-mail.
func (cmd emailShowCmd) Run(env *environment) error {
	uid := env.uid("the e-mail", cmd.UID)
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		d, err := email.Get(env.ctx, s.DB, uid)
		printed := emailDetailJSON{
			emailJSON: newEmailJSON(d.Email), Subject: d.Subject,
			OutcomeUnknown: d.OutcomeUnknown, FinishedAt: utc(d.FinishedAt),
			ResendOf: orNull(d.ResendOf.UUID), MessageID: orNull(d.MessageID), Text: d.Text,
			ContentRemovedAt: utc(d.ContentRemovedAt), Attempts: []emailAttemptJSON{},
		}
		if printed.WaitsFor == nil {
			printed.NextAttemptAt = utc(d.NextAttemptAt)
		}
		for _, a := range d.Attempts {
			printed.Attempts = append(printed.Attempts, emailAttemptJSON{
				Number: a.Number, StartedAt: a.StartedAt.UTC(),
				DurationMS: float64(a.Duration().Microseconds()) / 1000,
				Outcome:    orNull(a.Outcome), Stage: a.Stage, ReplyCode: orNull(a.ReplyCode),
				Reply: orNull(a.Reply), Error: orNull(a.Error), Server: a.Server, TLS: orNull(a.TLS),
			})
		}
		return output{printed, func(w io.Writer) {
			fmt.Fprintf(w, "e-mail %s (%s)\n  kind     %s\n  to       %s\n  subject  %s\n",
				d.EmailUID, d.State, d.Kind, d.ToAddress, d.Subject)
			if note := emailNote(d.Email); note != "" {
				fmt.Fprintf(w, "  note     %s\n", note)
			}
			for _, a := range d.Attempts {
				said := a.Error
				if a.ReplyCode != 0 {
					said = fmt.Sprintf("%d %s", a.ReplyCode, a.Reply)
				}
				fmt.Fprintf(w, "  attempt %d  %s  %s  %s\n", a.Number, a.StartedAt.UTC().Format(time.RFC3339),
					cmp.Or(string(a.Outcome), "under way"), said)
			}
		}}, err
	})
}

type emailResendCmd struct {
	UIDs []string `arg:"" optional:"" name:"uid" help:"E-mails to send again."`
	emailFlags
	Reason string `help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Help describes which e-mails the flags select.
func (emailResendCmd) Help() string {
	return "The flags match e-mails that failed or were not sent or, with --state sent, those that " +
		"were sent. They skip e-mails that were re-sent before, so that repeating a command sends " +
		"nothing twice, and e-mails of unknown outcome, which may have arrived; name these to send them."
}

// Run re-sends the named e-mails, or those that the filters match.
func (cmd emailResendCmd) Run(env *environment) error {
	filter, uids := cmd.filter(env), env.uids("the e-mail", cmd.UIDs)
	env.chosen("e-mails", len(uids) > 0, cmd.emailFlags != emailFlags{},
		"--state, --application, --kind, --since and --until")
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		var resent []email.Resent
		var err error
		if len(uids) > 0 {
			resent, err = s.Emails.ResendAll(env.ctx, tx, uids, cliActor, cmd.Reason)
		} else {
			resent, err = s.Emails.ResendMatching(env.ctx, tx, filter, cliActor, cmd.Reason)
		}
		var made []uuid.UUID
		var entries []operator.Entry
		for _, one := range resent {
			made = append(made, one.Made)
			entries = append(entries, entry("email.resend", one.Original.String(), cmd.Reason,
				map[string]any{"email_uid": one.Made}))
		}
		return done{entries: entries, out: resentOutput(made), notes: noneResent(made)}, err
	})
}
