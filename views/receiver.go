package views

import (
	"net/url"
	"strconv"
	"time"
)

// Route patterns of the pages for development.
const (
	PathReceiver          = "/console/dev/receiver"
	PathReceiverLive      = "/console/dev/receiver/live"
	PathReceiverSubscribe = "/console/dev/receiver/subscribe"
	PathReceiverSecret    = "/console/dev/receiver/secret" //nolint:gosec // a path
	PathReceiverClear     = "/console/dev/receiver/clear"
	PathMailbox           = "/console/dev/mailbox"
)

// MailboxOf is the mailbox with one mail open.
func MailboxOf(uid string) string { return withQuery(PathMailbox, url.Values{"mail": {uid}}) }

// ReceiverPage is the sample receiver of a development server.
type ReceiverPage struct {
	Frame
	// URL is where it receives, WrongURL where its certificate names another host.
	URL      string
	WrongURL string
	Mode     string
	Verify   bool
	Received []ReceivedView
	// Partners may get a subscription to it; nobody may where MayChange is false.
	Partners  []Option
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
func (r ReceivedView) answerTone() Tone {
	if r.Answer < 300 {
		return Good
	}
	return Bad
}

func (r ReceivedView) checkTone() Tone {
	if r.Genuine {
		return Good
	}
	return Bad
}

// known tells whether the delivery's id can lead to a page.
func (r ReceivedView) known() bool { return len(r.Delivery) == 36 }

// receiverModes are the knob's positions.
func receiverModes() []authChoice {
	return []authChoice{
		{"accept", "Confirm", "204 to what is genuine."},
		{"fail", "Fail", "500 to everything: three attempts, then the delivery is failed."},
		{"recover", "Fail twice, then confirm", "503, 503, then 204: the retries rescue a delivery."},
		{"slow", "Answer too late", "Nothing for 31 seconds: the attempt times out after 30."},
		{"redirect", "Redirect", "307 to another address: it is not followed and counts as a failure."},
	}
}

// Mailbox is the mail that a development server kept instead of sending it.
type Mailbox struct {
	Frame
	Rows []EmailRow
	// Open is the mail that is shown, empty for none; BodyURL its preview.
	Open    string
	Subject string
	BodyURL string
	Older   string
	Newest  string
	// Sends tells that a mail server is configured, so that nothing is kept.
	Sends bool
}

func mailboxTable(p Mailbox) TableProps[EmailRow] {
	return TableProps[EmailRow]{
		Caption: "E-mails that were kept, newest first",
		RowID:   func(r EmailRow) string { return "mail-" + r.UID },
		Href:    func(r EmailRow) string { return MailboxOf(r.UID) },
		Here:    func(r EmailRow) bool { return r.UID == p.Open },
		Rows:    p.Rows,
		Columns: []Column[EmailRow]{
			{Title: "To", Header: true, Cell: mailboxToCell},
			{Title: "Kind", Class: "col-a w-result", Cell: mailboxKindCell},
			{Title: "Written", Class: "w-time end", Cell: mailboxTimeCell},
		},
	}
}

// groups are the parts of the rail, with those of a development server.
func (f Frame) groups() []navGroup {
	groups := navigationFor(f.User.Role)
	if f.Development {
		groups = append(groups, navGroup{title: "Development", items: []navItem{
			{SectionReceiver, "Sample receiver", "radio-tower", PathReceiver, "x"},
			{SectionMailbox, "Mailbox", "inbox", PathMailbox, "i"},
		}})
	}
	return groups
}
