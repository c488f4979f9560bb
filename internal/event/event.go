// Package event records what happened: it gives an event its time, renders its
// body once and schedules what follows from it, all in the caller's
// transaction.
//
//	use case ── Record ──► events row ──► deliveries ──► jobs
//	                  └──► e-mail log ──► job
//
// Nothing is published from memory and nothing after the commit, so what
// rolled back is never told and what committed is never lost.
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
)

// Recorder writes events and schedules their deliveries and e-mails.
type Recorder struct {
	Webhooks *webhook.Service
	Emails   *email.Service
}

// Record writes the event of an application and schedules what follows.
//
// The time is tx.Now, moved on by a microsecond where the application already
// has an event at or after it: application, status and timestamp together
// never name two events (specification section 6.1), even when a clock steps
// back, and the events of one application sort as they happened.
func (r *Recorder) Record(ctx context.Context, tx *postgres.Tx, event lending.Event) error {
	uid, err := uuid.Parse(event.ApplicationUID)
	if err != nil {
		return fmt.Errorf("reading the application of event %s: %w", event.Kind, err)
	}
	subject, err := touch(ctx, tx, uid)
	if err != nil {
		return err
	}
	body, err := event.Render(subject.OccurredAt)
	if err != nil {
		return err
	}
	_, err = r.Webhooks.Publish(ctx, tx, webhook.Event{
		UID:            postgres.NewUID(tx.Now),
		Kind:           event.Kind,
		OccurredAt:     subject.OccurredAt,
		PartnerUID:     subject.PartnerUID,
		MerchantUID:    subject.MerchantUID,
		ApplicationUID: uid,
		Status:         event.Status,
		Body:           body,
	})
	if err != nil {
		return err
	}
	return r.mailFor(ctx, tx, uid, event)
}

// subject is whom an event is about, and when it happened.
type subject struct {
	MerchantUID uuid.UUID `db:"merchant_uid"`
	PartnerUID  uuid.UUID `db:"partner_uid"`
	OccurredAt  time.Time `db:"last_event_at"`
}

// touch locks the application and advances the time of its latest event.
func touch(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (subject, error) {
	var touched subject
	err := tx.GetContext(ctx, &touched, `
		UPDATE applications
		   SET last_event_at = greatest($2, last_event_at + interval '1 microsecond')
		 WHERE application_uid = $1
		RETURNING merchant_uid,
		          partner_uid,
		          last_event_at`, uid, tx.Now)
	if err != nil {
		return subject{}, fmt.Errorf("timing an event of application %s: %w", uid, err)
	}
	return touched, nil
}
