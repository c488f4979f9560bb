package app

import (
	"context"
	"time"
)

// ReleaseCommand is how the hold on a restored database ends.
const ReleaseCommand = "drawbridge restore release --deliveries send|cancel " +
	"--mails send|cancel --reason TEXT"

// Held is whether a restored database holds everything, and how much that is.
type Held struct {
	Held       bool       `json:"held"`
	HeldAt     *time.Time `json:"held_at"`
	Reason     *string    `json:"reason"`
	Deliveries int        `json:"deliveries"`
	Mails      int        `json:"mails"`
}

// Held asks what is held.
func (s *Services) Held(ctx context.Context) (Held, error) {
	state, err := s.Restored.State(ctx)
	if err != nil || !state.IsHeld() {
		return Held{Reason: state.Reason}, err
	}
	at := state.HeldAt.UTC()
	held := Held{Held: true, HeldAt: &at, Reason: state.Reason}
	if held.Deliveries, err = s.Webhooks.Deliveries.CountOpen(ctx, at); err != nil {
		return held, err
	}
	held.Mails, err = s.Emails.CountQueued(ctx, s.DB, at)
	return held, err
}
