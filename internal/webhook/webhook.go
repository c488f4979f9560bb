// Package webhook assembles the webhook services: which partner wants which events
// (subscription), sending events to them (delivery, using sender), the health of that
// (health), bulk re-sends (bulk), and explanations of attempts in plain words (diagnose).
package webhook

import (
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/diagnose"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// Config is what the services are built from.
type Config struct {
	DB   *postgres.DB
	Jobs subscription.Inserter
	// Keys decrypt the secrets of subscriptions.
	Keys   *secret.Keyring
	Policy sender.Policy
	Sender *sender.Sender
	// Retries says when a failed attempt is repeated.
	Retries         delivery.Schedule
	SendTraceparent bool
	// Observe, unless nil, is called with each attempt.
	Observe func(delivery.Observation)
	// Gate lets deliveries yield to API requests; nil for a new one.
	Gate *delivery.Gate
	// Faults injects faults into deliveries; nil outside of sandboxes.
	Faults delivery.Faults
}

// Services are the webhook services over one database.
type Services struct {
	Subscriptions *subscription.Service
	Deliveries    *delivery.Service
	Health        *health.Service
	Bulk          *bulk.Service
	Diagnoses     *diagnose.Service
	// Gate counts the API requests that deliveries yield to.
	Gate *delivery.Gate
}

// New returns the services.
func New(c Config) *Services {
	if c.Gate == nil {
		c.Gate = new(delivery.Gate)
	}
	subscriptions := &subscription.Service{
		DB: c.DB, Keys: c.Keys, Policy: c.Policy, Sender: c.Sender,
		Backlogs: &subscription.Backlogs{DB: c.DB, Jobs: c.Jobs},
	}
	deliveries := &delivery.Service{
		Log: delivery.Log{DB: c.DB}, Jobs: c.Jobs, Subscriptions: subscriptions, Sender: c.Sender,
		Retries: c.Retries, SendTraceparent: c.SendTraceparent, Observe: c.Observe, Gate: c.Gate,
		Faults: c.Faults,
	}
	return &Services{
		Subscriptions: subscriptions, Deliveries: deliveries,
		Health:    &health.Service{DB: c.DB, Sender: c.Sender, Gate: c.Gate},
		Bulk:      &bulk.Service{DB: c.DB, Jobs: c.Jobs},
		Diagnoses: &diagnose.Service{Subscriptions: subscriptions, Deliveries: deliveries},
		Gate:      c.Gate,
	}
}

// UseSender makes the services send with another sender from now on.
func (s *Services) UseSender(other *sender.Sender) {
	s.Subscriptions.Sender, s.Deliveries.Sender, s.Health.Sender = other, other, other
}
