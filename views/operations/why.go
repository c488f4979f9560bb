package operations

import (
	"strconv"

	"drawbridge/internal/why"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// WhyProps are the contents of the page that says why somebody did not get an event.
type WhyProps struct {
	// Subject is the subject of the question, as typed.
	Subject  string
	Question why.Question
	// Wrong maps "q" and "event" to their errors.
	Wrong map[string]string
	// Candidates are the possible meanings of the subject; an answer needs exactly one.
	Candidates []why.Candidate
	// Answer is nil until the subject and the event are known.
	Answer *why.Answer
}

// Href is the address of the question's page.
func (p WhyProps) Href() string { return whyHref(p.Subject, p.Question) }

func whyHref(subject string, of why.Question) string {
	pairs := []string{"q", subject, "event", string(of.Kind)}
	if of.Status != "" {
		pairs = append(pairs, "status", of.Status)
	}
	if of.Draw != 0 {
		pairs = append(pairs, "draw", strconv.FormatInt(of.Draw, 10))
	}
	return paths.Where(paths.Why, pairs...)
}

var whyChips = map[why.Outcome]ui.ChipProps{
	why.Sent:        {Icon: "circle-check", Word: "Arrived", Tone: ui.Good},
	why.MadeGood:    {Icon: "circle-check", Word: "Made good", Tone: ui.Mute},
	why.Failed:      {Icon: "circle-x", Word: "Failed", Tone: ui.Bad},
	why.Waiting:     {Icon: "clock", Word: "Waiting", Tone: ui.Calm},
	why.Paused:      {Icon: "pause", Word: "Paused", Tone: ui.Warn},
	why.Cancelled:   {Icon: "ban", Word: "Cancelled", Tone: ui.Mute},
	why.NotHappened: {Icon: "clock", Word: "Has not happened", Tone: ui.Calm},
	why.NotChosen:   {Icon: "circle-help", Word: "Not chosen", Tone: ui.Odd},
	why.NotCovered:  {Icon: "circle-help", Word: "Not covered", Tone: ui.Odd},
	why.Nobody:      {Icon: "webhook", Word: "No subscription", Tone: ui.Odd},
}

// whyChip describes an outcome.
func whyChip(outcome why.Outcome) ui.ChipProps {
	if chip, known := whyChips[outcome]; known {
		return chip
	}
	return ui.ChipProps{Icon: "circle-help", Word: "Not sent", Tone: ui.Mute}
}

// othersWord counts the events of the kind that the answer does not cover.
func othersWord(answer why.Answer) string {
	if answer.Event == nil {
		return ui.Plural(answer.Others, "event", "events") + " of this kind"
	}
	return ui.Plural(answer.Others, "other event", "other events") + " of this kind"
}
