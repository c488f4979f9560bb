package delivery

import (
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// Log reads events, their deliveries and attempts.
type Log struct{ DB *postgres.DB }

// Service publishes events and owns their deliveries and attempts.
type Service struct {
	Log

	Jobs subscription.Inserter
	// Subscriptions decrypts the secrets and headers of attempts.
	Subscriptions *subscription.Service
	// Sender makes the requests; only a process that works deliveries needs it.
	Sender *sender.Sender
	// Retries says when the second and third attempts are due.
	Retries Schedule
	// SendTraceparent sends the endpoint the trace of each attempt in a traceparent header.
	SendTraceparent bool
	// Observe, unless nil, is called with every attempt that was recorded.
	Observe func(Observation)
	// Faults make first attempts go wrong on purpose; nil outside of sandboxes.
	Faults Faults
	// Recorded, unless nil, is called when events have been committed, to wake the outbox.
	Recorded func()
	// Gate lets API requests go first while deliveries pile up; with nil, nothing yields.
	Gate *Gate

	limiter      limiter
	loads        batcher[Args, *assignment]
	backpressure batcher[*madeAttempt, struct{}]
	begins       batcher[*madeAttempt, bool]
	records      batcher[*madeAttempt, bool]
	slots        batcher[assignment, bool]
}

// Observation describes one attempt for metrics.
type Observation struct {
	// Class is the error class, empty when the attempt succeeded.
	Class sender.ErrorClass
	// State is the delivery's state after the attempt.
	State State
	// Took is the attempt's duration, from the name lookup to the last byte.
	Took time.Duration
	// Lag is how long after its due time the attempt started.
	Lag time.Duration
	// Test marks a test event; those are not counted with the others.
	Test bool
}
