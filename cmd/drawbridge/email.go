package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/email"
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
	State       string `help:"queued, sent, failed, suppressed or not_sent." placeholder:"STATE"`
	Application string `help:"Only this application's." placeholder:"UID"`
	Kind        string `help:"Only this kind, such as welcome, stipulation or task." placeholder:"KIND"`
	Since       string `help:"Created at or after, such as 2026-11-21T09:30:00Z." placeholder:"TIME"`
	Until       string `help:"Created before." placeholder:"TIME"`
}

func (f emailFlags) isZero() bool { return f == emailFlags{} }

func (f emailFlags) filter() (filter email.Filter, err error) {
	if filter.ApplicationUID, err = optionalUID("--application", f.Application); err != nil {
		return filter, err
	}
	filter.State = email.State(f.State)
	if f.State != "" && !slices.Contains(email.States(), filter.State) {
		return filter, usagef("--state is %q; it must be one of %s", f.State, listed(email.States()))
	}
	filter.Kind = email.Kind(f.Kind)
	if f.Kind != "" && !slices.Contains(email.Kinds(), filter.Kind) {
		return filter, usagef("--kind is %q; it must be one of %s", f.Kind, listed(email.Kinds()))
	}
	if filter.Since, err = parseTime("--since", f.Since); err != nil {
		return filter, err
	}
	filter.Until, err = parseTime("--until", f.Until)
	return filter, err
}

// listed writes names in a row.
func listed[T ~string](names []T) string {
	words := make([]string, 0, len(names))
	for _, name := range names {
		words = append(words, string(name))
	}
	return strings.Join(words, ", ")
}

// emailJSON is an e-mail as commands print it.
type emailJSON struct {
	UID         uuid.UUID   `json:"email_uid"`
	Application *uuid.UUID  `json:"application_uid"`
	To          string      `json:"to"`
	Kind        email.Kind  `json:"kind"`
	State       email.State `json:"state"`
	// AttemptCount leaves out those at which the server refused us, which are no tries.
	AttemptCount int       `json:"attempt_count"`
	CreatedAt    time.Time `json:"created_at"`
}

func newEmailJSON(m email.Email) emailJSON {
	return emailJSON{
		UID: m.EmailUID, Application: orNull(m.ApplicationUID.UUID), To: m.ToAddress, Kind: m.Kind,
		State: m.State, AttemptCount: m.Tries(), CreatedAt: m.CreatedAt.UTC(),
	}
}

// emailDetailJSON is an e-mail with its text and attempts.
type emailDetailJSON struct {
	emailJSON
	Subject string  `json:"subject"`
	Reason  *string `json:"reason"`
	// WaitsFor is "server" or "welcome" while the e-mail waits for one of them.
	WaitsFor         *email.Wait        `json:"waits_for"`
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

func newEmailDetailJSON(d email.Detail) emailDetailJSON {
	printed := emailDetailJSON{
		emailJSON: newEmailJSON(d.Email), Subject: d.Subject, Reason: orNull(d.Reason),
		OutcomeUnknown: d.OutcomeUnknown, FinishedAt: utc(d.FinishedAt),
		ResendOf: orNull(d.ResendOf.UUID), MessageID: orNull(d.MessageID), Text: d.Text,
		ContentRemovedAt: utc(d.ContentRemovedAt), Attempts: []emailAttemptJSON{},
	}
	if printed.WaitsFor = orNull(waitsFor(d.Email)); printed.WaitsFor == nil {
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
	return printed
}

// waitsFor is what a queued e-mail waits for besides its time.
func waitsFor(m email.Email) email.Wait {
	if m.State != email.StateQueued {
		return email.WaitNothing
	}
	return m.WaitsFor
}

// emailNote says why an e-mail is where it is.
func emailNote(m email.Email) string {
	switch waitsFor(m) {
	case email.WaitServer:
		return "waits: the mail server refuses us"
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
	filter, err := cmd.filter()
	if err != nil {
		return err
	}
	limit, cursor, err := cmd.page()
	if err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error {
		mails, next, err := email.List(env.ctx, s.DB, filter, cursor, limit)
		if err != nil {
			return err
		}
		return listing[email.Email, emailJSON]{
			"emails", mails, newEmailJSON, printEmail,
		}.printPage(env, cmd.JSON, next)
	})
}

func printEmail(w io.Writer, m email.Email) {
	line := fmt.Sprintf("%s  %s  %-10s %2d  %-12s %s  %s", m.EmailUID,
		m.CreatedAt.UTC().Format(time.RFC3339), m.State, m.Tries(), m.Kind, m.ToAddress, emailNote(m))
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

type emailShowCmd struct {
	UID  string `arg:"" help:"E-mail."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run shows one e-mail.
func (cmd emailShowCmd) Run(env *environment) error {
	uid, err := parseUID("the e-mail", cmd.UID)
	if err != nil {
		return err
	}
	return env.withServices(func(s *app.Services) error {
		detail, err := email.Get(env.ctx, s.DB, uid)
		if err != nil {
			return err
		}
		return env.print(cmd.JSON, newEmailDetailJSON(detail), func(w io.Writer) {
			printEmailDetail(w, detail)
		})
	})
}

func printEmailDetail(w io.Writer, detail email.Detail) {
	fmt.Fprintf(w, "e-mail %s (%s)\n  kind     %s\n  to       %s\n  subject  %s\n",
		detail.EmailUID, detail.State, detail.Kind, detail.ToAddress, detail.Subject)
	if note := emailNote(detail.Email); note != "" {
		fmt.Fprintf(w, "  note     %s\n", note)
	}
	for _, attempt := range detail.Attempts {
		said := attempt.Error
		if attempt.ReplyCode != 0 {
			said = fmt.Sprintf("%d %s", attempt.ReplyCode, attempt.Reply)
		}
		fmt.Fprintf(w, "  attempt %d  %s  %s  %s\n", attempt.Number,
			attempt.StartedAt.UTC().Format(time.RFC3339), orElse(string(attempt.Outcome), "under way"),
			said)
	}
}

type emailResendCmd struct {
	UIDs []string `arg:"" optional:"" name:"uid" help:"E-mails to send again."`
	emailFlags
	Reason string `help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Help says what the flags choose.
func (emailResendCmd) Help() string {
	return "The flags choose e-mails that failed or were not sent, and with --state sent those that " +
		"were. They leave out what was re-sent before, so that a command that is repeated sends " +
		"nothing twice, and what may have arrived although its outcome is unknown; name those."
}

// Run re-sends the named e-mails, or those that the filters choose.
func (cmd emailResendCmd) Run(env *environment) error {
	filter, err := cmd.filter()
	if err != nil {
		return err
	}
	uids, err := parseUIDs("the e-mail", cmd.UIDs)
	if err != nil {
		return err
	}
	if len(uids) == 0 && cmd.isZero() {
		return usagef("name the e-mails to re-send, or choose them with " +
			"--state, --application, --kind, --since and --until")
	}
	if len(uids) > 0 && !cmd.isZero() {
		return usagef("name e-mails or choose them with flags, not both")
	}
	return env.change(func(s *app.Services, tx *postgres.Tx) (func() error, error) {
		var resent []email.Resent
		var err error
		if len(uids) > 0 {
			resent, err = s.Emails.ResendAll(env.ctx, tx, uids, cliActor, cmd.Reason)
		} else {
			resent, err = s.Emails.ResendMatching(env.ctx, tx, filter, cliActor, cmd.Reason)
		}
		if err != nil {
			return nil, err
		}
		made := []uuid.UUID{}
		for _, one := range resent {
			made = append(made, one.Made)
			err := s.Operators.Audit(env.ctx, tx, operator.Entry{
				Actor: cliActor, Action: "email.resend", SubjectKind: "email",
				Subject: one.Original.String(), Reason: cmd.Reason,
				After: map[string]any{"email_uid": one.Made},
			})
			if err != nil {
				return nil, err
			}
		}
		return func() error {
			return env.print(cmd.JSON, map[string]any{"resent": made}, func(w io.Writer) {
				for _, uid := range made {
					fmt.Fprintln(w, uid)
				}
			})
		}, nil
	})
}
