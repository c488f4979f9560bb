package app

import (
	"context"
	"time"
)

// ReleaseCommand is how the quarantine of a restored database ends.
const ReleaseCommand = "drawbridge restore release --deliveries send|cancel " +
	"--mails send|cancel --reason TEXT"

// Quarantine is whether a restored database holds everything back, and how much that is.
type Quarantine struct {
	Active bool `json:"held"`
	// Copied is whether the next process that starts begins one.
	Copied     bool       `json:"copied"`
	Since      *time.Time `json:"held_at"`
	Reason     *string    `json:"reason"`
	Deliveries int        `json:"deliveries"`
	Mails      int        `json:"mails"`
}

// Quarantine asks what is held back.
func (s *Services) Quarantine(ctx context.Context) (Quarantine, error) {
	state, err := s.Restored.State(ctx)
	if err != nil {
		return Quarantine{}, err
	}
	if !state.IsQuarantined() {
		copied, err := s.Restored.IsCopy(ctx)
		return Quarantine{Copied: copied}, err
	}
	at := state.QuarantinedAt.UTC()
	quarantine := Quarantine{Active: true, Since: &at, Reason: state.Reason}
	if quarantine.Deliveries, err = s.Webhooks.Deliveries.CountOpen(ctx, at); err != nil {
		return quarantine, err
	}
	quarantine.Mails, err = s.Emails.CountQueued(ctx, s.DB, at)
	return quarantine, err
}
