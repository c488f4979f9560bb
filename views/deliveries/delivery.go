package deliveries

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// DeliveryPage is the page of one delivery.
type DeliveryPage struct {
	ui.Frame
	Delivery ui.DeliveryRow
	// SubscriptionState is the subscription's today.
	SubscriptionState string
	// EventUID and Occurred belong to the event that is delivered.
	EventUID string
	Occurred time.Time
	Merchant string
	// Finished is when the delivery reached its final state, zero before.
	Finished time.Time
	// Body is what every attempt sends, to the byte; SHA256 its hash in hex.
	Body []byte
	// BodyRemoved is when retention removed the body, the zero time before.
	BodyRemoved time.Time
	SHA256      string
	Attempts    []ui.AttemptView
	// Diagnosis explains the state in plain words; zero for none.
	Diagnosis ui.Diagnosis
	// Origin is the delivery that this one re-sends, nil for none.
	Origin *ResendView
	// Resends are the deliveries that re-send this one, newest first.
	Resends []ResendView
	// BulkUID is the bulk re-send that made this delivery, empty for none.
	BulkUID string
	// Matter is the open item of the queue that this failed delivery belongs to,
	// nil for none; MayAct tells whether the reader may act on it.
	Matter *ui.AttentionRow
	MayAct bool
	// Resend is the re-send form; nil where the reader may not.
	Resend *ResendForm
	// Signed tells that its subscription signs, so that a signature can be looked
	// into.
	Signed bool
	// Curl is a command that repeats the request, secrets left out.
	Curl string
	// Ledger is what became of the event for every subscription of the partner.
	Ledger []ui.LedgerView
	// Related are other deliveries of the application, newest first.
	Related []ui.DeliveryRow
	// Version is the subscription's today, VersionThen that of the last attempt,
	// 0 without one; Changed names the settings that differ.
	Version, VersionThen int
	Changed              []string
	// ForPartner is a text that can be sent to the partner as it is.
	ForPartner string
	// ListHref is the list that the page was opened from, NewerHref and OlderHref
	// the deliveries beside this one in it; empty where there is none.
	ListHref, NewerHref, OlderHref string
	// MayCancel tells whether the reader may cancel it.
	MayCancel bool
	// StreamURL and PollURL keep the page up to date.
	StreamURL string
	PollURL   string
}

// Waits tells whether an attempt is still to come.
func (p DeliveryPage) Waits() bool {
	return p.Delivery.State == ui.StatePending || p.Delivery.State == ui.StateRetrying
}

// ResendView is a delivery that is linked by a re-send, from either side.
type ResendView struct {
	UID     string
	State   string
	By      string
	Reason  string
	Created time.Time
}

// reason is why it was re-sent.
func (r ResendView) reason() string {
	if r.Reason == "" {
		return "No reason was given"
	}
	return ui.Visible(r.Reason)
}

// ResendForm is the form that re-sends one delivery.
type ResendForm struct {
	UID     string
	Event   string
	Partner string
	URL     string
	// Risks are what the reader should know before confirming.
	Risks []string
	// Reason and Fault return what was typed, with what is wrong about it.
	Reason string
	Fault  string
}

// wait words the pause between an attempt and the one before it.
func wait(previous, next ui.AttemptView) string {
	pause := next.Started.Sub(previous.Started.Add(previous.Phases.Total))
	if pause <= 0 {
		return "then"
	}
	if pause > time.Second {
		pause = pause.Round(time.Second)
	}
	return ui.Duration(pause.Round(time.Millisecond)) + " later"
}

// compareVersionsPath is the comparison of two versions of a subscription.
func compareVersionsPath(subscription string, from, to int) string {
	return paths.With(paths.To(paths.Subscription, subscription), url.Values{
		"tab": {"versions"}, "from": {strconv.Itoa(from)}, "to": {strconv.Itoa(to)},
	})
}

// underWay tells whether an attempt has begun and not ended.
func underWay(attempts []ui.AttemptView) bool {
	return len(attempts) > 0 && attempts[len(attempts)-1].Running
}

func nextTitle(p DeliveryPage) string {
	return fmt.Sprintf("Attempt %d is due", len(p.Attempts)+1)
}

// timelineCause says where the event comes from.
func timelineCause(r ui.DeliveryRow) string {
	if r.Test {
		return "A test with sample data, which an operator asked for"
	}
	return "Committed together with what it reports: " + ui.Visible(r.Status)
}

// resendTable lists the delivery that this one re-sends, and those that re-send it.
func resendTable(p DeliveryPage) ui.TableProps[ResendView] {
	return ui.TableProps[ResendView]{
		Caption: "Re-sends of this delivery, newest first",
		RowID:   func(r ResendView) string { return "resend-" + r.UID },
		Href:    func(r ResendView) string { return paths.To(paths.Delivery, r.UID) },
		Rows:    p.Resends,
		Columns: []ui.Column[ResendView]{
			{Title: "State", Class: "w-state", Cell: resendStateCell},
			{Title: "Delivery", Header: true, Cell: resendLinkCell},
			{Title: "By", Class: "col-b w-third", Cell: resendByCell},
			{Title: "Reason", Class: "col-a w-third", Cell: resendReasonCell},
			{Title: "Created", Class: "w-time end", Cell: resendTimeCell},
		},
	}
}
