package diagnose

import (
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// Service examines signatures with the current secrets of subscriptions.
type Service struct {
	Subscriptions *subscription.Service
	Deliveries    *delivery.Service
}
