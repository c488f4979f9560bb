package operations

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/operator"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// KindWord is a kind of subject in words.
func KindWord(kind string) string {
	switch kind {
	case "api_request":
		return "API request"
	case "attention_item":
		return "alert"
	case "bulk_resend":
		return "bulk re-send"
	case "email":
		return "e-mail"
	case "mail_settings":
		return "e-mail settings"
	}
	return strings.ReplaceAll(kind, "_", " ")
}

// Difference is one field of a state, before and after.
type Difference struct {
	Field  string
	Before string
	After  string
	// HasBefore and HasAfter report whether the state had the field.
	HasBefore bool
	HasAfter  bool
}

// Changed tells whether the two sides differ.
func (d Difference) Changed() bool { return d.HasBefore != d.HasAfter || d.Before != d.After }

// word describes the change of a field in a word.
func (d Difference) word() string {
	switch {
	case !d.Changed():
		return "same"
	case !d.HasBefore:
		return "added"
	case !d.HasAfter:
		return "removed"
	}
	return "changed"
}

// subjectHref is the page of an entry's subject; empty if there is none, or if the reader
// may not see it.
func subjectHref(ctx context.Context, r operator.Record) string {
	if r.Subject == "" || r.Subject == "csv" {
		return ""
	}
	switch r.SubjectKind {
	case "mail_settings":
		return ui.IfMay(ctx, paths.MailSettings)
	case "user":
		if !ui.May(ctx, paths.People) {
			return ""
		}
		return paths.Where(paths.People, "q", r.Subject)
	case "client":
		switch {
		case !r.OfLender:
			return paths.To(paths.Client, r.Subject)
		case ui.May(ctx, paths.LenderClient):
			return paths.To(paths.LenderClient, r.Subject)
		}
		return ""
	}
	pattern, known := map[string]string{
		"application": paths.Application, "delivery": paths.Delivery, "merchant": paths.Merchant,
		"partner": paths.Partner, "email": paths.Email, "subscription": paths.Subscription,
		"bulk_resend": paths.Bulk,
	}[r.SubjectKind]
	if _, err := uuid.Parse(r.Subject); !known || err != nil {
		return "" // a command can concern everything that matches
	}
	return paths.To(pattern, r.Subject)
}

// AuditTable lists entries of the audit log.
func AuditTable(rows []operator.Record) ui.TableProps[operator.Record] {
	return ui.TableProps[operator.Record]{
		Caption: "Audit log, newest first", Rows: rows,
		RowID: func(r operator.Record) string { return "entry-" + strconv.FormatInt(r.ID, 10) },
		Columns: []ui.Column[operator.Record]{
			{Title: "Action", Header: true, Cell: auditActionCell},
			{Title: "Who", Class: "col-a w-fifth", Text: func(r operator.Record) string { return r.Actor }},
			{Title: "Subject", Class: "col-b w-third", Cell: auditSubjectCell},
			{Title: "From", Class: "col-c w-id", Text: func(r operator.Record) string { return r.Address }},
			{Title: "When", Class: "w-time", Time: func(r operator.Record) time.Time { return r.At }},
		},
	}
}

func differenceTable(rows []Difference) ui.TableProps[Difference] {
	return ui.TableProps[Difference]{
		Caption: "The state before and after", Rows: rows,
		RowID: func(d Difference) string { return "field-" + url.PathEscape(d.Field) },
		Columns: []ui.Column[Difference]{
			{Title: "Field", Class: "w-field wrap", Header: true, Cell: fieldCell},
			{Title: "Before", Class: "col-b wrap", Named: true, Cell: func(d Difference) templ.Component {
				return sideCell(d, d.Before, d.HasBefore)
			}},
			{Title: "After", Class: "col-b wrap", Named: true, Cell: func(d Difference) templ.Component {
				return sideCell(d, d.After, d.HasAfter)
			}},
			{Title: "Change", Class: "col-a w-id wrap", Cell: differenceWordCell},
		},
	}
}
