package operations

import (
	"strconv"
	"time"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// ReceiverPage is the sample receiver of a development server.
type ReceiverPage struct {
	ui.Frame
	// URL is where it receives, WrongURL where its certificate names another host.
	URL      string
	WrongURL string
	Mode     string
	Verify   bool
	Received []ReceivedView
	// Partners may get a subscription to it; nobody may where MayChange is false.
	Partners  []ui.Option
	MayChange bool
	Fault     string
}

// ReceivedView is a request that the sample receiver got.
type ReceivedView struct {
	Number    int
	At        time.Time
	Delivery  string
	Event     string
	Attempt   string
	Test      bool
	Genuine   bool
	Check     string
	Duplicate string
	Answer    int
	Body      []byte
}

func (r ReceivedView) elementID() string { return "received-" + strconv.Itoa(r.Number) }

// answerTone is good for a confirmation.
func (r ReceivedView) answerTone() ui.Tone {
	if r.Answer < 300 {
		return ui.Good
	}
	return ui.Bad
}

func (r ReceivedView) checkTone() ui.Tone {
	if r.Genuine {
		return ui.Good
	}
	return ui.Bad
}

// known tells whether the delivery's id can lead to a page.
func (r ReceivedView) known() bool { return len(r.Delivery) == 36 }

// receiverModes are the knob's positions.
func receiverModes() []ui.AuthChoice {
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
			Text: "Nothing for 31 seconds: the attempt times out after 30.",
		},
		{
			Value: "redirect", Title: "Redirect",
			Text: "307 to another address: it is not followed and counts as a failure.",
		},
	}
}

// Mailbox is the mail that a development server kept instead of sending it.
type Mailbox struct {
	ui.Frame
	Rows []ui.EmailRow
	// Open is the mail that is shown, empty for none; BodyURL its preview.
	Open    string
	Subject string
	BodyURL string
	Older   string
	Newest  string
	// Sends tells that a mail server is configured, so that nothing is kept.
	Sends bool
}

func mailboxTable(p Mailbox) ui.TableProps[ui.EmailRow] {
	return ui.TableProps[ui.EmailRow]{
		Caption: "E-mails that were kept, newest first",
		RowID:   func(r ui.EmailRow) string { return "mail-" + r.UID },
		Href:    func(r ui.EmailRow) string { return paths.Where(paths.Mailbox, "mail", r.UID) },
		Here:    func(r ui.EmailRow) bool { return r.UID == p.Open },
		Rows:    p.Rows,
		Columns: []ui.Column[ui.EmailRow]{
			{Title: "To", Header: true, Cell: mailboxToCell},
			{Title: "Kind", Class: "col-a w-result", Cell: mailboxKindCell},
			{Title: "Written", Class: "w-time end", Cell: mailboxTimeCell},
		},
	}
}
