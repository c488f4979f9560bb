// Package event records what happened: it renders an event's body once and writes down
// what follows from it, all in the caller's transaction.
//
//	use case ── Record ──► events row, outbox row ── commit ──► package outbox: deliveries, jobs
//	                  └──► e-mail log, job
//
// Nothing is published from memory, so what rolled back is never sent and what committed
// is never lost.
package event

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
)

// Recorder writes events, the deliveries that they require, and their e-mails.
type Recorder struct {
	Webhooks *webhook.Services
	Emails   *email.Service
}

// Record writes events of applications and what follows from them. The events of one application
// are ordered as they happened, and no two have the same time.
func (r *Recorder) Record(ctx context.Context, tx *postgres.Tx, events ...lending.Event) error {
	_, err := r.RecordChange(ctx, tx, events...)
	return err
}

// RecordChange is Record, and returns the resulting UpdatedAt of the events' application.
func (r *Recorder) RecordChange(
	ctx context.Context, tx *postgres.Tx, events ...lending.Event,
) (time.Time, error) {
	published := make([]delivery.Event, 0, len(events))
	for _, event := range events {
		uid, err := uuid.Parse(event.ApplicationUID)
		if err != nil {
			return time.Time{}, fmt.Errorf("reading the application of event %s: %w", event.Kind, err)
		}
		head, tail, err := event.RenderAround()
		if err != nil {
			return time.Time{}, err
		}
		published = append(published, delivery.Event{
			UID:            postgres.NewUID(tx.Now),
			Kind:           event.Kind,
			ApplicationUID: uid,
			Status:         event.Status,
			Subject:        event.SubjectName(),
			Head:           head,
			Tail:           tail,
		})
	}
	made, err := r.Webhooks.Deliveries.Publish(ctx, tx, published...)
	if err != nil {
		return time.Time{}, err
	}
	for i, event := range events {
		if err := r.mailFor(ctx, tx, published[i].ApplicationUID, event); err != nil {
			return time.Time{}, err
		}
	}
	return made.ChangedAt, nil
}
