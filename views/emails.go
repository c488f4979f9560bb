package views

import (
	"time"
)

// EmailRow is one mail in a list.
type EmailRow struct {
	UID string
	// Kind is the kind's name in the log, such as "subscription_failing".
	Kind string
	Name string
	To   string
	// Subject is empty until the mail was written.
	Subject string
	// Application is empty for an alert to operators.
	Application string
	State       string
	// Reason says why the mail was not sent.
	Reason string
	// Unknown tells that a failed mail may have arrived.
	Unknown bool
	// Attempts counts those that were a try of this mail.
	Attempts int
	// NextAttempt is zero when none is due.
	NextAttempt time.Time
	// Waits says what it waits for besides its time, mostly nothing.
	Waits   string
	Created time.Time
	// Resend tells that support asked for this mail.
	Resend bool
	By     string
	Why    string
}

// Title is what the row is called: its subject, or its kind before it has one.
func (r EmailRow) Title() string {
	if r.Subject == "" {
		return EmailKind(r.Kind)
	}
	return r.Subject
}

// recipient joins name and address.
func (r EmailRow) recipient() string {
	if r.Name == "" {
		return r.To
	}
	return r.Name + " <" + r.To + ">"
}

// E-mail states as the log names them.
const (
	EmailQueued     = "queued"
	EmailSent       = "sent"
	EmailFailed     = "failed"
	EmailSuppressed = "suppressed"
	EmailNotSent    = "not_sent"
)

// EmailChip describes a mail's state. A state it does not know is shown as it
// is written.
func EmailChip(state string, unknown bool) ChipProps {
	switch state {
	case EmailQueued:
		return ChipProps{"clock", "Queued", Calm}
	case EmailSent:
		return ChipProps{"circle-check", "Sent", Good}
	case EmailFailed:
		if unknown {
			return ChipProps{"circle-help", "Unknown", Odd}
		}
		return ChipProps{"circle-x", "Failed", Bad}
	case EmailSuppressed:
		return ChipProps{"ban", "Suppressed", Mute}
	case EmailNotSent:
		return ChipProps{"cloud-off", "Not sent", Warn}
	}
	return ChipProps{"circle-help", state, Mute}
}

// EmailKind names a kind of mail for people. One it does not know is shown as
// it is written.
func EmailKind(kind string) string {
	switch kind {
	case "welcome":
		return "Welcome"
	case "stipulation":
		return "Stipulation"
	case "task":
		return "Task"
	case "subscription_failing":
		return "Alert: subscription failing"
	case "subscription_recovered":
		return "Alert: subscription recovered"
	case "attempts_used_up":
		return "Alert: attempts used up"
	}
	return kind
}

// EmailList is the page that lists mails.
type EmailList struct {
	Frame
	// Export is the filter as the form of the file sends it.
	Export string
	// Views are filters with a name.
	Views  NamedFilters
	Filter EmailFilter
	// Tabs are the states to switch between, Active the other filters in force.
	Tabs   []Tab
	Active []ActiveFilter
	// Kinds are the choices of the filter form.
	Kinds []Option
	Rows  []EmailRow
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest string
	Older  string
	// Settings leads to the mail settings; empty where the reader may not.
	Settings string
}

// filtered tells whether anything narrows the list.
func (p EmailList) filtered() bool { return p.Filter.State != "" || len(p.Active) > 0 }

// EmailFilter is the filter as the reader typed it, with a fault for each value
// that is wrong.
type EmailFilter struct {
	State       string
	Kind        string
	Application string
	// To is a whole address.
	To     string
	Faults map[string]string
}

// faults lists the wrong values in the order of the form.
func (f EmailFilter) faults() []filterFault {
	var found []filterFault
	for _, name := range []string{"state", "kind", "to", "application", "cursor"} {
		if text := f.Faults[name]; text != "" {
			fault := filterFault{text: text}
			if name != "state" && name != "cursor" {
				fault.href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}

// field describes a control of the filter form with its fault.
func (p EmailList) field(name, label string) FieldProps {
	return FieldProps{ID: "filter-" + name, Label: label, Fault: p.Filter.Faults[name]}
}

func emailTable(caption string, rows []EmailRow) TableProps[EmailRow] {
	return TableProps[EmailRow]{
		Caption: caption,
		RowID:   func(r EmailRow) string { return "m-" + r.UID },
		Href:    func(r EmailRow) string { return EmailPath(r.UID) },
		Rows:    rows,
		Columns: []Column[EmailRow]{
			{Title: "State", Class: "w-state", Cell: emailStateCell},
			{Title: "E-mail", Header: true, Cell: emailSubjectCell},
			{Title: "To", Class: "col-b w-fifth", Cell: emailToCell},
			{Title: "Result", Class: "col-b w-third", Cell: emailResultCell},
			{Title: "Attempts", Class: "col-c w-short end", Cell: emailAttemptsCell},
			{Title: "Created", Class: "w-time end", Cell: emailCreatedCell},
		},
	}
}

// emailPickTable is emailTable with rows to select.
func emailPickTable(rows []EmailRow) TableProps[EmailRow] {
	table := emailTable("E-mails, newest first", rows)
	pick := Column[EmailRow]{Title: "Select", Class: "w-pick", Cell: emailPickCell}
	table.Columns = append([]Column[EmailRow]{pick}, table.Columns...)
	return table
}

// emailResendTable lists the mails that re-send one.
func emailResendTable(rows []EmailRow) TableProps[EmailRow] {
	return TableProps[EmailRow]{
		Caption: "Re-sends of this e-mail, oldest first",
		RowID:   func(r EmailRow) string { return "resend-" + r.UID },
		Href:    func(r EmailRow) string { return EmailPath(r.UID) },
		Rows:    rows,
		Columns: []Column[EmailRow]{
			{Title: "State", Class: "w-state", Cell: emailStateCell},
			{Title: "E-mail", Header: true, Cell: emailLinkCell},
			{Title: "By", Class: "col-b w-third", Cell: emailByCell},
			{Title: "Reason", Class: "col-a w-third", Cell: emailWhyCell},
			{Title: "Created", Class: "w-time end", Cell: emailCreatedCell},
		},
	}
}
