package ui

import (
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
			{
				Title: "Status", Class: "w-state w-status",
				Chip: func(s application.Summary) ChipProps { return ApplicationChip(string(s.Status)) },
			},
			{Title: "Borrower", Header: true, Cell: borrowerCell},
			{
				Title: "Reference", Class: "col-b w-place", Text: func(s application.Summary) string {
					if s.Reference == nil {
						return ""
					}
					return *s.Reference
				},
			},
			{Title: "Merchant", Class: "col-b w-sixth", Cell: merchantCell},
			{
				Title: "Requested", Class: "col-a w-amount end", Named: true,
				Money: func(s application.Summary) *lending.Money { return &s.RequestedAmount },
			},
			{
				Title: "Loan", Class: "col-c w-amount end",
				Money: func(s application.Summary) *lending.Money { return s.LoanAmount },
			},
			{
				Title: "Drawn", Class: "col-d w-amount end",
				Money: func(s application.Summary) *lending.Money { return s.Drawn },
			},
			{
				Title: "Created", Class: "w-time end",
				Time: func(s application.Summary) time.Time { return s.CreatedAt },
			},
		},
	}
}

// ApplicationLabel names an application: borrower, the end of its id, reference.
func ApplicationLabel(s application.Summary) string {
	label := s.Name() + ", " + ShortUID(s.UID.String())
	if s.Reference != nil && *s.Reference != "" {
		label += ", " + *s.Reference
	}
	return label
}

// DrawOf is the number of the draw that an event is about, by its subject; empty for none.
func DrawOf(subject string) string {
	number, isDraw := strings.CutPrefix(subject, "disbursement/")
	if !isDraw {
		return ""
	}
	return number
}

// DrawWord names the draw that an event is about, behind its status; empty for none.
func DrawWord(subject string) string {
	if number := DrawOf(subject); number != "" {
		return ", Draw #" + number
	}
	return ""
}

// DeliveryRow is one delivery in a list.
type DeliveryRow = delivery.Delivery

// DeliveryLabel names a delivery: what, and to whom.
func DeliveryLabel(d delivery.Delivery) string { return d.Event.Title() + " to " + d.PartnerName }

// lastResult names the last attempt's outcome in a word or two.
func lastResult(d delivery.Delivery) string {
	if d.AttemptCount == 0 {
		return ""
	}
	return OutcomeWord(d.LastStatus(), d.LastError())
}

// OutcomeWord names the outcome of an attempt: "HTTP 503", "Timed out".
func OutcomeWord[C ~string](status int, class C) string {
	switch sender.ErrorClass(class) {
	case "":
		if status == 0 {
			return "Under way"
		}
	case sender.ClassDNS:
		return "Name not found"
	case sender.ClassConnect:
		return "No connection"
	case sender.ClassTLS:
		return "TLS failed"
	case sender.ClassTimeout:
		return "Timed out"
	case sender.ClassBlocked:
		return "Address blocked"
	case sender.ClassProtocol:
		return "Broken answer"
	case sender.ClassUnknown:
		return "Outcome unknown"
	case sender.ClassHTTP3xx, sender.ClassHTTP4xx, sender.ClassHTTP5xx: // by the status
	}
	return fmt.Sprintf("HTTP %d", status)
}

// pips are the classes that draw the attempts made and those still open, a colour and a
// place each: red where somebody has to look.
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
func DeliveryTable(rows []DeliveryRow) TableProps[DeliveryRow] {
	return TableProps[DeliveryRow]{
		Caption: "Deliveries, newest first",
		RowID:   func(r DeliveryRow) string { return "d-" + RowID(r.UID) },
		Rows:    rows,
		Columns: []Column[DeliveryRow]{
			{Title: "State", Class: "w-state", Chip: DeliveryChipOf},
			{Title: "Event", Header: true, Cell: eventCell},
			{Title: "Application", Class: "col-b w-id mono", Cell: applicationCell},
			{Title: "Destination", Class: "col-b w-dest", Cell: destinationCell},
			{Title: "Attempts", Class: "col-a w-pips", Cell: attemptsCell},
			{Title: "Result", Class: "col-b w-state", Cell: resultCell},
			{Title: "Took", Class: "col-c col-d w-short end", Cell: tookCell},
			{
				Title: "Created", Class: "w-time end",
				Time: func(d DeliveryRow) time.Time { return d.CreatedAt },
			},
		},
	}
}

// EmailFrame is a mail in a frame that runs nothing.
type EmailFrame struct {
	URL string
	// Title names the frame for those who do not see it.
	Title string
	// Scheme is "light" or "dark", empty for the reader's own.
	Scheme string
}

func (f EmailFrame) class() string {
	if f.Scheme == "" {
		return "mail-frame"
	}
	return "mail-frame mail-frame-" + f.Scheme
}

// EmailKind names a kind of mail for people. One it does not know is shown as
// it is written.
func EmailKind(kind email.Kind) string {
	switch kind {
	case email.KindWelcome:
		return "Welcome"
	case email.KindStipulation:
		return "Stipulation"
	case email.KindTask:
		return "Task"
	case email.KindSubscriptionFailing:
		return "Alert: subscription failing"
	case email.KindSubscriptionRecovered:
		return "Alert: subscription recovered"
	case email.KindAttemptsUsedUp:
		return "Alert: attempts used up"
	case email.KindDrawsOverdue:
		return "Alert: draws overdue"
	case email.KindUndecided:
		return "Alert: applications undecided"
	case email.KindDeliveriesFailed:
		return "Partner's contact: deliveries failed"
	}
	return string(kind)
}

// verdictChip is the verdict as a state.
func verdictChip(line delivery.LedgerLine) ChipProps {
	switch {
	case line.DeliveryUID != nil:
		return DeliveryChip(line.DeliveryState)
	case line.Verdict == delivery.VerdictUnrecorded:
		return ChipProps{"circle-help", "Not recorded", Odd}
	}
	return ChipProps{"ban", "Not sent", Mute}
}

// VerdictWord says why a subscription got an event, or why not.
func VerdictWord(verdict delivery.Verdict) string {
	switch verdict {
	case delivery.VerdictSent:
		return "It asked for this event"
	case delivery.VerdictWaiting:
		return "It is paused: the delivery waits until it is resumed"
	case delivery.VerdictEvent:
		return "It had not chosen events of this kind"
	case delivery.VerdictMerchant:
		return "It did not cover the merchant"
	case delivery.VerdictDeleted:
		return "It had been deleted before"
	case delivery.VerdictLater:
		return "It was created after the event"
	case delivery.VerdictUnrecorded:
		return "The event was recorded before reasons were kept"
	}
	return string(verdict)
}
