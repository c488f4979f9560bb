package bulk

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// MaxRecoveryAge is how far back a recovery may reach.
const MaxRecoveryAge = 30 * 24 * time.Hour

// Recovery is a partner client's request to re-send the events of a period, of its
// merchants, that did not arrive at a subscription and were not made good later.
type Recovery struct {
	PartnerUID      uuid.UUID
	SubscriptionUID uuid.UUID
	Merchants       []uuid.UUID
	// Since is inclusive, Until exclusive; a zero Until means now.
	Since, Until time.Time
	// By is the client's name in the records.
	By string
}

// Recover begins a bulk re-send of the events that did not arrive, oldest first, and
// returns it. The caller must have checked that the client may see the subscription.
//
// Errors: VALIDATION_ERROR naming since or until; INVALID_STATE naming the recovery that
// the same client has running for the subscription.
func (s *Service) Recover(ctx context.Context, tx *postgres.Tx, wanted Recovery) (Resend, error) {
	if wanted.Until.IsZero() {
		wanted.Until = tx.Now
	}
	var errs lending.FieldErrors
	// Allow a minute more for the time that the request takes to get here.
	if wanted.Since.Before(tx.Now.Add(-MaxRecoveryAge - time.Minute)) {
		errs.Add("since", `"since" must be at most 30 days ago`)
	}
	switch {
	case !wanted.Since.Before(tx.Now):
		errs.Add("since", `"since" must be in the past`)
	case !wanted.Since.Before(wanted.Until):
		errs.Add("until", `"until" must be later than "since"`)
	}
	if err := errs.Err(); err != nil {
		return Resend{}, err
	}
	if err := checkNoRecovery(ctx, tx, wanted); err != nil {
		return Resend{}, err
	}
	uid, err := s.Draft(ctx, tx, Scope{
		PartnerUID: wanted.PartnerUID, Kind: KindRecover,
		Subscriptions: []uuid.UUID{wanted.SubscriptionUID}, Merchants: wanted.Merchants,
		Since: wanted.Since, Until: wanted.Until, ByEvent: true,
	}, Options{SkipDelivered: true, Pace: DefaultPace}, wanted.By)
	if err != nil {
		return Resend{}, err
	}
	_, err = s.Confirm(ctx, tx, uid, Consent{
		By: wanted.By, Reason: "recovery asked for over the API", Any: true,
	})
	if lending.ErrorCode(err) == lending.CodeValidation { // only its size can be wrong
		return Resend{}, lending.Invalid("since",
			`more than %d deliveries failed in this time; recover them in parts, by "since" and "until"`,
			MaxItems)
	}
	if err != nil {
		return Resend{}, err
	}
	begun, err := get(ctx, tx, uid)
	return begun.Resend, err
}

// checkNoRecovery refuses a second recovery by a client for a subscription. Two that
// arrive at once take turns.
func checkNoRecovery(ctx context.Context, tx *postgres.Tx, wanted Recovery) error {
	subscription := wanted.SubscriptionUID.String()
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`,
		"recovery "+wanted.By+" "+subscription)
	if err != nil {
		return fmt.Errorf("waiting for other recoveries: %w", err)
	}
	var running uuid.UUID
	err = tx.GetContext(ctx, &running, `
		SELECT bulk_uid
		  FROM bulk_resends
		 WHERE partner_uid = $1
		   AND created_by = $2
		   AND state IN ('running', 'paused')
		   AND scope -> 'subscriptions' ? $3
		 LIMIT 1`, wanted.PartnerUID, wanted.By, subscription)
	if postgres.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for recoveries under way: %w", err)
	}
	return lending.NewError(lending.CodeInvalidState,
		"recovery %s of this subscription has not ended; wait until it is finished or cancelled", running)
}

// RecoveryOf returns a recovery that the client began. Error: NOT_FOUND, also for others'.
func (s *Service) RecoveryOf(ctx context.Context, uid uuid.UUID, by string) (Resend, error) {
	found, err := get(ctx, s.DB, uid)
	if err == nil && (found.CreatedBy != by || !found.Scope.ByEvent) ||
		lending.ErrorCode(err) == lending.CodeNotFound {
		return Resend{}, lending.NewError(lending.CodeNotFound, "no recovery has the id %s", uid)
	}
	return found.Resend, err
}
