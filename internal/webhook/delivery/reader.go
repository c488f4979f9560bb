package delivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Reader is a client of a partner. It sees the deliveries of its merchants' events, and
// the tests of the subscriptions that cover one of those merchants.
type Reader struct {
	PartnerUID uuid.UUID
	Merchants  []uuid.UUID
}

func (r Reader) merchants() any { return pq.Array(r.Merchants) }

const coveredSubscriptions = `
	SELECT c.subscription_uid
	  FROM subscriptions c
	 WHERE c.partner_uid = ?
	   AND (c.all_merchants OR EXISTS (
	           SELECT FROM subscription_merchants m
	            WHERE m.subscription_uid = c.subscription_uid AND m.merchant_uid = ANY (?)))`

// narrow keeps what the reader sees. A partner's subscriptions are only about its own
// merchants, so if the reader has all of these, its applications need not be looked up;
// there may be too many of them for memory.
func (r Reader) narrow(c *postgres.Conditions) {
	c.Add(`CASE WHEN d.test THEN d.subscription_uid IN (`+coveredSubscriptions+`)
		ELSE (d.subscription_uid IN (SELECT subscription_uid FROM subscriptions WHERE partner_uid = ?)
		      AND NOT EXISTS (SELECT
		                        FROM merchants m
		                        LEFT JOIN unnest(?::uuid[]) AS own (uid) ON own.uid = m.merchant_uid
		                       WHERE m.partner_uid = ?
		                         AND own.uid IS NULL))
		     OR (d.application_uid IN (
		             SELECT application_uid FROM applications WHERE merchant_uid = ANY (?))) IS TRUE
		END`, r.PartnerUID, r.merchants(), r.PartnerUID, r.merchants(), r.PartnerUID, r.merchants())
}

// Read is a delivery as a partner sees it.
type Read struct {
	Delivery
	// Sequence and MerchantUID are those of the event, nil for a test.
	Sequence    *int64     `db:"sequence"`
	MerchantUID *uuid.UUID `db:"merchant_uid"`
}

// readColumns follow deliveryColumns.
const readColumns = `, e.sequence, e.merchant_uid`

const readTables = deliveryTables + `
	 LEFT JOIN events e ON e.event_uid = d.event_uid AND e.occurred_at = d.event_at`

// ListFor returns one page of the deliveries that match and that the reader sees, newest
// first, and the cursor of the next page. Error: VALIDATION_ERROR for the limit.
func (l *Log) ListFor(
	ctx context.Context, reader Reader, filter Filter, page postgres.Paging,
) ([]Read, postgres.Cursor, error) {
	filter.PartnerUID, filter.Reader = reader.PartnerUID, &reader
	list, next, err := l.List(ctx, filter, page)
	if err != nil || len(list) == 0 {
		return nil, postgres.Cursor{}, err
	}
	uids := make([]uuid.UUID, 0, len(list))
	for _, found := range list {
		uids = append(uids, found.UID)
	}
	var rows []Read
	err = l.DB.SelectContext(ctx, &rows, `SELECT `+deliveryColumns+readColumns+readTables+`
		 WHERE d.delivery_uid = ANY ($1)`+newestFirst, pq.Array(uids))
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("loading a page of deliveries: %w", err)
	}
	return rows, next, nil
}

// readFor loads a delivery that the reader sees, or returns NOT_FOUND.
func readFor(
	ctx context.Context, from postgres.Querier, reader Reader, uid uuid.UUID,
) (Read, error) {
	var found Read
	c := postgres.Conditions{}
	c.Add(`s.partner_uid = ?`, reader.PartnerUID)
	c.Add(`d.delivery_uid = ?`, uid)
	Filter{Reader: &reader}.Narrow(&c)
	err := from.GetContext(ctx, &found,
		`SELECT `+deliveryColumns+readColumns+readTables+c.Where(), c.Args...)
	return found, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "no delivery has the id %s", uid),
		"loading delivery %s", uid)
}

// GetFor returns a delivery that the reader sees, with its attempts. Error: NOT_FOUND,
// also for a delivery that the reader does not see.
func (l *Log) GetFor(ctx context.Context, reader Reader, uid uuid.UUID) (Read, []Attempt, error) {
	found, err := readFor(ctx, l.DB, reader, uid)
	if err != nil {
		return Read{}, nil, err
	}
	attempts, err := loadAttempts(ctx, l.DB, found.Delivery)
	return found, attempts, err
}

// ResendFor is Resend for a client of a partner. It re-sends one delivery that is no test and has
// ended, to a subscription that still covers its merchant. Errors: NOT_FOUND, INVALID_STATE.
func (s *Service) ResendFor(
	ctx context.Context, tx *postgres.Tx, reader Reader, uid uuid.UUID, by string,
) (Read, error) {
	old, err := readFor(ctx, tx, reader, uid)
	switch {
	case err != nil:
		return Read{}, err
	case old.Test:
		return Read{}, lending.NewError(lending.CodeInvalidState,
			"delivery %s is a test, which cannot be re-sent; ask the lender to send another", uid)
	case !old.State.IsFinal():
		return Read{}, lending.NewError(lending.CodeInvalidState,
			"delivery %s is still being sent; re-send it once it is delivered, failed or cancelled", uid)
	}
	if old.MerchantUID != nil {
		of := Reader{reader.PartnerUID, []uuid.UUID{*old.MerchantUID}}
		_, err = CoverageFor(ctx, tx, of, old.SubscriptionUID)
		if lending.ErrorCode(err) == lending.CodeNotFound {
			return Read{}, lending.NewError(lending.CodeInvalidState,
				"delivery %s cannot be re-sent: the subscription no longer covers this merchant", uid)
		}
		if err != nil {
			return Read{}, err
		}
	}
	made, err := s.Resend(ctx, tx, []uuid.UUID{uid}, by, "asked for over the API")
	if err != nil {
		return Read{}, err
	}
	return readFor(ctx, tx, reader, made[0])
}

// SubscriptionsFor lists the partner's subscriptions that cover a merchant of the reader,
// newest first, at most postgres.MaxPage. Each lists only those of its merchants that are
// the reader's. Deleted subscriptions are left out.
func (s *Service) SubscriptionsFor(
	ctx context.Context, reader Reader,
) ([]subscription.Subscription, error) {
	found, _, err := s.Subscriptions.List(ctx, subscription.Filter{
		PartnerUID: reader.PartnerUID, Merchants: append([]uuid.UUID{}, reader.Merchants...),
	}, postgres.Paging{Limit: postgres.MaxPage})
	for i := range found {
		found[i].Merchants = slices.DeleteFunc(found[i].Merchants, func(uid uuid.UUID) bool {
			return !slices.Contains(reader.Merchants, uid)
		})
	}
	return found, err
}

// Coverage is the state of a subscription and which merchants of a reader it covers.
type Coverage struct {
	State subscription.State
	// Merchants are the reader's merchants that it covers now.
	Merchants []uuid.UUID
}

// CoverageFor returns the coverage of a subscription that covers a merchant of the
// reader; it may be a deleted one. Error: NOT_FOUND.
func CoverageFor(
	ctx context.Context, from postgres.Querier, reader Reader, uid uuid.UUID,
) (found Coverage, err error) {
	var covers []struct {
		State    subscription.State `db:"state"`
		Merchant uuid.UUID          `db:"merchant_uid"`
	}
	err = from.SelectContext(ctx, &covers, `
		SELECT s.state, own.merchant_uid
		  FROM subscriptions s
		  JOIN unnest($3::uuid[]) AS own (merchant_uid)
		    ON s.all_merchants OR EXISTS (
		           SELECT FROM subscription_merchants m
		            WHERE m.subscription_uid = s.subscription_uid
		              AND m.merchant_uid = own.merchant_uid)
		 WHERE s.subscription_uid = $1
		   AND s.partner_uid = $2`, uid, reader.PartnerUID, reader.merchants())
	if err != nil {
		return Coverage{}, fmt.Errorf("looking up subscription %s: %w", uid, err)
	}
	if len(covers) == 0 {
		return Coverage{}, subscription.NotFound(uid)
	}
	found.State = covers[0].State
	for _, one := range covers {
		found.Merchants = append(found.Merchants, one.Merchant)
	}
	return found, nil
}
