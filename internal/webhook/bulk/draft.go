package bulk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
)

// Draft stores a selection of what to re-send, and sends nothing. A selection by time is
// closed: without an end, it ends now, so that deliveries created after the draft are not
// included.
//
// Errors: VALIDATION_ERROR for what is wrong with the scope or the options, NOT_FOUND for
// a delivery, subscription or event that the partner does not have.
func (s *Service) Draft(
	ctx context.Context, tx *postgres.Tx, scope Scope, options Options, by string,
) (uuid.UUID, error) {
	if scope.Until.IsZero() {
		scope.Until = tx.Now
	}
	if scope.Kind == KindFilter && scope.Filter.Until.IsZero() {
		scope.Filter.Until = tx.Now
	}
	scope.Deliveries = delivery.Distinct(scope.Deliveries)
	scope.Subscriptions = delivery.Distinct(scope.Subscriptions)
	errs := scope.errs()
	options.check(&errs)
	if err := errs.Err(); err != nil {
		return uuid.Nil, err
	}
	if err := scope.checkOwner(ctx, tx); err != nil {
		return uuid.Nil, err
	}
	text, err := json.Marshal(scope)
	if err != nil {
		return uuid.Nil, fmt.Errorf("writing the scope of a bulk re-send: %w", err)
	}
	uid := postgres.NewUID(tx.Now)
	_, err = tx.ExecContext(ctx, `
		INSERT INTO bulk_resends (bulk_uid, partner_uid, kind, scope, skip_newer, skip_delivered,
		                          pace, state, created_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 'draft', $8, $9)`,
		uid, scope.PartnerUID, string(scope.Kind), string(text), options.SkipNewer,
		options.SkipDelivered, options.Pace, by, tx.Now)
	if err != nil {
		return uuid.Nil, fmt.Errorf("keeping a draft of a bulk re-send: %w", err)
	}
	return uid, nil
}

// Amend changes the options of a draft. Errors: NOT_FOUND, INVALID_STATE
// once it was confirmed, VALIDATION_ERROR.
func (s *Service) Amend(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, options Options,
) error {
	var errs lending.FieldErrors
	options.check(&errs)
	if err := errs.Err(); err != nil {
		return err
	}
	row, err := lock(ctx, tx, uid)
	if err != nil {
		return err
	}
	if row.State != StateDraft {
		return errState(row, "changed", "confirm")
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE bulk_resends
		   SET skip_newer = $2,
		       skip_delivered = $3,
		       pace = $4
		 WHERE bulk_uid = $1`, uid, options.SkipNewer, options.SkipDelivered, options.Pace)
	if err != nil {
		return fmt.Errorf("changing bulk re-send %s: %w", uid, err)
	}
	return nil
}

func (o Options) check(errs *lending.FieldErrors) {
	if o.Pace < 1 || o.Pace > MaxPace {
		errs.Add("pace", `"pace" must be from 1 to %d deliveries a second`, MaxPace)
	}
}

// errs lists what the scope lacks or has too much of.
func (b Scope) errs() lending.FieldErrors {
	var errs lending.FieldErrors
	if b.PartnerUID == uuid.Nil {
		errs.Add("partner", `"partner" is required: a bulk re-send stays within one partner`)
	}
	var choice string
	var named []uuid.UUID
	switch b.Kind {
	case KindSelection:
		choice, named = "delivery", b.Deliveries
	case KindRecover, KindReplay:
		choice, named = "subscription", b.Subscriptions
		if b.EventUID == uuid.Nil && b.Since.IsZero() {
			errs.Add("since", `"since" is required: it is the start of the time range`)
		}
		if !b.Since.Before(b.Until) {
			errs.Add("until", `"until" must be later than "since"`)
		}
	case KindFilter:
		return errs
	default:
		errs.Add("kind", `"kind" must be selection, filter, recover or replay`)
		return errs
	}
	if len(named) == 0 || len(named) > MaxChoice {
		errs.Add(choice, `%q must have 1 to %d entries; use a filter to choose more`, choice, MaxChoice)
	}
	return errs
}

// checkOwner returns NOT_FOUND for the first named object that is not the partner's.
func (b Scope) checkOwner(ctx context.Context, tx *postgres.Tx) error {
	var events []uuid.UUID
	if b.EventUID != uuid.Nil {
		events = []uuid.UUID{b.EventUID}
	}
	for _, named := range []struct {
		what  string
		uids  []uuid.UUID
		query string // takes the partner and the uids
	}{
		{"delivery", b.Deliveries, `
			SELECT d.delivery_uid
			  FROM deliveries d
			  JOIN subscriptions s USING (subscription_uid)
			 WHERE s.partner_uid = $1
			   AND d.delivery_uid = ANY ($2)`},
		{"subscription", b.Subscriptions, `
			SELECT subscription_uid
			  FROM subscriptions
			 WHERE partner_uid = $1
			   AND subscription_uid = ANY ($2)`},
		{"event", events, `
			SELECT event_uid
			  FROM events
			 WHERE partner_uid = $1
			   AND event_uid = ANY ($2)`},
	} {
		if len(named.uids) == 0 {
			continue
		}
		var owned []uuid.UUID
		err := tx.SelectContext(ctx, &owned, named.query, b.PartnerUID, pq.Array(named.uids))
		if err != nil {
			return fmt.Errorf("checking whose each %s is: %w", named.what, err)
		}
		for _, uid := range named.uids {
			if !slices.Contains(owned, uid) {
				return lending.NewError(lending.CodeNotFound,
					"the partner has no %s with the id %s", named.what, uid)
			}
		}
	}
	return nil
}
