// Package why answers why somebody did not get an event, in a sentence: Explain is a
// function of the facts, Service gathers them. An event that has not happened is
// answered too, with what it waits for.
package why

import (
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// Question is what somebody misses. The status narrows it to the event that tells
// it, empty for any.
type Question struct {
	ApplicationUID uuid.UUID
	Kind           lending.EventKind
	Status         string
	// Draw is the number of the draw that an event of funding is about, 0 for any.
	Draw int64
}

// Facts are all that an answer follows from.
type Facts struct {
	Question    `db:"-"`
	Application lending.ApplicationStatus `db:"application_status"`
	Documents   lending.DocumentStatus    `db:"document_status"`
	Tasks       int                       `db:"tasks"`
	// Funding is where the draw of the question stands, or the newest one, empty without
	// any.
	Funding lending.FundingStatus `db:"funding_status"`
	// Subscriptions is how many the partner has, Wanting how many of them would get
	// the event today, Paused how many of those are paused.
	Subscriptions int `db:"subscriptions"`
	Wanting       int `db:"wanting"`
	Paused        int `db:"paused"`
	// Task is the title of the task that the event is about, empty for others.
	Task string `db:"task"`
	// OfKind is how many events of the kind the application has.
	OfKind int `db:"of_kind"`
	// Event fits the question: the newest that did not arrive, or else the newest, of the
	// newest draw if it is about funding. Nil if none is kept.
	Event *delivery.EventDetail `db:"-"`
}

// Outcome is what became of an event, the closed list of answers.
type Outcome string

// The outcomes, from what somebody has to look at to what is as it should be.
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
	// DeliveryUID is the delivery that the sentence is about, nil without one.
	DeliveryUID *uuid.UUID
	// At is when the delivery ended or when its next attempt is due, nil for neither.
	At *time.Time
}

// Answer is why somebody did not get an event.
type Answer struct {
	Outcome  Outcome
	Sentence string
	// Event is what the answer is about, nil when it has not happened or is not kept.
	Event *delivery.EventDetail
	// Others is how many more events of the kind the application has.
	Others int
	// Lines has one for each endpoint, in the order of the outcomes.
	Lines []Line
}
