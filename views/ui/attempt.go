package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// noAnswer says why an attempt has no response.
func noAnswer(a AttemptView) string {
	switch {
	case a.Running:
		return "No answer yet."
	case a.ErrorClass == sender.ClassUnknown:
		return "The process that made this attempt ended before it could record the answer. " +
			"The endpoint may or may not have received it."
	}
	return "No answer was received: " + OutcomeWord(0, a.ErrorClass) + "."
}

// Diagnosis explains a state: what happened, who is probably responsible, and what to do
// next.
type Diagnosis struct {
	Tone  Tone
	Title string
	// Since is shown after the title: when the state began, or when it was; zero for no time.
	Since time.Time
	Text  string
	// Owner and Next may be empty.
	Owner string
	Next  string
}

// AttemptView is one attempt of a delivery, as pages show it.
type AttemptView struct {
	delivery.Attempt
	// Of is the prefix of its element ids on a page with attempts of several deliveries.
	Of string
	// Running means that no outcome has been recorded yet.
	Running bool
	// Expanded opens the request and response.
	Expanded bool
}

// connectionWords names the protocol, TLS version, connection and certificate, as far as known.
func (a AttemptView) connectionWords() string {
	travelled := slices.DeleteFunc([]string{a.Protocol, a.TLSVersion},
		func(part string) bool { return part == "" })
	if a.Reused != nil {
		travelled = append(travelled, map[bool]string{
			true: "on an open connection", false: "on a new connection",
		}[*a.Reused])
	}
	if a.CertificateExpires != nil {
		travelled = append(travelled,
			"certificate until "+a.CertificateExpires.UTC().Format("2006-01-02"))
	}
	return strings.Join(travelled, ", ")
}

// HiddenWord is a masked value in words.
func HiddenWord(masked string) string { return strings.ReplaceAll(masked, "[hidden]", "hidden") }

// chip describes the outcome of an attempt.
func (a AttemptView) chip() ChipProps {
	switch {
	case a.Running:
		return ChipProps{"loader", "Under way", Calm}
	case a.ErrorClass == "":
		return ChipProps{"circle-check", "Delivered", Good}
	case a.ErrorClass == sender.ClassUnknown:
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
		return HTTPStatus(a.HTTPStatus)
	}
	return OutcomeWord(0, a.ErrorClass)
}

// ElementID changes when the attempt ends, so that an update replaces an attempt in
// progress and leaves a finished one alone.
func (a AttemptView) ElementID() string {
	if a.Running {
		return fmt.Sprintf("%sattempt-%d-running", a.Of, a.Number)
	}
	return fmt.Sprintf("%sattempt-%d", a.Of, a.Number)
}

// phase is one coloured part of an attempt's bar.
type phase struct {
	class, name string
	took        time.Duration
	// x and width are in units of barScale.
	x, width int
}

// barScale is the width of a phase bar in its own units.
const barScale = 1000

// bar places the phases of the attempt on one line; longest is the duration that fills it,
// so that the attempts of a delivery can be compared. A phase that did not take place, for
// instance on a reused connection, is zero.
func (a AttemptView) bar(longest time.Duration) []phase {
	known := a.DNS + a.Connect + a.TLS + a.FirstByte
	rest := phase{class: "ph-body", name: "Body", took: a.Duration - known}
	switch {
	case known == 0:
		rest.class, rest.name = "ph-none", "No connection"
	case a.FirstByte == 0:
		rest.class, rest.name = "ph-lost", "No answer"
	}
	parts := []phase{
		{class: "ph-dns", name: "DNS", took: a.DNS},
		{class: "ph-connect", name: "Connect", took: a.Connect},
		{class: "ph-tls", name: "TLS", took: a.TLS},
		{class: "ph-wait", name: "Wait", took: a.FirstByte},
		rest,
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

// AttemptsOf returns the attempts of a delivery. The last one is expanded if it failed.
func AttemptsOf(attempts []delivery.Attempt) []AttemptView {
	found := make([]AttemptView, 0, len(attempts))
	for i, attempt := range attempts {
		found = append(found, AttemptView{
			Attempt: attempt, Expanded: attempt.ErrorClass != "" && i == len(attempts)-1,
		})
	}
	return found
}

// DiagnosisOf explains a delivery's state in plain words; zero if there is nothing to explain.
func DiagnosisOf(detail delivery.Detail, subscribed subscription.State) Diagnosis {
	last := delivery.Attempt{}
	if len(detail.Attempts) > 0 {
		last = detail.Attempts[len(detail.Attempts)-1]
	}
	why := diagnose.Attempt(last)
	explained := Diagnosis{
		Text: why.Summary, Owner: string(why.Owner), Next: strings.TrimSpace(why.Next),
	}
	switch {
	case detail.State == delivery.StateDelivered:
		return Diagnosis{Tone: Good, Title: "The partner has received it", Text: fmt.Sprintf(
			"The endpoint answered %d to attempt %d.", last.HTTPStatus, last.Number)}
	case detail.State == delivery.StateCancelled:
		return Diagnosis{
			Tone: Mute, Title: "It was cancelled and will not be sent",
			Text: "Its subscription was deleted, or an operator cancelled it, before it went out.",
		}
	case detail.State == delivery.StateFailed:
		explained.Tone, explained.Title = Bad, "All attempts are used up"
		if detail.MadeGoodBy != nil {
			explained.Tone = Mute
		}
		return explained
	case subscribed == subscription.StatePaused:
		return Diagnosis{
			Tone: Mute, Title: "It waits: the subscription is paused",
			Text: "It goes out when the subscription is resumed.",
		}
	case detail.Parked:
		return Diagnosis{
			Tone: Bad, Title: "It waits: nothing can be sent to its subscription",
			Text: "The subscription's secret or headers do not open; its page says what to do.",
		}
	case detail.State == delivery.StateRetrying:
		explained.Tone, explained.Title = Warn, "It failed and will be tried again by itself"
		return explained
	}
	return Diagnosis{}
}

// Longest is the longest duration, the scale that all attempts of a delivery share.
func Longest(attempts []AttemptView) time.Duration {
	var most time.Duration
	for _, attempt := range attempts {
		most = max(most, attempt.Duration)
	}
	return most
}
