package console

import (
	"fmt"
	"slices"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook"
	"drawbridge/views/subscriptions"
)

// eventMeanings say when each kind is sent and what it is good for
// (specification section 6.2).
var eventMeanings = map[lending.EventKind]string{
	lending.EventStatusUpdated: "The application moved to another status, such as Approved or " +
		"Declined. Carries the approved offer, if there is one.",
	lending.EventAmountUpdated: "The approved amount was changed after the approval. Carries the " +
		"offer before and after.",
	lending.EventOfferUpdated: "Rate, term or fee changed after the hard credit pull. Carries the " +
		"offer before and after.",
	lending.EventDocumentSent:   "The loan documents went out to be signed.",
	lending.EventDocumentSigned: "The borrower has signed every document that was asked for.",
	lending.EventFundingChanged: "Money for a draw was requested, and once more when it is being " +
		"processed.",
	lending.EventFundingSettled: "The money of a draw has been transferred.",
	lending.EventTaskCreated:    "Somebody has to do something for the application. Carries a title.",
	lending.EventTaskUpdated:    "A task was completed or cancelled. Carries its title.",
}

// sampleTime dates the samples of the form.
var sampleTime = time.Date(2026, time.January, 15, 9, 30, 0, 123456000, time.UTC)

// eventChoices describes every kind; the chosen ones are ticked.
func eventChoices(chosen []string) ([]subscriptions.EventChoice, error) {
	var choices []subscriptions.EventChoice
	for _, kind := range lending.AllEventKinds() {
		event, err := lending.SampleEvent(kind)
		if err != nil {
			return nil, fmt.Errorf("describing %s: %w", kind, err)
		}
		sample, err := event.Render(sampleTime)
		if err != nil {
			return nil, err
		}
		choices = append(choices, subscriptions.EventChoice{
			Kind: string(kind), Title: kind.Title(), Meaning: eventMeanings[kind], Sample: sample,
			Checked: slices.Contains(chosen, string(kind)),
		})
	}
	return choices, nil
}

// chosenEvents are the kinds of a form as settings have them.
func chosenEvents(form subscriptions.SubscriptionForm) []string {
	if form.AllEvents {
		return []string{webhook.AllEvents}
	}
	chosen := []string{}
	for _, event := range form.Events {
		if event.Checked {
			chosen = append(chosen, event.Kind)
		}
	}
	return chosen
}
