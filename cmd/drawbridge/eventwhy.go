package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/why"
)

type eventWhyCmd struct {
	Subject string `arg:"" help:"Application: its id, reference, borrower's name or e-mail address; or the number of a draw."`
	Event   string `required:"" help:"Event kind that is missed." placeholder:"KIND"`
	Status  string `help:"Only an event that tells this status, such as Approved." placeholder:"STATUS"`
	Draw    int64  `help:"Number of the draw; without, that of the subject or the newest." placeholder:"NUMBER"`
	JSON    bool   `name:"json" help:"Print one JSON document."`
}

// Help shows how it is asked.
func (eventWhyCmd) Help() string {
	return "An event that has not happened is answered too: drawbridge event why '#1005' --event " +
		"disbursement.funding.settled"
}

// whyJSON is an answer as commands print it.
type whyJSON struct {
	Application uuid.UUID     `json:"application_id"`
	Outcome     why.Outcome   `json:"outcome"`
	Sentence    string        `json:"sentence"`
	EventUID    *uuid.UUID    `json:"event_uid"`
	OccurredAt  *time.Time    `json:"timestamp"`
	Endpoints   []whyLineJSON `json:"endpoints"`
}

type whyLineJSON struct {
	Subscription uuid.UUID   `json:"subscription_uid"`
	Name         *string     `json:"name"`
	URL          string      `json:"url"`
	Outcome      why.Outcome `json:"outcome"`
	Sentence     string      `json:"sentence"`
	Delivery     *uuid.UUID  `json:"delivery_uid"`
	At           *time.Time  `json:"at"`
	label        string
}

// Run answers.
func (cmd eventWhyCmd) Run(env *environment) error {
	question := why.Question{Kind: env.eventKind("--event", cmd.Event), Status: cmd.Status}
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		found, err := s.Why.Candidates(env.ctx, cmd.Subject, question)
		if err != nil {
			return output{}, err
		}
		if len(found) != 1 {
			return output{}, ambiguous(cmd.Subject, found)
		}
		question = found[0].Question
		if cmd.Draw != 0 {
			question.Draw = cmd.Draw
		}
		answer, err := s.Why.Ask(env.ctx, question)
		printed := whyJSON{
			Application: question.ApplicationUID, Outcome: answer.Outcome, Sentence: answer.Sentence,
			Endpoints: make([]whyLineJSON, 0, len(answer.Lines)),
		}
		if answer.Event != nil {
			printed.EventUID, printed.OccurredAt = &answer.Event.UID, utc(&answer.Event.OccurredAt)
		}
		for _, line := range answer.Lines {
			printed.Endpoints = append(printed.Endpoints, whyLineJSON{
				line.SubscriptionUID, orNull(line.SubscriptionName), line.URL, line.Outcome, line.Sentence,
				line.DeliveryUID, utc(line.At), line.Label(),
			})
		}
		return output{printed, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s.\n", printed.Outcome, printed.Sentence)
			for _, line := range printed.Endpoints {
				fmt.Fprintf(w, "  %-20s %s  %s", line.Outcome, line.label, line.Sentence)
				if line.Delivery != nil {
					fmt.Fprintf(w, "  delivery %s", line.Delivery)
				}
				if line.At != nil {
					fmt.Fprintf(w, "  %s", line.At.Format(time.RFC3339))
				}
				fmt.Fprintln(w)
			}
		}}, err
	})
}

// ambiguous refuses a subject that names nothing, or more than one thing.
func ambiguous(subject string, found []why.Candidate) error {
	if len(found) == 0 {
		return lending.NewError(lending.CodeNotFound, "no application or draw is %q", subject)
	}
	var named []string
	for _, one := range found {
		named = append(named, fmt.Sprintf("%s (%s)", one.ApplicationUID, one.Title))
	}
	return lending.Invalid("subject", "%q may mean %s; name one by its id", subject,
		strings.Join(named, ", "))
}
