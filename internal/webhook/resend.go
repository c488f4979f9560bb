package webhook

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// maxResend bounds one re-send, so that it stays one transaction.
const maxResend = 10_000

// Resend adds, for each of the deliveries, a new delivery of the same event to
// the same subscription: the same bytes, signed with the current secret, three
// attempts of its own. Who asked and why stays with it. It returns the new
// identifiers in the order of uids.
//
// Errors: NOT_FOUND naming a delivery that does not exist, INVALID_STATE when
// its subscription was deleted; then nothing is re-sent.
func (s *Service) Resend(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID, by, reason string,
) ([]uuid.UUID, error) {
	if len(uids) > maxResend {
		return nil, lending.NewError(lending.CodeValidation,
			"at most %d deliveries can be re-sent at once; narrow the time range", maxResend)
	}
	if err := checkResend(ctx, tx, uids); err != nil {
		return nil, err
	}
	jobs := make([]DeliverArgs, 0, len(uids))
	resent := make([]uuid.UUID, 0, len(uids))
	for range uids {
		uid := postgres.NewUID(tx.Now)
		resent = append(resent, uid)
		jobs = append(jobs, DeliverArgs{DeliveryUID: uid, CreatedAt: tx.Now, Number: 1})
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, test, state, next_attempt_at,
		                        queued, resend_of, resent_by, resend_reason)
		SELECT pair.new_uid, $3, d.subscription_uid, d.event_uid, d.event_at,
		       d.event, d.application_uid, d.status, d.test, 'pending', $3,
		       true, d.delivery_uid, $4, $5
		  FROM unnest($1::uuid[], $2::uuid[]) AS pair (old_uid, new_uid)
		  JOIN deliveries d ON d.delivery_uid = pair.old_uid`,
		uidArray(uids), uidArray(resent), tx.Now, by, reason)
	if err != nil {
		return nil, fmt.Errorf("inserting %d re-sends: %w", len(uids), err)
	}
	return resent, s.enqueue(ctx, tx, jobs)
}

// ResendMatching re-sends every delivery that matches the filter, oldest
// first; the filter's cursor and limit do not count.
func (s *Service) ResendMatching(
	ctx context.Context, tx *postgres.Tx, filter DeliveryFilter, by, reason string,
) ([]uuid.UUID, error) {
	filter.Cursor = postgres.Cursor{}
	conditions, args := filter.where()
	args = append(args, maxResend+1)
	var uids []uuid.UUID
	err := tx.SelectContext(ctx, &uids, `SELECT d.delivery_uid`+deliveryTables+conditions+
		fmt.Sprintf(` ORDER BY d.created_at, d.delivery_uid LIMIT $%d`, len(args)), args...)
	if err != nil {
		return nil, fmt.Errorf("choosing deliveries to re-send: %w", err)
	}
	return s.Resend(ctx, tx, uids, by, reason)
}

// checkResend locks the subscriptions against deletion while re-sends are added.
func checkResend(ctx context.Context, tx *postgres.Tx, uids []uuid.UUID) error {
	var known []struct {
		UID   uuid.UUID `db:"delivery_uid"`
		State State     `db:"state"`
	}
	err := tx.SelectContext(ctx, &known, `
		SELECT d.delivery_uid, s.state
		  FROM deliveries d
		  JOIN subscriptions s USING (subscription_uid)
		 WHERE d.delivery_uid = ANY ($1)
		   FOR SHARE OF s`, uidArray(uids))
	if err != nil {
		return fmt.Errorf("checking deliveries to re-send: %w", err)
	}
	states := make(map[uuid.UUID]State, len(known))
	for _, row := range known {
		states[row.UID] = row.State
	}
	for _, uid := range uids {
		switch state, found := states[uid]; {
		case !found:
			return lending.NewError(lending.CodeNotFound, "no delivery has the id %s", uid)
		case state == StateDeleted:
			return lending.NewError(lending.CodeInvalidState,
				"delivery %s cannot be re-sent: its subscription was deleted", uid)
		}
	}
	return nil
}

// uidArray passes identifiers as a Postgres array.
func uidArray(uids []uuid.UUID) any {
	texts := make([]string, len(uids))
	for i, uid := range uids {
		texts[i] = uid.String()
	}
	return pq.Array(texts)
}
