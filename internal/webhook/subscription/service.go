package subscription

import (
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// Service owns the subscriptions.
type Service struct {
	DB   *postgres.DB
	Keys *secret.Keyring
	// Policy decides where webhooks may go.
	Policy sender.Policy
	// Backlogs applies changes of a subscription to its backlog.
	Backlogs *Backlogs
	// Sender checks endpoints and tries settings; only these need it.
	Sender *sender.Sender
}
