package delivery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// maxResend bounds one re-send, so that it stays one transaction.
const maxResend = 10_000

// Resend adds, for each of the deliveries, a new delivery of the same event to the same
// subscription: the same bytes, signed with the current secret, three attempts of its
// own. It stores who asked and why; the reason may be empty. A delivery named twice is
// re-sent once. It returns the new identifiers in the order of uids.
//
// Errors: NOT_FOUND naming a delivery that does not exist, INVALID_STATE when
// its subscription was deleted or its event's body removed, VALIDATION_ERROR
// for the reason or too many of them; then nothing is re-sent.
func (s *Service) Resend(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID, by, reason string,
) ([]uuid.UUID, error) {
	uids = Distinct(uids)
	if err := checkResend(ctx, tx, uids, reason); err != nil {
		return nil, err
	}
	jobs := make([]Args, 0, len(uids))
	resent := make([]uuid.UUID, 0, len(uids))
	for range uids {
		uid := postgres.NewUID(tx.Now)
		resent = append(resent, uid)
		jobs = append(jobs, Args{DeliveryUID: uid, CreatedAt: tx.Now, Number: 1})
	}
	// A large re-send is left to EnqueueDue, so that it does not delay new events.
	queued := len(jobs) <= DueBatch
	made, err := postgres.Affected(tx.ExecContext(ctx, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, test, state, next_attempt_at,
		                        queued, resend_of, resent_by, resend_reason)
		SELECT pair.new_uid, $3, d.subscription_uid, d.event_uid, d.event_at,
		       d.event, d.application_uid, d.status, d.test, 'pending', $3,
		       $4, d.delivery_uid, $5, $6
		  FROM unnest($1::uuid[], $2::uuid[]) AS pair (old_uid, new_uid)
		  JOIN deliveries d ON d.delivery_uid = pair.old_uid`,
		pq.Array(uids), pq.Array(resent), tx.Now, queued, by, reason))
	if err != nil {
		return nil, fmt.Errorf("inserting %d re-sends: %w", len(uids), err)
	}
	if made < len(uids) { // removed by retention, which the check waited for
		return nil, lending.NewError(lending.CodeNotFound,
			"a delivery to be re-sent has meanwhile been removed under the retention settings")
	}
	if !queued {
		return resent, nil
	}
	return resent, s.enqueue(ctx, tx.Tx.Tx, jobs)
}

// Distinct returns the identifiers without repetitions, in their order.
func Distinct(uids []uuid.UUID) []uuid.UUID {
	seen := make(map[uuid.UUID]bool, len(uids))
	return slices.DeleteFunc(slices.Clone(uids), func(uid uuid.UUID) bool {
		repeated := seen[uid]
		seen[uid] = true
		return repeated
	})
}

// ResendMatching re-sends every delivery that matches the filter, oldest first. It leaves
// out deliveries of deleted subscriptions, unless the filter names a subscription; failed
// ones that were made good; and all that [sentAgain] excludes, so that a repetition sends
// nothing twice.
//
// Errors: those of Resend, NOT_FOUND for a subscription that does not exist.
func (s *Service) ResendMatching(
	ctx context.Context, tx *postgres.Tx, filter Filter, by, reason string,
) ([]uuid.UUID, error) {
	if uid := filter.SubscriptionUID; uid != uuid.Nil {
		var state subscription.State
		err := tx.GetContext(ctx, &state,
			`SELECT state FROM subscriptions WHERE subscription_uid = $1`, uid)
		switch {
		case postgres.IsNoRows(err):
			return nil, subscription.NotFound(uid)
		case err != nil:
			return nil, fmt.Errorf("looking up subscription %s: %w", uid, err)
		case state == subscription.StateDeleted:
			return nil, lending.NewError(lending.CodeInvalidState,
				"subscription %s was deleted: nothing can be re-sent to it", uid)
		}
	}
	filter.Open = filter.Open || filter.State == StateFailed
	c := filter.conditions()
	c.Add(sentAgain, postgres.OrNull(filter.State), postgres.OrNull(filter.Until))
	c.Add(`s.state <> 'deleted'`)
	// Concurrent calls take turns, so that the second sees what the first re-sends.
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtext('drawbridge_resend'))`)
	if err != nil {
		return nil, fmt.Errorf("waiting for others who re-send: %w", err)
	}
	text := `SELECT d.delivery_uid` + deliveryTables + c.Where() +
		` ORDER BY d.created_at, d.delivery_uid LIMIT ` + c.Bind(maxResend+1)
	var uids []uuid.UUID
	err = tx.SelectContext(ctx, &uids, text, c.Args...)
	if err != nil {
		return nil, fmt.Errorf("choosing deliveries to re-send: %w", err)
	}
	return s.Resend(ctx, tx, uids, by, reason)
}

// sentAgain excludes a delivery d if a delivery of its event to its subscription, d
// included, is still open, or if another one is chosen instead: the newest is. It uses the index
// on the event, and looks back a day, as an event is at most that much later than its deliveries.
const sentAgain = `(SELECT bool_or(o.state IN ('pending', 'retrying')
		                  OR o.state = coalesce(?, o.state)
		                     AND (o.created_at, o.delivery_uid) > (d.created_at, d.delivery_uid)
		                     AND o.created_at < coalesce(?::timestamptz, 'infinity'))
		          FILTER (WHERE o.subscription_uid = d.subscription_uid)
		  FROM deliveries o
		 WHERE o.event_uid = d.event_uid
		   AND o.created_at >= d.event_at - interval '1 day') IS NOT TRUE`

// checkResend locks the subscriptions against deletion, each once and in the order in which other
// code locks several, and the events against removal of their bodies, while re-sends are added.
func checkResend(ctx context.Context, tx *postgres.Tx, uids []uuid.UUID, reason string) error {
	if len(uids) > maxResend {
		return lending.NewError(lending.CodeValidation,
			"at most %d deliveries can be re-sent at once; narrow the time range", maxResend)
	}
	if err := subscription.CheckReason(reason); err != nil {
		return err
	}
	type resendable struct {
		UID           uuid.UUID          `db:"delivery_uid"`
		State         subscription.State `db:"state"`
		BodyRemovedAt *time.Time         `db:"body_removed_at"`
	}
	var known []resendable
	err := tx.SelectContext(ctx, &known, `
		WITH d AS MATERIALIZED (
			SELECT delivery_uid, subscription_uid, event_uid, event_at
			  FROM deliveries
			 WHERE delivery_uid = ANY ($1)
		), s AS MATERIALIZED (
			SELECT subscription_uid, state
			  FROM subscriptions
			 WHERE subscription_uid IN (SELECT subscription_uid FROM d)
			 ORDER BY subscription_uid
			   FOR SHARE
		)
		SELECT d.delivery_uid, s.state, e.body_removed_at
		  FROM d
		  JOIN s USING (subscription_uid)
		  JOIN events e ON e.event_uid = d.event_uid AND e.occurred_at = d.event_at
		 ORDER BY e.occurred_at, e.event_uid
		   FOR SHARE OF e`, pq.Array(uids))
	if err != nil {
		return fmt.Errorf("checking deliveries to re-send: %w", err)
	}
	found := make(map[uuid.UUID]resendable, len(known))
	for _, row := range known {
		found[row.UID] = row
	}
	for _, uid := range uids {
		switch row, known := found[uid]; {
		case !known:
			return lending.NewError(lending.CodeNotFound, "no delivery has the id %s", uid)
		case row.State == subscription.StateDeleted:
			return lending.NewError(lending.CodeInvalidState,
				"delivery %s cannot be re-sent: its subscription was deleted", uid)
		case row.BodyRemovedAt != nil:
			return lending.NewError(lending.CodeInvalidState,
				"delivery %s cannot be re-sent: the body of its event was removed on %s, "+
					"as the retention settings say", uid, row.BodyRemovedAt.UTC().Format(time.DateOnly))
		}
	}
	return nil
}
