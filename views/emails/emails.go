// Package emails renders the e-mail log, the page of an e-mail, samples, and the e-mail settings.
package emails

import (
	"time"

	"drawbridge/internal/email"
	"drawbridge/views/ui"
)

var chips = map[email.State]ui.ChipProps{
	email.StateQueued:     {Icon: "clock", Word: "Queued", Tone: ui.Calm},
	email.StateSent:       {Icon: "circle-check", Word: "Sent", Tone: ui.Good},
	email.StateFailed:     {Icon: "circle-x", Word: "Failed", Tone: ui.Bad},
	email.StateSuppressed: {Icon: "ban", Word: "Suppressed", Tone: ui.Mute},
	email.StateNotSent:    {Icon: "cloud-off", Word: "Not sent", Tone: ui.Warn},
	email.StateCaptured:   {Icon: "archive", Word: "Captured", Tone: ui.Mute},
	madeGood:              {Icon: "circle-check", Word: "Made good", Tone: ui.Mute},
}

// madeGood is the state shown for a failure that a later re-send has fixed.
const madeGood = "made_good"

// Chip describes an e-mail's state; unknown means that a failed one may have arrived.
func Chip(state string, unknown bool) ui.ChipProps {
	if email.State(state) == email.StateFailed && unknown {
		return ui.ChipProps{Icon: "circle-help", Word: "Unknown", Tone: ui.Odd}
	}
	return ui.KnownChip(chips, email.State(state))
}

func chip(e email.Email) ui.ChipProps {
	if e.MadeGoodBy.Valid {
		return Chip(madeGood, false)
	}
	return Chip(string(e.State), e.OutcomeUnknown)
}

// Title is an e-mail's subject, or its kind until it has one.
func Title(e email.Email) string {
	if e.Subject == "" {
		return ui.EmailKind(e.Kind)
	}
	return e.Subject
}

// recipient joins name and address.
func recipient(e email.Email) string {
	return ui.If(e.ToName == "", e.ToAddress, e.ToName+" <"+e.ToAddress+">")
}

// Table lists e-mails with checkboxes.
func Table(rows []email.Email) ui.TableProps[email.Email] {
	table := table("E-mails, newest first", "m-", rows)
	table.Columns = []ui.Column[email.Email]{
		{Title: "Select", Class: "w-pick", Cell: pickCell},
		{Title: "State", Class: "w-state", Chip: chip},
		{Title: "E-mail", Header: true, Cell: subjectCell},
		{Title: "To", Class: "col-b w-fifth", Cell: toCell},
		{Title: "Result", Class: "col-b w-third", Cell: resultCell},
		ui.Texts("Attempts", "col-c w-short end",
			func(e email.Email) string { return ui.Number(e.Tries()) }),
		table.Columns[0],
	}
	return table
}

// resendTable lists the re-sends of an e-mail.
func resendTable(rows []email.Email) ui.TableProps[email.Email] {
	table := table("Re-sends of this e-mail, oldest first", "resend-", rows)
	table.Columns = []ui.Column[email.Email]{
		{Title: "State", Class: "w-state", Chip: chip},
		{Title: "E-mail", Header: true, Cell: resendCell},
		{Title: "By", Class: "col-b w-third", Text: func(e email.Email) string { return e.ResentBy }},
		ui.Texts("Reason", "col-a w-third", func(e email.Email) string { return e.ResendReason }),
		table.Columns[0],
	}
	return table
}

func table(caption, id string, rows []email.Email) ui.TableProps[email.Email] {
	return ui.TableProps[email.Email]{
		Caption: caption, Rows: rows,
		RowID: func(e email.Email) string { return id + e.EmailUID.String() },
		Columns: []ui.Column[email.Email]{
			ui.Times("Created", "w-time end", func(e email.Email) time.Time { return e.CreatedAt }),
		},
	}
}
