package delivery

import (
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// Log is what is read of events, their deliveries and attempts.
type Log struct{ DB *postgres.DB }

// Service publishes events and owns their deliveries and attempts.
type Service struct {
	Log

	Jobs subscription.Inserter
	// Subscriptions open the secrets and headers of attempts.
	Subscriptions *subscription.Service
	// Sender makes the requests; only a process that works deliveries needs it.
	Sender *sender.Sender
	// Retries says when the attempts after the first are due.
	Retries Schedule
	// SendTraceparent tells the endpoint the trace of each attempt.
	SendTraceparent bool
	// Observe gets every attempt that was recorded, unless nil.
	Observe func(Observation)
	// Faults make first attempts go wrong on purpose; nil outside of sandboxes.
	Faults Faults
	// Recorded is called when events have been committed, for the outbox; nil tells nobody.
	Recorded func()
	// Gate lets API requests go first while deliveries pile up; nil lets nothing wait.
	Gate *Gate

	limiter      limiter
	loads        batcher[Args, *assignment]
	backpressure batcher[*madeAttempt, struct{}]
	begins       batcher[*madeAttempt, bool]
	records      batcher[*madeAttempt, bool]
	slots        batcher[assignment, bool]
}

// Observation is one attempt for what counts them.
type Observation struct {
	// Class is why the attempt failed, empty when it succeeded.
	Class sender.ErrorClass
	// State is what the delivery became.
	State State
	// Took is the attempt's duration, from the name lookup to the last byte.
	Took time.Duration
	// Lag is how long after it was due the attempt started.
	Lag time.Duration
	// Test events are not counted with the others.
	Test bool
}
