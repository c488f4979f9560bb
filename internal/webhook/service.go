package webhook

import (
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

	lanes   lanes
	loads   group[DeliverArgs, *assignment]
	records group[madeAttempt, bool]
}
