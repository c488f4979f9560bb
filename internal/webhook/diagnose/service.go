package diagnose

import (
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// Service examines signatures with the secrets that subscriptions have today.
type Service struct {
	Subscriptions *subscription.Service
	Deliveries    *delivery.Service
}
