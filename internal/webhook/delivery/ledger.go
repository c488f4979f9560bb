package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Verdict is why a subscription got an event, or why it did not. No other values exist.
type Verdict string

// The verdicts. If a subscription was passed over when the event was recorded, that was
// written then; the other verdicts follow from the deliveries and from when the
// subscription existed.
const (
	// VerdictSent: a delivery was created for it, however that ended.
	VerdictSent Verdict = "sent"
	// VerdictWaiting: its delivery waits because the subscription is paused.
	VerdictWaiting Verdict = "paused"
	// VerdictEvent: it had not chosen events of that kind.
	VerdictEvent Verdict = "event_not_chosen"
	// VerdictMerchant: it did not cover the merchant.
	VerdictMerchant Verdict = "merchant_not_covered"
	// VerdictDeleted: it had been deleted before.
	VerdictDeleted Verdict = "deleted_earlier"
	// VerdictLater: it was created after the event.
	VerdictLater Verdict = "created_later"
	// VerdictUnrecorded: the release that recorded the event did not record who was passed over.
	VerdictUnrecorded Verdict = "not_recorded"
)

// LedgerLine is the verdict of one event for one subscription of its partner.
type LedgerLine struct {
	SubscriptionUID uuid.UUID `db:"subscription_uid"`
	subscription.Endpoint
	// State is the subscription's current state.
	State   subscription.State `db:"state"`
	Verdict Verdict            `db:"-"`
	// Version is the subscription's version when it was passed over; 0 for the other
	// verdicts. Attempts name the version that they used.
	Version int `db:"passed_version"`
	// DeliveryUID is the first delivery to the subscription, nil without one. A
	// subscription that was passed over has one only if the event was replayed
	// to it by hand.
	DeliveryUID *uuid.UUID `db:"delivery_uid"`
	// DeliveryState is "made_good" for one that failed and was made good.
	DeliveryState State `db:"delivery_state"`
	// Since is when the subscription was created, Until when it was deleted, nil if it was
	// not.
	Since time.Time  `db:"created_at"`
	Until *time.Time `db:"deleted_at"`
}

// ledgerRow is a line with the values that its verdict follows from.
type ledgerRow struct {
	LedgerLine
	OccurredAt time.Time `db:"occurred_at"`
	Recorded   bool      `db:"recorded"`
	PassedOver string    `db:"passed_over"`
}

// EventVerdicts returns the whole ledger of an event: one line for each subscription that
// its partner has or had, oldest first. For a test event it has only the subscription
// that was tested. Error: NOT_FOUND.
func (l *Log) EventVerdicts(ctx context.Context, eventUID uuid.UUID) ([]LedgerLine, error) {
	return l.ledger(ctx, eventUID, postgres.Cursor{}, nil)
}

// Ledger returns a page of the ledger of an event, in the order of EventVerdicts. Errors:
// NOT_FOUND, VALIDATION_ERROR for the limit.
func (l *Log) Ledger(
	ctx context.Context, eventUID uuid.UUID, page postgres.Paging,
) ([]LedgerLine, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	lines, err := l.ledger(ctx, eventUID, page.From, new(page.Limit+1))
	if err != nil {
		return nil, postgres.Cursor{}, err
	}
	lines, next := postgres.Page(lines, page.Limit, func(l LedgerLine) postgres.Cursor {
		return postgres.Cursor{At: l.Since, UID: l.SubscriptionUID}
	})
	return lines, next, nil
}

// ledger loads the lines after a cursor, all of them if limit is nil.
func (l *Log) ledger(
	ctx context.Context, eventUID uuid.UUID, from postgres.Cursor, limit *int,
) ([]LedgerLine, error) {
	var rows []ledgerRow
	err := l.DB.SelectContext(ctx, &rows, `
		SELECT s.subscription_uid, `+subscription.EndpointColumns+`, s.state, s.created_at,
		       CASE WHEN s.state = 'deleted' THEN coalesce((
		           SELECT max(v.changed_at)
		             FROM subscription_versions v
		            WHERE v.subscription_uid = s.subscription_uid
		              AND (v.state = 'deleted' OR v.change = 'deleted')), s.updated_at)
		       END AS deleted_at, e.occurred_at, e.passed_over IS NOT NULL AS recorded,
		       coalesce(p.w, '') AS passed_over, coalesce(p.v, 0) AS passed_version,
		       coalesce(d.delivery_uid, o.delivery_uid) AS delivery_uid,
		       coalesce(d.state, CASE WHEN o.delivery_uid IS NOT NULL THEN 'pending' END, '')
		           AS delivery_state
		  FROM events e
		  JOIN subscriptions s ON s.partner_uid = e.partner_uid
		  LEFT JOIN jsonb_to_recordset(coalesce(e.passed_over, '[]')) AS p (s uuid, v integer, w text)
		    ON p.s = s.subscription_uid
		  LEFT JOIN (
		           SELECT DISTINCT ON (subscription_uid) subscription_uid, delivery_uid,
		                  CASE WHEN made_good_by IS NULL THEN state ELSE 'made_good' END AS state
		             FROM deliveries
		            WHERE event_uid = $1
		            ORDER BY subscription_uid, created_at, delivery_uid) d
		    ON d.subscription_uid = s.subscription_uid
		  LEFT JOIN (
		           SELECT owed.subscription_uid, owed.delivery_uid
		             FROM outbox
		            CROSS JOIN LATERAL unnest(owed, delivery_uids)
		                    AS owed (subscription_uid, delivery_uid)
		            WHERE event_uid = $1) o ON o.subscription_uid = s.subscription_uid
		 WHERE e.event_uid = $1
		   AND (e.application_uid IS NOT NULL OR d.delivery_uid IS NOT NULL)
		   AND (s.created_at, s.subscription_uid) > ($2, $3)
		 ORDER BY s.created_at, s.subscription_uid
		 LIMIT $4`, eventUID, from.At, from.UID, limit)
	if err != nil {
		return nil, fmt.Errorf("loading the ledger of event %s: %w", eventUID, err)
	}
	if len(rows) == 0 {
		var known bool
		err := l.DB.GetContext(ctx, &known,
			`SELECT EXISTS (SELECT FROM events WHERE event_uid = $1)`, eventUID)
		if err != nil {
			return nil, fmt.Errorf("looking up event %s: %w", eventUID, err)
		}
		if !known {
			return nil, noEvent(eventUID)
		}
	}
	lines := make([]LedgerLine, 0, len(rows))
	for _, row := range rows {
		row.Verdict = row.verdict()
		lines = append(lines, row.LedgerLine)
	}
	return lines, nil
}

func (r ledgerRow) verdict() Verdict {
	switch {
	case r.PassedOver == "event":
		return VerdictEvent
	case r.PassedOver == "merchant":
		return VerdictMerchant
	case r.State == subscription.StatePaused &&
		(r.DeliveryState == StatePending || r.DeliveryState == StateRetrying):
		return VerdictWaiting
	case r.DeliveryUID != nil:
		return VerdictSent
	case r.Since.After(r.OccurredAt):
		return VerdictLater
	case r.Until != nil && !r.Until.After(r.OccurredAt):
		return VerdictDeleted
	case !r.Recorded:
		return VerdictUnrecorded
	case r.Until != nil && r.Until.Sub(r.OccurredAt) < r.OccurredAt.Sub(r.Since):
		// The statement did not see it although the times overlap: its deletion
		// committed between the event's time and the statement.
		return VerdictDeleted
	}
	// Likewise, its creation committed after the statement.
	return VerdictLater
}
