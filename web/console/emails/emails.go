// Package emails is the console's pages about e-mails: the log, single e-mails and their
// re-sends, the appearance of e-mails and the recipients of alerts.
package emails

import (
	"context"
	"strconv"

	"drawbridge/internal/email"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/emails"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Emails *email.Service
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	const support = operator.RoleSupport
	routes := append(list.Routes(f.Engine, f.list()),
		page.Post(paths.EmailsResend, "console.emails.resend", support, f.resendMany),
		page.Get(paths.Email, "console.email", support, f.detail),
		page.Get(paths.EmailBody, "console.email.body", support, f.body),
		page.Get(paths.EmailSource, "console.email.source", support, f.source),
		page.Get(paths.EmailSamples, "console.emailSamples", support, f.samples),
		page.Get(paths.EmailSample, "console.emailSample", support, f.sample))
	return append(routes, f.Actions(f.resend(), f.settings())...)
}

var place = page.Place{Section: ui.SectionEmails, Title: "E-mails"}

// stateUnknown is a tab in addition to the states: failed e-mails that may have arrived.
const stateUnknown = "unknown"

// states are the tabs, beginning with what needs a person.
var states = []string{
	string(email.StateFailed), stateUnknown, string(email.StateQueued),
	string(email.StateNotSent), string(email.StateCaptured), string(email.StateSuppressed),
	string(email.StateSent),
}

// list is the e-mail log.
func (f *Feature) list() list.Spec[email.Email] {
	tabs := list.Options("All", states, func(state string) string {
		if state == stateUnknown {
			return emails.Chip(string(email.StateFailed), true).Word
		}
		return emails.Chip(state, false).Word
	})
	kinds := list.Options("All kinds", email.Kinds(), ui.EmailKind)
	return list.Spec[email.Email]{
		Name: "console.emails", Path: paths.Emails, Role: operator.RoleSupport, Place: place,
		Intro: "Every e-mail to a borrower or an operator, and what became of it.",
		One:   "e-mail", Many: "e-mails", Order: "Newest first", Table: emails.Table,
		Tabs: list.Tabs{Name: "state", Options: tabs},
		Filters: []list.Filter{
			list.Choose("kind", "Kind", kinds),
			{Name: "to", Label: "Sent to", Chip: "To ", Max: 254},
			{Name: "application", Label: "Application id", Chip: "Application "},
			list.Only("open", "Still to look at", "Any", "failed and not made good"),
			list.Range.Called("Range "), list.Since, list.Until.Called("Until "),
		},
		Read: func(v *list.Values) list.Source[email.Email] {
			return list.Filtered(readFilter(v), func(
				ctx context.Context, filter email.Filter, page postgres.Paging,
			) ([]email.Email, postgres.Cursor, error) {
				return email.List(ctx, f.DB, filter, page)
			}, func(ctx context.Context, filter email.Filter, limit int) (int, error) {
				return email.Count(ctx, f.DB, filter, limit)
			})
		},
		NoMatch: ui.EmptyProps{
			Title: "No e-mail matches these filters",
			Text:  "Remove a filter. An address must be whole, as it stands in the application.",
		},
		Empty: ui.EmptyProps{
			Icon: "mail", Title: "No e-mails yet",
			Text: "An e-mail appears here as soon as there is a reason for one: an accepted offer, a " +
				"stipulation, a task, a subscription in trouble. Those that are held back appear too, " +
				"with the reason.",
			Href: paths.EmailSamples, Action: "See how e-mails look",
		},
		Buttons: emails.Buttons(), Saved: true,
		PickAction: paths.EmailsResend, PickButtons: ui.ResendPicked(),
		File: &list.File[email.Email]{
			Path: paths.EmailsCSV, Name: "emails", Action: "email.export", Subject: "email",
			Columns: []string{
				"email_uid", "created_at", "kind", "to", "subject", "state", "reason", "outcome_unknown",
				"attempts", "next_attempt_at", "finished_at", "application_id", "resend_of", "resent_by",
				"resend_reason",
			},
			Cells: func(e email.Email) []string {
				return []string{
					e.EmailUID.String(), list.CellTime(e.CreatedAt), string(e.Kind), e.ToAddress, e.Subject,
					string(e.State), e.Reason, strconv.FormatBool(e.OutcomeUnknown),
					strconv.Itoa(e.Tries()), list.CellTime(ui.Value(e.NextAttemptAt)),
					list.CellTime(ui.Value(e.FinishedAt)), page.FormatUID(e.ApplicationUID.UUID),
					page.FormatUID(e.ResendOf.UUID), e.ResentBy, e.ResendReason,
				}
			},
		},
	}
}

func readFilter(v *list.Values) email.Filter {
	filter := email.Filter{
		ApplicationUID: v.UID("application"), Kind: list.OneOf(v, "kind", email.Kinds()),
		ToAddress: v.Text("to"), Open: v.Is("open"),
	}
	filter.Since, filter.Until = v.Span()
	if state := list.OneOf(v, "state", states); state == stateUnknown {
		filter.OutcomeUnknown = true
	} else {
		filter.State = email.State(state)
	}
	if filter.ToAddress != "" && email.CheckAddress(filter.ToAddress) != nil {
		v.Wrong["to"] = "This is not an e-mail address; write it as ana@example.com."
	}
	return filter
}
