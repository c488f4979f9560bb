package views

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DeliveryPage is the page of one delivery.
type DeliveryPage struct {
	Frame
	Delivery DeliveryRow
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
	Attempts    []AttemptView
	// Diagnosis explains the state in plain words; zero for none.
	Diagnosis Diagnosis
	// Origin is the delivery that this one re-sends, nil for none.
	Origin *ResendView
	// Resends are the deliveries that re-send this one, newest first.
	Resends []ResendView
	// BulkUID is the bulk re-send that made this delivery, empty for none.
	BulkUID string
	// Matter is the open item of the queue that this failed delivery belongs to,
	// nil for none; MayAct tells whether the reader may act on it.
	Matter *AttentionRow
	MayAct bool
	// Resend is the re-send form; nil where the reader may not.
	Resend *ResendForm
	// Signed tells that its subscription signs, so that a signature can be looked
	// into.
	Signed bool
	// Curl is a command that repeats the request, secrets left out.
	Curl string
	// Ledger is what became of the event for every subscription of the partner.
	Ledger []LedgerView
	// Related are other deliveries of the application, newest first.
	Related []DeliveryRow
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
	return p.Delivery.State == StatePending || p.Delivery.State == StateRetrying
}

// Diagnosis is a state explained: what happened, whose it probably is, and
// what to do next.
type Diagnosis struct {
	Tone  Tone
	Title string
	// Since is when it began, said behind the title; zero for no such time.
	Since time.Time
	Text  string
	// Owner and Next may be empty.
	Owner string
	Next  string
}

// Heading is the title, ready for the time behind it.
func (d Diagnosis) Heading() string {
	if d.Since.IsZero() {
		return d.Title
	}
	return d.Title + ", the first "
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
	return Visible(r.Reason)
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

// AttemptView is one attempt of a delivery.
type AttemptView struct {
	Number  int
	Started time.Time
	// Running tells that no outcome is recorded yet.
	Running bool
	// HTTPStatus is zero without an answer, ErrorClass empty on success.
	HTTPStatus int
	ErrorClass string
	// Error is the technical cause, Note what was odd about a success.
	Error   string
	Note    string
	Address string
	// Travelled says over which protocol, connection and certificate, empty where
	// it is not known.
	Travelled string
	URL       string
	// Version is the subscription's configuration that was used, 0 if unknown.
	Version         int
	Phases          Phases
	RequestHeaders  []HeaderView
	ResponseHeaders []HeaderView
	ResponseBody    []byte
	// Expanded opens the request and response.
	Expanded bool
}

// HiddenWord is a masked value as the console says it.
func HiddenWord(masked string) string { return strings.ReplaceAll(masked, "[hidden]", "hidden") }

// HeaderView is one header line. A masked value is not the real one.
type HeaderView struct {
	Name   string
	Value  string
	Masked bool
}

// Phases are the parts of an attempt's time. A phase that did not take place,
// as on a reused connection, is zero.
type Phases struct {
	DNS, Connect, TLS, FirstByte, Total time.Duration
}

// chip describes the outcome of an attempt.
func (a AttemptView) chip() ChipProps {
	switch {
	case a.Running:
		return ChipProps{"loader", "Under way", Calm}
	case a.ErrorClass == "":
		return ChipProps{"circle-check", "Delivered", Good}
	case a.ErrorClass == "unknown":
		return ChipProps{"circle-help", "Outcome unknown", Odd}
	}
	return ChipProps{"circle-x", "Failed", Bad}
}

// outcome is the heading of an attempt: "503 Service Unavailable".
func (a AttemptView) outcome() string {
	switch {
	case a.Running:
		return "waiting for the answer"
	case a.HTTPStatus != 0:
		return httpStatus(a.HTTPStatus)
	}
	return OutcomeWord(0, a.ErrorClass)
}

// elementID changes when the attempt ends, so that an update replaces what was
// under way and leaves alone what is over.
func (a AttemptView) elementID() string {
	if a.Running {
		return fmt.Sprintf("attempt-%d-running", a.Number)
	}
	return fmt.Sprintf("attempt-%d", a.Number)
}

// phase is one coloured part of an attempt's bar.
type phase struct {
	class string
	name  string
	took  time.Duration
	// x and width are on the bar's scale of 1000.
	x, width int
}

// barScale is the width of a phase bar in its own units.
const barScale = 1000

// bar lays the phases out on one line; longest is the time that fills it, so
// that the attempts of a delivery compare.
func (p Phases) bar(longest time.Duration) []phase {
	known := p.DNS + p.Connect + p.TLS + p.FirstByte
	parts := []phase{
		{class: "ph-dns", name: "DNS", took: p.DNS},
		{class: "ph-connect", name: "Connect", took: p.Connect},
		{class: "ph-tls", name: "TLS", took: p.TLS},
		{class: "ph-wait", name: "Wait", took: p.FirstByte},
	}
	if rest := p.Total - known; known == 0 {
		parts = append(parts, phase{class: "ph-none", name: "No connection", took: rest})
	} else if p.FirstByte == 0 {
		parts = append(parts, phase{class: "ph-lost", name: "No answer", took: rest})
	} else {
		parts = append(parts, phase{class: "ph-body", name: "Body", took: rest})
	}
	drawn := parts[:0]
	var start time.Duration
	for _, part := range parts {
		if part.took <= 0 {
			continue
		}
		part.x = scale(start, longest)
		part.width = max(scale(start+part.took, longest)-part.x, 2)
		start += part.took
		drawn = append(drawn, part)
	}
	return drawn
}

func scale(d, longest time.Duration) int {
	if longest <= 0 {
		return 0
	}
	return int(d * barScale / longest)
}

// longest is the scale that all attempts of a delivery share.
func longest(attempts []AttemptView) time.Duration {
	var most time.Duration
	for _, attempt := range attempts {
		most = max(most, attempt.Phases.Total)
	}
	return most
}

// wait words the pause between an attempt and the one before it.
func wait(previous, next AttemptView) string {
	pause := next.Started.Sub(previous.Started.Add(previous.Phases.Total))
	if pause <= 0 {
		return "then"
	}
	if pause > time.Second {
		pause = pause.Round(time.Second)
	}
	return Duration(pause.Round(time.Millisecond)) + " later"
}

// compareVersionsPath is the comparison of two versions of a subscription.
func compareVersionsPath(subscription string, from, to int) string {
	return withQuery(SubscriptionPath(subscription), url.Values{
		"tab": {"versions"}, "from": {strconv.Itoa(from)}, "to": {strconv.Itoa(to)},
	})
}
