// Package why explains in a sentence why somebody did not get an event: Explain is a function of
// the facts, and Service gathers them. For an event that has not happened, it says what the
// event is waiting for.
package why

import (
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// Question is the event that somebody misses. The status narrows it to events that report that
// status; empty means any.
type Question struct {
	ApplicationUID uuid.UUID
	Kind           lending.EventKind
	Status         string
	// Draw is the number of the draw that a funding event is about, 0 for any.
	Draw int64
}

// Facts are the complete input of an answer.
type Facts struct {
	Question    `db:"-"`
	Application lending.ApplicationStatus `db:"application_status"`
	Documents   lending.DocumentStatus    `db:"document_status"`
	Tasks       int                       `db:"tasks"`
	// Funding is the state of the draw in question, or else of the newest draw, empty if there is
	// none.
	Funding lending.FundingStatus `db:"funding_status"`
	// Subscriptions is how many the partner has, Wanting how many of them would get the event
	// today, and Paused how many of those are paused.
	Subscriptions int `db:"subscriptions"`
	Wanting       int `db:"wanting"`
	Paused        int `db:"paused"`
	// Task is the title of the task that the event is about, empty for others.
	Task string `db:"task"`
	// OfKind is how many events of the kind the application has.
	OfKind int `db:"of_kind"`
	// Event is the event in question: the newest that did not arrive, or else the newest, of the
	// newest draw if it is about funding. It is nil if none is kept.
	Event *delivery.EventDetail `db:"-"`
}

// Outcome is the outcome of an event, from a closed list.
type Outcome string

// The outcomes, from those that need attention to those that are as expected.
const (
	Failed      Outcome = "failed"
	Paused      Outcome = "paused"
	Waiting     Outcome = "waiting"
	Cancelled   Outcome = "cancelled"
	NotHappened Outcome = "not_happened"
	NotKept     Outcome = "not_kept"
	NotChosen   Outcome = "not_chosen"
	NotCovered  Outcome = "not_covered"
	TooLate     Outcome = "created_later"
	Deleted     Outcome = "deleted_earlier"
	NotRecorded Outcome = "not_recorded"
	Nobody      Outcome = "no_subscription"
	MadeGood    Outcome = "made_good"
	Sent        Outcome = "sent"
)

// Line is the answer for one endpoint.
type Line struct {
	SubscriptionUID uuid.UUID
	subscription.Endpoint
	Outcome  Outcome
	Sentence string
	// DeliveryUID is the delivery that the sentence is about, nil if there is none.
	DeliveryUID *uuid.UUID
	// At is when the delivery ended or its next attempt is due, nil for neither.
	At *time.Time
}

// Answer explains why somebody did not get an event.
type Answer struct {
	Outcome  Outcome
	Sentence string
	// Event is the event that the answer is about, nil if it has not happened or is not kept.
	Event *delivery.EventDetail
	// Others is the number of further events of the kind that the application has.
	Others int
	// Lines has one entry for each endpoint, in the order of the outcomes.
	Lines []Line
}
