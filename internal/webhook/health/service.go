package health

import (
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// Service reads and judges the outcomes of sending to subscriptions.
type Service struct {
	DB *postgres.DB
	// Sender makes the probes; nothing else needs it.
	Sender *sender.Sender
	// Gate lets API requests go before a tally; with nil, nothing yields.
	Gate *delivery.Gate

	backlog postgres.ThrottledCache[struct{}, Backlog]
}
