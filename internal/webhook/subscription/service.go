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
	// Policy says where webhooks may go.
	Policy sender.Policy
	// Backlogs follow what is changed.
	Backlogs *Backlogs
	// Sender looks at endpoints and tries settings; only those need it.
	Sender *sender.Sender
}
