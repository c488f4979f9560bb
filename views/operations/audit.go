package operations

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// AuditRow is an entry of the audit log.
type AuditRow struct {
	ID      int64
	At      time.Time
	Actor   string
	Address string
	Action  string
	// Kind and Subject name what was acted on.
	Kind    string
	Subject string
	// SubjectHref is the subject's page; empty where there is none.
	SubjectHref string
	Reason      string
}

// KindWord is a kind of subject as people say it.
func KindWord(kind string) string {
	switch kind {
	case "bulk_resend":
		return "bulk re-send"
	case "email":
		return "e-mail"
	case "mail_settings":
		return "e-mail settings"
	}
	return strings.ReplaceAll(kind, "_", " ")
}

// allBy leads to all that one actor did.
func allBy(actor string) string {
	if strings.Contains(actor, "@") {
		return "All by this person"
	}
	return "All by this actor"
}

// AuditFilter is the audit log's filter as it was typed.
type AuditFilter struct {
	Actor   string
	Action  string
	Kind    string
	Subject string
	Since   string
	Until   string
	// SinceLocal and UntilLocal are the same for the form, in the reader's zone.
	SinceLocal string
	UntilLocal string
	Faults     map[string]string
}

func (f AuditFilter) filtered() bool {
	return f.Actor+f.Action+f.Kind+f.Subject+f.Since+f.Until != ""
}

func (f AuditFilter) faults() []ui.FilterFault {
	return ui.FormFaultsOf(f.Faults, "since", "until", "cursor")
}

func (f AuditFilter) field(name, label, hint string) ui.FieldProps {
	return ui.FieldProps{ID: name, Label: label, Hint: hint, Fault: f.Faults[name]}
}

// AuditLog is the list of the audit log.
type AuditLog struct {
	ui.Frame
	// Views are filters with a name.
	Views   ui.NamedFilters
	Rows    []AuditRow
	Filter  AuditFilter
	Active  []ui.ActiveFilter
	Kinds   []ui.Option
	Summary string
	Newest  string
	Older   string
	CSVHref string
}

// Difference is one field of a state before and after.
type Difference struct {
	Field  string
	Before string
	After  string
	// HasBefore and HasAfter tell whether the field was there at all.
	HasBefore bool
	HasAfter  bool
}

// Changed tells whether the two sides differ.
func (d Difference) Changed() bool {
	return d.HasBefore != d.HasAfter || d.Before != d.After
}

// AuditEntry is the page of one entry.
type AuditEntry struct {
	ui.Frame
	AuditRow
	Differences []Difference
}

// word tells in a word what became of a field.
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

func auditTable(rows []AuditRow) ui.TableProps[AuditRow] {
	return ui.TableProps[AuditRow]{
		Caption: "Audit log, newest first", Rows: rows,
		RowID: func(r AuditRow) string { return "entry-" + strconv.FormatInt(r.ID, 10) },
		Href:  func(r AuditRow) string { return paths.ToID(paths.AuditEntry, r.ID) },
		Columns: []ui.Column[AuditRow]{
			{Title: "Action", Header: true, Cell: auditActionCell},
			{Title: "Who", Class: "col-a w-fifth", Cell: func(r AuditRow) templ.Component {
				return visibleCell(r.Actor)
			}},
			{Title: "Subject", Class: "col-b w-third", Cell: auditSubjectCell},
			{Title: "From", Class: "col-c w-id", Cell: func(r AuditRow) templ.Component {
				return visibleCell(r.Address)
			}},
			{Title: "When", Class: "w-time", Cell: func(r AuditRow) templ.Component {
				return ui.Time(r.At)
			}},
		},
	}
}

func differenceTable(rows []Difference) ui.TableProps[Difference] {
	return ui.TableProps[Difference]{
		Caption: "The state before and after", Rows: rows,
		RowID: func(d Difference) string { return "field-" + url.PathEscape(d.Field) },
		Columns: []ui.Column[Difference]{
			{Title: "Field", Class: "w-field wrap", Header: true, Cell: func(d Difference) templ.Component {
				return fieldCell(d.Field)
			}},
			{Title: "Before", Class: "wrap", Cell: func(d Difference) templ.Component {
				return sideCell(d.Field, d.Before, d.HasBefore, d.Changed())
			}},
			{Title: "After", Class: "wrap", Cell: func(d Difference) templ.Component {
				return sideCell(d.Field, d.After, d.HasAfter, d.Changed())
			}},
			{Title: "Change", Class: "col-a w-id wrap", Cell: differenceWordCell},
		},
	}
}
