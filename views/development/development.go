// Package development renders the pages of a development server: the sample receiver and
// the mailbox.
package development

import (
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/partner"
	"drawbridge/internal/receiver"
	"drawbridge/views/ui"
)

// ReceiverProps are the state of the sample receiver.
type ReceiverProps struct {
	// URL is its address, WrongURL one where its certificate names another host.
	URL, WrongURL string
	Settings      receiver.Settings
	// Slow is how long a slow answer takes, Timeout after how long an attempt is aborted.
	Slow, Timeout time.Duration
	Received      []receiver.Received
	// Partners are the partners that may get a subscription to it.
	Partners []partner.Partner
	// Wrong says why nothing was done, otherwise empty.
	Wrong string
}

// modes are the receiver's ways to answer.
func (p ReceiverProps) modes() []ui.AuthChoice {
	return []ui.AuthChoice{
		{Value: "accept", Title: "Confirm", Text: "204 to what is genuine."},
		{
			Value: "fail", Title: "Fail",
			Text: "500 to everything: three attempts, then the delivery is failed.",
		},
		{
			Value: "recover", Title: "Fail twice, then confirm",
			Text: "503, 503, then 204: the retries rescue a delivery.",
		},
		{
			Value: "slow", Title: "Answer too late",
			Text: "Nothing for " + ui.Duration(p.Slow) + ": the attempt times out after " +
				ui.Duration(p.Timeout) + ".",
		},
		{
			Value: "redirect", Title: "Redirect",
			Text: "307 to another address: it is not followed and counts as a failure.",
		},
	}
}

// partnerOptions lists the partners to choose from.
func (p ReceiverProps) partnerOptions() []ui.Option {
	options := make([]ui.Option, 0, len(p.Partners))
	for _, each := range p.Partners {
		options = append(options, ui.Option{Value: each.UID.String(), Label: each.Name})
	}
	return options
}

func tone(good bool) ui.Tone { return ui.If(good, ui.Good, ui.Bad) }

func mailTable(rows []email.Email, open uuid.UUID) ui.TableProps[email.Email] {
	return ui.TableProps[email.Email]{
		Caption: "E-mails that were kept, newest first", Rows: rows,
		RowID: func(m email.Email) string { return "mail-" + m.EmailUID.String() },
		Here:  func(m email.Email) bool { return m.EmailUID == open },
		Columns: []ui.Column[email.Email]{
			{Title: "To", Header: true, Cell: mailToCell},
			ui.Texts("Kind", "col-a w-result", func(m email.Email) string { return ui.EmailKind(m.Kind) }),
			ui.Times("Written", "w-time end", func(m email.Email) time.Time { return m.CreatedAt }),
		},
	}
}
