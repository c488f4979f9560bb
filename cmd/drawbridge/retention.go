package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/internal/retention"
)

type retentionCmd struct {
	Show retentionShowCmd `cmd:"" help:"Show how long records are kept."`
	Set  retentionSetCmd  `cmd:"" help:"Change how long records are kept; settings that are not given stay."`
	Run  retentionRunCmd  `cmd:"" help:"Remove what is due now, as the workers do every hour."`
}

type retentionShowCmd struct{ jsonFlag }

// Run shows the settings.
func (cmd retentionShowCmd) Run(env *environment) error {
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		settings, err := s.Retention.Settings(env.ctx)
		return retentionOutput(settings), err
	})
}

func retentionOutput(settings retention.Settings) output {
	return output{settings, func(w io.Writer) {
		fmt.Fprintf(w, "events, deliveries, attempts  %d months\n", settings.Months)
		fmt.Fprintf(w, "their bodies and headers      %d days\n", settings.BodyDays)
		fmt.Fprintf(w, "text of e-mails               %d days\n", settings.EmailBodyDays)
		fmt.Fprintf(w, "log of API requests           %d days\n", settings.APIRequestDays)
		fmt.Fprintln(w, "replies by Idempotency-Key    24 hours")
		fmt.Fprintln(w, "audit log                     for ever")
	}}
}

type retentionSetCmd struct {
	MetadataMonths *int `help:"Months to keep events, deliveries and attempts." placeholder:"N"`
	BodyDays       *int `help:"Days to keep their bodies and headers." placeholder:"N"`
	EmailBodyDays  *int `help:"Days to keep the text of e-mails." placeholder:"N"`
	APIRequestDays *int `name:"api-request-days" help:"Days to keep the log of API requests." placeholder:"N"`
	JSON           bool `name:"json" help:"Print one JSON document."`
}

// Run changes the settings.
func (cmd retentionSetCmd) Run(env *environment) error {
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		settings, err := s.Retention.LockSettings(env.ctx, tx)
		if err != nil {
			return done{}, err
		}
		for _, change := range []struct{ given, into *int }{
			{cmd.MetadataMonths, &settings.Months},
			{cmd.BodyDays, &settings.BodyDays},
			{cmd.EmailBodyDays, &settings.EmailBodyDays},
			{cmd.APIRequestDays, &settings.APIRequestDays},
		} {
			if change.given != nil {
				*change.into = *change.given
			}
		}
		before, after, err := s.Retention.SaveSettings(env.ctx, tx, settings, cliActor)
		return did(settingsEntry("retention.update", "", before, after), retentionOutput(after)), err
	})
}

type retentionRunCmd struct {
	DryRun bool `help:"Only show what would be removed."`
	JSON   bool `name:"json" help:"Print one JSON document."`
}

// Run removes what is due, or prints what that is. A removal has no time limit: it uses separate
// transactions, each for a month or a batch.
func (cmd retentionRunCmd) Run(env *environment) error {
	if cmd.DryRun {
		return env.show(cmd.JSON, env.removalPlan)
	}
	return env.use(func(settings config.Config, db *postgres.DB) error {
		s, err := env.services(settings, db)
		if err != nil {
			return err
		}
		var report removedJSON
		report.Report, err = s.Retention.Run(env.ctx)
		if err == nil && !report.Busy {
			var kept retention.Settings
			if kept, err = s.Retention.Settings(env.ctx); err == nil {
				report.RequestDays, err = s.Requests.Drop(env.ctx, kept.RequestCutoff(s.DB.Now()))
			}
		}
		removed := report.Events + report.Attempts + report.Emails + report.Bulks + report.Swept +
			report.RequestDays + len(report.Months)
		if err == nil || removed > 0 { // record also what was removed before a failure
			recorded := settingsEntry("retention.run", "", nil, report)
			err = errors.Join(err, env.record(s.Operators, recorded))
		}
		if err != nil {
			return err
		}
		return env.print(cmd.JSON, output{report, report.print})
	})
}

// removedJSON counts what a run removed.
type removedJSON struct {
	retention.Report
	// RequestDays counts days of the log of API requests.
	RequestDays int `json:"api_request_days"`
}

func (report removedJSON) print(w io.Writer) {
	if report.Busy {
		fmt.Fprintln(w, "another run is under way; nothing was done")
		return
	}
	fmt.Fprintf(w, "bodies removed of %d events, %d attempts, %d e-mails; months removed: %s; "+
		"bulk re-sends removed: %d; days of the request log removed: %d\n",
		report.Events, report.Attempts, report.Emails,
		cmp.Or(strings.Join(report.Months, ", "), "none"), report.Bulks, report.RequestDays)
	if len(report.LeftToOwner) > 0 {
		fmt.Fprintf(w, "not removed, because another role owns the tables: %s\n",
			strings.Join(report.LeftToOwner, ", "))
	}
}

// removalPlan is what a run would remove now.
func (env *environment) removalPlan(s *app.Services) (output, error) {
	settings, err := s.Retention.Settings(env.ctx)
	if err != nil {
		return output{}, err
	}
	plan, err := s.Retention.Plan(env.ctx, settings)
	return output{plan, func(w io.Writer) {
		fmt.Fprintf(w, "bodies due: %d events, %d deliveries, %d e-mails\n"+
			"bulk re-sends due: %d\ndays of the request log due: %d, with %d requests\n"+
			"applications under a hold: %d\n",
			plan.Events, plan.Deliveries, plan.Emails, plan.Bulks,
			plan.RequestDays, plan.Requests, plan.LegalHolds)
		for _, m := range plan.Months {
			fmt.Fprintf(w, "month %s: about %d deliveries, of which %d are held and %d are open\n",
				m.Month, m.Deliveries, m.LegallyHeld, m.Open)
		}
	}}, err
}

type applicationCmd struct {
	Hold    legalHoldCmd        `cmd:"" help:"Put an application under a legal hold: nothing of it is removed."`
	Release legalHoldReleaseCmd `cmd:"" help:"End the legal hold; what it kept past its time is removed by the next run."`
	Holds   legalHoldsCmd       `cmd:"" help:"List the legal holds in force, or all of one application."`
}

type legalHoldCmd struct {
	UID    string `arg:"" help:"Application."`
	Reason string `required:"" help:"Why, for the record." placeholder:"TEXT"`
	JSON   bool   `name:"json" help:"Print one JSON document."`
}

// Run places a legal hold.
func (cmd legalHoldCmd) Run(env *environment) error {
	return cmd.change(env, "application.hold", (*retention.Service).Place)
}

type legalHoldReleaseCmd struct{ legalHoldCmd }

// Run releases a legal hold.
func (cmd legalHoldReleaseCmd) Run(env *environment) error {
	return cmd.change(env, "application.release", (*retention.Service).Release)
}

// legalHoldJSON is a legal hold as commands print it.
type legalHoldJSON struct {
	Application   uuid.UUID  `json:"application_uid"`
	Reason        string     `json:"reason"`
	PlacedBy      string     `json:"placed_by"`
	PlacedAt      time.Time  `json:"placed_at"`
	ReleaseReason *string    `json:"release_reason"`
	ReleasedBy    *string    `json:"released_by"`
	ReleasedAt    *time.Time `json:"released_at"`
}

func newLegalHoldJSON(h retention.LegalHold) legalHoldJSON {
	return legalHoldJSON{
		Application: h.ApplicationUID, Reason: h.Reason, PlacedBy: h.PlacedBy,
		PlacedAt: h.PlacedAt.UTC(), ReleaseReason: h.ReleaseReason, ReleasedBy: h.ReleasedBy,
		ReleasedAt: utc(h.ReleasedAt),
	}
}

func printLegalHold(w io.Writer, h retention.LegalHold) {
	fmt.Fprintf(w, "%s\theld since %s by %s: %s", h.ApplicationUID,
		h.PlacedAt.UTC().Format(time.RFC3339), h.PlacedBy, h.Reason)
	if !h.InForce() {
		fmt.Fprintf(w, "; released %s by %s: %s", h.ReleasedAt.UTC().Format(time.RFC3339),
			*h.ReleasedBy, *h.ReleaseReason)
	}
	fmt.Fprintln(w)
}

// legalHoldChange places or releases a legal hold.
type legalHoldChange func(
	s *retention.Service, ctx context.Context, tx *postgres.Tx, application uuid.UUID,
	by, reason string,
) (retention.LegalHold, error)

func (cmd legalHoldCmd) change(env *environment, action string, to legalHoldChange) error {
	uid := env.uid("the application", cmd.UID)
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		hold, err := to(s.Retention, env.ctx, tx, uid, cliActor, cmd.Reason)
		printed := newLegalHoldJSON(hold)
		var before any = map[string]any{"held": false}
		if !hold.InForce() { // it was just released
			was := printed
			was.ReleaseReason, was.ReleasedBy, was.ReleasedAt = nil, nil, nil
			before = was
		}
		return did(changeEntry(action, uid.String(), cmd.Reason, before, printed),
			output{printed, aligned(func(w io.Writer) { printLegalHold(w, hold) })}), err
	})
}

type legalHoldsCmd struct {
	UID  string `arg:"" optional:"" help:"Application; its released holds are listed too."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run lists legal holds.
func (cmd legalHoldsCmd) Run(env *environment) error {
	uid := env.optionalUID("the application", cmd.UID)
	rows := rowsOf("holds", newLegalHoldJSON, "APPLICATION\tLEGAL HOLD", printLegalHold)
	return rows.all(env, cmd.JSON,
		func(s *app.Services) ([]retention.LegalHold, error) {
			if uid == uuid.Nil {
				return s.Retention.LegalHoldsInForce(env.ctx)
			}
			return s.Retention.LegalHolds(env.ctx, uid)
		})
}
