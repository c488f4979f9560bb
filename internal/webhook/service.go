package webhook

import (
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// Service owns subscriptions, deliveries and their attempts.
type Service struct {
	DB   *postgres.DB
	Jobs Inserter
	Keys *secret.Keyring
	// Policy says where webhooks may go.
	Policy Policy
	// Sender makes the requests; only a process that works deliveries needs it.
	Sender *Sender
	// Retries says when the attempts after the first are due.
	Retries Schedule
	// SendTraceparent tells the endpoint the trace of each attempt.
	SendTraceparent bool
	// Observe is told of every attempt that was written down, unless nil.
	Observe func(Observation)
	// Calls are those that go first while deliveries pile up.
	Calls Calls

	notices notices
	lanes   lanes
	loads   group[DeliverArgs, *assignment]
	holds   group[assignment, struct{}]
	begins  group[*madeAttempt, bool]
	records group[*madeAttempt, bool]
	slots   group[assignment, bool]
}

// Observation is one attempt for whoever counts them.
type Observation struct {
	// Class is why the attempt failed, empty when it succeeded.
	Class ErrorClass
	// State is what the delivery became.
	State DeliveryState
	// Took is the attempt's duration, from the name lookup to the last byte.
	Took time.Duration
	// Lag is how long after it was due the attempt started.
	Lag time.Duration
	// Test events are not counted with the others.
	Test bool
}
