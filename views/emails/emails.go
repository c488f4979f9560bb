// Package emails renders the e-mail log, the page of an e-mail, samples, and the mail settings.
package emails

import (
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

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
func EmailChip(state string, unknown bool) ui.ChipProps {
	switch state {
	case EmailQueued:
		return ui.ChipProps{Icon: "clock", Word: "Queued", Tone: ui.Calm}
	case EmailSent:
		return ui.ChipProps{Icon: "circle-check", Word: "Sent", Tone: ui.Good}
	case EmailFailed:
		if unknown {
			return ui.ChipProps{Icon: "circle-help", Word: "Unknown", Tone: ui.Odd}
		}
		return ui.ChipProps{Icon: "circle-x", Word: "Failed", Tone: ui.Bad}
	case EmailSuppressed:
		return ui.ChipProps{Icon: "ban", Word: "Suppressed", Tone: ui.Mute}
	case EmailNotSent:
		return ui.ChipProps{Icon: "cloud-off", Word: "Not sent", Tone: ui.Warn}
	}
	return ui.ChipProps{Icon: "circle-help", Word: state, Tone: ui.Mute}
}

// EmailList is the page that lists mails.
type EmailList struct {
	ui.Frame
	// Export is the filter as the form of the file sends it.
	Export string
	// Views are filters with a name.
	Views  ui.NamedFilters
	Filter EmailFilter
	// Tabs are the states to switch between, Active the other filters in force.
	Tabs   []ui.Tab
	Active []ui.ActiveFilter
	// Kinds are the choices of the filter form.
	Kinds []ui.Option
	Rows  []ui.EmailRow
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
func (f EmailFilter) faults() []ui.FilterFault {
	var found []ui.FilterFault
	for _, name := range []string{"state", "kind", "to", "application", "cursor"} {
		if text := f.Faults[name]; text != "" {
			fault := ui.FilterFault{Text: text}
			if name != "state" && name != "cursor" {
				fault.Href = "#filter-" + name
			}
			found = append(found, fault)
		}
	}
	return found
}

// field describes a control of the filter form with its fault.
func (p EmailList) field(name, label string) ui.FieldProps {
	return ui.FieldProps{ID: "filter-" + name, Label: label, Fault: p.Filter.Faults[name]}
}

func emailTable(caption string, rows []ui.EmailRow) ui.TableProps[ui.EmailRow] {
	return ui.TableProps[ui.EmailRow]{
		Caption: caption,
		RowID:   func(r ui.EmailRow) string { return "m-" + r.UID },
		Href:    func(r ui.EmailRow) string { return paths.To(paths.Email, r.UID) },
		Rows:    rows,
		Columns: []ui.Column[ui.EmailRow]{
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
func emailPickTable(rows []ui.EmailRow) ui.TableProps[ui.EmailRow] {
	table := emailTable("E-mails, newest first", rows)
	pick := ui.Column[ui.EmailRow]{Title: "Select", Class: "w-pick", Cell: emailPickCell}
	table.Columns = append([]ui.Column[ui.EmailRow]{pick}, table.Columns...)
	return table
}

// emailResendTable lists the mails that re-send one.
func emailResendTable(rows []ui.EmailRow) ui.TableProps[ui.EmailRow] {
	return ui.TableProps[ui.EmailRow]{
		Caption: "Re-sends of this e-mail, oldest first",
		RowID:   func(r ui.EmailRow) string { return "resend-" + r.UID },
		Href:    func(r ui.EmailRow) string { return paths.To(paths.Email, r.UID) },
		Rows:    rows,
		Columns: []ui.Column[ui.EmailRow]{
			{Title: "State", Class: "w-state", Cell: emailStateCell},
			{Title: "E-mail", Header: true, Cell: emailLinkCell},
			{Title: "By", Class: "col-b w-third", Cell: emailByCell},
			{Title: "Reason", Class: "col-a w-third", Cell: emailWhyCell},
			{Title: "Created", Class: "w-time end", Cell: emailCreatedCell},
		},
	}
}
