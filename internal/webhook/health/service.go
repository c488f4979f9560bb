package health

import (
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
)

// Service reads and judges how the sending to subscriptions goes.
type Service struct {
	DB *postgres.DB
	// Sender probes endpoints; nothing else needs it.
	Sender *sender.Sender
	// Gate lets API requests go before a tally; nil lets nothing wait.
	Gate *delivery.Gate

	backlog postgres.ThrottledCache[struct{}, Backlog]
}
