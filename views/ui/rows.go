package ui

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/application"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// ApplicationTable lists applications.
func ApplicationTable(rows []application.Summary) TableProps[application.Summary] {
	return TableProps[application.Summary]{
		Caption: "Applications, newest first",
		RowID:   func(s application.Summary) string { return "a-" + s.UID.String() },
		Rows:    rows,
		Columns: []Column[application.Summary]{
			Chips("Status", "w-state w-status",
				func(s application.Summary) ChipProps { return ApplicationChip(string(s.Status)) }),
			{Title: "Borrower", Header: true, Cell: borrowerCell},
			Texts("Reference", "col-b w-place",
				func(s application.Summary) string { return Value(s.Reference) }),
			{Title: "Merchant", Class: "col-b w-sixth", Cell: merchantCell},
			Amounts("Requested", "col-a w-amount end",
				func(s application.Summary) *lending.Money { return &s.RequestedAmount }).Titled(),
			Amounts("Loan", "col-c w-amount end",
				func(s application.Summary) *lending.Money { return s.LoanAmount }),
			Amounts("Drawn", "col-d w-amount end",
				func(s application.Summary) *lending.Money { return s.Drawn }),
			Times("Created", "w-time end", func(s application.Summary) time.Time { return s.CreatedAt }),
		},
	}
}

// ApplicationLabel names an application: borrower, the end of its id, reference.
func ApplicationLabel(s application.Summary) string {
	label := s.Name() + ", " + ShortUID(s.UID.String())
	if reference := Value(s.Reference); reference != "" {
		label += ", " + reference
	}
	return label
}

// drawPrefix is the prefix of the subject of an event about a draw; the draw's number follows.
const drawPrefix = "disbursement/"

// DrawWord names the draw of an event, after its status; empty if the event is not about a draw.
func DrawWord(subject string) string {
	if number, isDraw := strings.CutPrefix(subject, drawPrefix); isDraw && number != "" {
		return ", Draw #" + number
	}
	return ""
}

// DeliveryLabel names a delivery: the event and the partner.
func DeliveryLabel(d delivery.Delivery) string { return d.Event.Title() + " to " + d.PartnerName }

// lastResult is the last attempt's outcome in a word or two.
func lastResult(d delivery.Delivery) string {
	if d.AttemptCount == 0 {
		return ""
	}
	return OutcomeWord(d.LastStatus(), d.LastError())
}

// outcomeWords name the errors without an HTTP status.
var outcomeWords = map[sender.ErrorClass]string{
	sender.ClassDNS:      "Name not found",
	sender.ClassConnect:  "No connection",
	sender.ClassTLS:      "TLS failed",
	sender.ClassTimeout:  "Timed out",
	sender.ClassBlocked:  "Address blocked",
	sender.ClassProtocol: "Broken answer",
	sender.ClassUnknown:  "Outcome unknown",
}

// OutcomeWord is the outcome of an attempt in words: "HTTP 503", "Timed out".
func OutcomeWord[C ~string](status int, class C) string {
	if class == "" && status == 0 {
		return "Under way"
	}
	return cmp.Or(outcomeWords[sender.ErrorClass(class)], fmt.Sprintf("HTTP %d", status))
}

// pips returns the CSS classes of the attempts made and still to come, a colour and a
// position each; red if somebody has to act.
func pips(d delivery.Delivery) string {
	made := "bad"
	if d.LastError() == sender.ClassUnknown {
		made = "odd"
	}
	if d.State == delivery.StateCancelled || d.MadeGoodBy != nil {
		made = "mute"
	}
	var drawn strings.Builder
	for i := range delivery.MaxAttempts {
		var class string
		switch {
		case i == d.AttemptCount-1 && d.State == delivery.StateDelivered:
			class = "good"
		case i < d.AttemptCount:
			class = made
		case i == d.AttemptCount && !d.Due().IsZero():
			class = "calm"
		default:
			continue
		}
		drawn.WriteString(" " + class + strconv.Itoa(i+1))
	}
	return drawn.String()
}

// DeliveryTable lists deliveries.
func DeliveryTable(rows []delivery.Delivery) TableProps[delivery.Delivery] {
	return TableProps[delivery.Delivery]{
		Caption: "Deliveries, newest first",
		RowID:   func(r delivery.Delivery) string { return "d-" + RowID(r.UID) },
		Rows:    rows,
		Columns: []Column[delivery.Delivery]{
			{Title: "State", Class: "w-state", Chip: DeliveryChipOf},
			{Title: "Event", Header: true, Cell: eventCell},
			{Title: "Application", Class: "col-b w-id mono", Cell: applicationCell},
			{Title: "Destination", Class: "col-b w-dest", Cell: destinationCell},
			{Title: "Attempts", Class: "col-a w-pips", Cell: attemptsCell},
			{Title: "Result", Class: "col-b w-state", Cell: resultCell},
			{Title: "Took", Class: "col-c col-d w-short end", Cell: tookCell},
			Times("Created", "w-time end", func(d delivery.Delivery) time.Time { return d.CreatedAt }),
		},
	}
}

// EmailFrame is a sandboxed frame with an e-mail.
type EmailFrame struct {
	URL string
	// Title names the frame for screen readers.
	Title string
	// Scheme is "light" or "dark", empty for the reader's own scheme.
	Scheme string
}

func (f EmailFrame) class() string {
	return If(f.Scheme == "", "mail-frame", "mail-frame mail-frame-"+f.Scheme)
}

var emailWords = map[email.Kind]string{
	email.KindWelcome:               "Welcome",
	email.KindStipulation:           "Stipulation",
	email.KindTask:                  "Task",
	email.KindSubscriptionFailing:   "Alert: subscription failing",
	email.KindSubscriptionRecovered: "Alert: subscription recovered",
	email.KindAttemptsUsedUp:        "Alert: attempts used up",
	email.KindDrawsOverdue:          "Alert: draws overdue",
	email.KindUndecided:             "Alert: applications undecided",
	email.KindDeliveriesFailed:      "Partner's contact: deliveries failed",
}

// EmailKind is a kind of e-mail in words. An unknown kind is shown as it is written.
func EmailKind(kind email.Kind) string { return wordOf(emailWords, kind) }

// verdictChip is the chip of a ledger line's verdict.
func verdictChip(line delivery.LedgerLine) ChipProps {
	switch {
	case line.DeliveryUID != nil:
		return DeliveryChip(line.DeliveryState)
	case line.Verdict == delivery.VerdictUnrecorded:
		return ChipProps{"circle-help", "Not recorded", Odd}
	}
	return ChipProps{"ban", "Not sent", Mute}
}

// verdictWords say why a subscription got an event, or why not.
var verdictWords = map[delivery.Verdict]string{
	delivery.VerdictSent:       "It asked for this event",
	delivery.VerdictWaiting:    "It is paused: the delivery waits until it is resumed",
	delivery.VerdictEvent:      "It had not chosen events of this kind",
	delivery.VerdictMerchant:   "It did not cover the merchant",
	delivery.VerdictDeleted:    "It had been deleted before",
	delivery.VerdictLater:      "It was created after the event",
	delivery.VerdictUnrecorded: "The event was recorded before reasons were kept",
}
