// Package fault injects faults into deliveries on purpose, so that partners can test their
// receivers. It is for sandboxes and development; in production nothing is wired to it.
//
// An order applies to the next deliveries of its subscription, in the order of their
// creation. Which delivery has which fault is recorded before its first attempt, so that
// if a run dies, the next run of the same attempt has the same fault.
package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
)

// The bounds of an order (decisions section 11).
const (
	MaxCount = 100
	MaxDelay = 3600

	// maxPending is how many orders of a subscription may be pending: each delivery reads them.
	maxPending = 100
	// life is how long an order waits for deliveries.
	life = 24 * time.Hour
	// overtakeTimeout is how long a delivery waits for the next one to overtake it.
	overtakeTimeout = 15 * time.Second
)

// Faults lists the faults.
func Faults() []delivery.Fault {
	return []delivery.Fault{
		delivery.FaultDuplicate, delivery.FaultReorder, delivery.FaultDelay,
		delivery.FaultBadSignature, delivery.FaultTruncate,
	}
}

// Order requests a fault for the next deliveries of a subscription.
type Order struct {
	UID             uuid.UUID      `db:"fault_uid"`
	SubscriptionUID uuid.UUID      `db:"subscription_uid"`
	Fault           delivery.Fault `db:"fault"`
	// Count is how many deliveries it applies to, Remaining how many are still to come.
	Count     int `db:"count"`
	Remaining int `db:"remaining"`
	// Delay is in seconds, nil for any fault but FaultDelay.
	Delay     *int      `db:"delay_seconds"`
	CreatedAt time.Time `db:"created_at"`
	ExpiresAt time.Time `db:"expires_at"`
}

// Service stores orders and assigns them to deliveries.
type Service struct{ DB *postgres.DB }

const orderColumns = `fault_uid, subscription_uid, fault, count, remaining, delay_seconds,
	created_at, expires_at`

// Place stores an order. Errors: VALIDATION_ERROR for FaultBadSignature without
// authentication, INVALID_STATE if too many are pending.
func (s *Service) Place(ctx context.Context, tx *postgres.Tx, order Order) (Order, error) {
	// The lock serialises the orders of a subscription, so that two cannot both be the last allowed.
	var unsigned bool
	err := tx.GetContext(ctx, &unsigned, `
		SELECT auth = 'none' FROM subscriptions WHERE subscription_uid = $1 FOR NO KEY UPDATE`,
		order.SubscriptionUID)
	if err != nil {
		return Order{}, fmt.Errorf("locking subscription %s: %w", order.SubscriptionUID, err)
	}
	var pending int
	err = tx.GetContext(ctx, &pending, `
		SELECT count(*)
		  FROM sandbox_faults
		 WHERE subscription_uid = $1
		   AND remaining > 0
		   AND expires_at > $2`, order.SubscriptionUID, tx.Now)
	switch {
	case err != nil:
		return Order{}, fmt.Errorf("counting faults of subscription %s: %w",
			order.SubscriptionUID, err)
	case order.Fault == delivery.FaultBadSignature && unsigned:
		return Order{}, lending.Invalid("fault",
			`"fault" cannot be %s: the subscription has no authentication`, string(order.Fault))
	case pending >= maxPending:
		return Order{}, lending.NewError(lending.CodeInvalidState, "the subscription has %d pending "+
			"faults, the most that are allowed; delete one, or wait until one is used up",
			pending)
	}
	order.UID, order.Remaining = postgres.NewUID(tx.Now), order.Count
	order.CreatedAt, order.ExpiresAt = tx.Now, tx.Now.Add(life)
	_, err = tx.NamedExecContext(ctx, `
		INSERT INTO sandbox_faults (`+orderColumns+`)
		VALUES (:fault_uid, :subscription_uid, :fault, :count, :remaining, :delay_seconds,
		        :created_at, :expires_at)`, order)
	if err != nil {
		return Order{}, fmt.Errorf("inserting a fault of subscription %s: %w", order.SubscriptionUID, err)
	}
	return order, nil
}

// Pending lists the orders of subscriptions that still wait for deliveries, oldest first.
func (s *Service) Pending(ctx context.Context, subscriptions []uuid.UUID) ([]Order, error) {
	orders := []Order{}
	err := s.DB.SelectContext(ctx, &orders, `
		SELECT `+orderColumns+`
		  FROM sandbox_faults
		 WHERE subscription_uid = ANY ($1)
		   AND remaining > 0
		   AND expires_at > $2
		 ORDER BY fault_number`, pq.Array(subscriptions), s.DB.Now())
	if err != nil {
		return nil, fmt.Errorf("listing faults: %w", err)
	}
	return orders, nil
}

// Withdraw deletes an order of one of the subscriptions and returns it as it was. Error:
// NOT_FOUND, also for one that is used up or has expired.
func (s *Service) Withdraw(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, subscriptions []uuid.UUID,
) (Order, error) {
	var order Order
	err := tx.GetContext(ctx, &order, `
		DELETE FROM sandbox_faults
		 WHERE fault_uid = $1
		   AND subscription_uid = ANY ($2)
		   AND remaining > 0
		   AND expires_at > $3
		RETURNING `+orderColumns, uid, pq.Array(subscriptions), tx.Now)
	return order, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "no pending fault has the id %s", uid),
		"withdrawing fault %s", uid)
}

type use struct {
	UID   uuid.UUID      `db:"delivery_uid"`
	Fault delivery.Fault `db:"fault"`
	Until *time.Time     `db:"until"`
}

func (u use) injected() delivery.FaultUse {
	return delivery.FaultUse{Fault: u.Fault, Until: postgres.OrZero(u.Until)}
}

// Take returns the fault of a delivery's first attempt, the zero value for none.
func (s *Service) Take(
	ctx context.Context, uid, subscriptionUID uuid.UUID, createdAt time.Time,
) (delivery.FaultUse, error) {
	var found struct {
		use
		Pending bool `db:"pending"`
	}
	err := s.DB.GetContext(ctx, &found, `
		SELECT coalesce(u.fault, '') AS fault, u.until,
		       EXISTS (SELECT FROM sandbox_faults f
		                WHERE f.subscription_uid = $2 AND f.remaining > 0
		                  AND f.expires_at > $3 AND f.created_at <= $4) AS pending
		  FROM (SELECT $1::uuid AS delivery_uid) d
		  LEFT JOIN sandbox_fault_uses u USING (delivery_uid)`,
		uid, subscriptionUID, s.DB.Now(), createdAt)
	if err != nil {
		return delivery.FaultUse{}, fmt.Errorf("looking for a fault of delivery %s: %w", uid, err)
	}
	if found.Fault != "" || !found.Pending {
		return found.injected(), nil
	}
	var taken delivery.FaultUse
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
		taken, err = assign(ctx, tx, uid, subscriptionUID, createdAt)
		return err
	})
	if err != nil {
		return delivery.FaultUse{}, fmt.Errorf("giving a fault to delivery %s: %w", uid, err)
	}
	return taken, nil
}

// assign applies the orders of a subscription to its deliveries up to the given one, in the order
// of their creation, since workers reach them in any order. It returns the given one's fault.
func assign(
	ctx context.Context, tx *postgres.Tx, uid, subscriptionUID uuid.UUID, upTo time.Time,
) (delivery.FaultUse, error) {
	// One at a time for each subscription.
	_, err := tx.ExecContext(ctx, `
		SELECT 1 FROM subscriptions WHERE subscription_uid = $1 FOR NO KEY UPDATE`, subscriptionUID)
	if err != nil {
		return delivery.FaultUse{}, err
	}
	var orders []Order
	err = tx.SelectContext(ctx, &orders, `
		SELECT `+orderColumns+`
		  FROM sandbox_faults
		 WHERE subscription_uid = $1
		   AND remaining > 0
		   AND expires_at > $2
		 ORDER BY fault_number`, subscriptionUID, tx.Now)
	if err != nil {
		return delivery.FaultUse{}, err
	}
	var uses []use
	for _, order := range orders {
		given, err := give(ctx, tx, order, uid, upTo)
		if err != nil {
			return delivery.FaultUse{}, err
		}
		uses = append(uses, given...)
		if len(given) < order.Remaining {
			break // the next order applies once this one is used up
		}
	}
	at := slices.IndexFunc(uses, func(u use) bool { return u.UID == uid })
	if at >= 0 {
		return uses[at].injected(), nil
	}
	// The worker of a later delivery may have assigned it a fault while this one waited for the lock.
	var mine use
	err = tx.GetContext(ctx, &mine, `
		SELECT delivery_uid, fault, until FROM sandbox_fault_uses WHERE delivery_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return delivery.FaultUse{}, nil
	}
	return mine.injected(), err
}

func give(
	ctx context.Context, tx *postgres.Tx, order Order, uid uuid.UUID, upTo time.Time,
) ([]use, error) {
	wait := time.Duration(postgres.OrZero(order.Delay)) * time.Second
	if order.Fault == delivery.FaultReorder {
		wait = overtakeTimeout
	}
	var until *time.Time
	if wait > 0 {
		until = new(tx.Now.Add(wait))
	}
	chosen, err := choose(ctx, tx, order, uid, upTo)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	var uses []use
	err = tx.SelectContext(ctx, &uses, `
		INSERT INTO sandbox_fault_uses (delivery_uid, created_at, subscription_uid, fault, until)
		SELECT d.delivery_uid, d.created_at, d.subscription_uid, $4, $5::timestamptz
		  FROM deliveries d
		 WHERE d.delivery_uid = ANY ($1)
		   AND d.created_at BETWEEN $2 AND $3
		RETURNING delivery_uid, fault, until`, pq.Array(chosen), order.CreatedAt, upTo,
		string(order.Fault), until)
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx,
		`UPDATE sandbox_faults SET remaining = remaining - $2 WHERE fault_uid = $1`,
		order.UID, len(uses))
	return uses, err
}

// choose selects the deliveries that an order applies to, after those that have a fault:
// deliveries created before them have been passed over for good. The delivery that is to
// overtake another one is not held back too, or nothing would ever be overtaken: it is
// sent normally, and the order applies to the one after it.
func choose(
	ctx context.Context, tx *postgres.Tx, order Order, uid uuid.UUID, upTo time.Time,
) (chosen []uuid.UUID, err error) {
	var found []struct {
		UID uuid.UUID `db:"delivery_uid"`
		// Overtakes means that a delivery waits for this one to overtake it.
		Overtakes bool `db:"overtakes"`
	}
	err = tx.SelectContext(ctx, &found, `
		WITH newest AS MATERIALIZED (
			SELECT created_at, delivery_uid
			  FROM sandbox_fault_uses
			 WHERE subscription_uid = $1
			 ORDER BY created_at DESC, delivery_uid DESC
			 LIMIT 1
		)
		SELECT d.delivery_uid,
		       EXISTS (SELECT FROM sandbox_fault_uses u
		                WHERE u.subscription_uid = d.subscription_uid
		                  AND u.fault = 'reorder'
		                  AND u.until > $6
		                  AND (u.created_at, u.delivery_uid) < (d.created_at, d.delivery_uid)
		                  AND NOT EXISTS (
		                      SELECT FROM deliveries b
		                       WHERE b.subscription_uid = d.subscription_uid
		                         AND b.created_at BETWEEN u.created_at AND d.created_at
		                         AND (b.created_at, b.delivery_uid) > (u.created_at, u.delivery_uid)
		                         AND (b.created_at, b.delivery_uid) < (d.created_at, d.delivery_uid)
		                         AND b.state <> 'cancelled'
		                         AND NOT b.test
		                         AND b.resend_of IS NULL)) AS overtakes
		  FROM deliveries d
		 WHERE d.subscription_uid = $1
		   AND d.created_at BETWEEN $2 AND $3
		   AND (d.created_at, d.delivery_uid) <= ($3, $4)
		   AND d.state = 'pending'
		   AND d.attempt_count = 0
		   AND NOT d.test
		   AND d.resend_of IS NULL
		   AND NOT EXISTS (SELECT FROM newest n
		                    WHERE (n.created_at, n.delivery_uid) >= (d.created_at, d.delivery_uid))
		 ORDER BY d.created_at, d.delivery_uid
		 LIMIT $5`, order.SubscriptionUID, order.CreatedAt, upTo, uid, 2*order.Remaining, tx.Now)
	overtakes := false // whether the next delivery overtakes the last chosen one
	for _, one := range found {
		if order.Fault == delivery.FaultReorder && (overtakes || one.Overtakes) {
			overtakes = false
			continue
		}
		if len(chosen) < order.Remaining {
			chosen, overtakes = append(chosen, one.UID), true
		}
	}
	return chosen, err
}

// Passed releases the deliveries that waited for this one, or a later one, to overtake them.
func (s *Service) Passed(
	ctx context.Context, uid, subscriptionUID uuid.UUID, createdAt time.Time,
) error {
	now := s.DB.Now()
	// Nearly always none waits. Checking first avoids a lookup in every partition of deliveries.
	var waits bool
	err := s.DB.GetContext(ctx, &waits,
		`SELECT EXISTS (SELECT FROM sandbox_fault_uses WHERE `+isOvertaken+`)`,
		uid, subscriptionUID, createdAt, now)
	if err == nil && waits {
		_, err = s.DB.ExecContext(ctx, `
			WITH overtaken AS (
				UPDATE sandbox_fault_uses SET until = $4 WHERE `+isOvertaken+`
				RETURNING delivery_uid, created_at
			)
			UPDATE deliveries d
			   SET next_attempt_at = $4
			  FROM overtaken o
			 WHERE d.delivery_uid = o.delivery_uid
			   AND d.created_at = o.created_at
			   AND d.state = 'pending'`, uid, subscriptionUID, createdAt, now)
	}
	if err != nil {
		return fmt.Errorf("letting what delivery %s overtook go: %w", uid, err)
	}
	return nil
}

// isOvertaken tests whether the delivery of a fault waits to be overtaken and was created
// before delivery $1, which was created at $3.
const isOvertaken = `subscription_uid = $2
	 AND fault = 'reorder'
	 AND until > $4
	 AND (created_at, delivery_uid) < ($3, $1)`

// Purge deletes expired orders, and the faults of deliveries that are no longer kept.
func (s *Service) Purge(ctx context.Context) error {
	_, err := s.DB.ExecContext(ctx, `
		WITH expired AS (DELETE FROM sandbox_faults WHERE expires_at < $1)
		DELETE FROM sandbox_fault_uses u
		 WHERE NOT EXISTS (SELECT FROM deliveries d
		                    WHERE d.delivery_uid = u.delivery_uid
		                      AND d.created_at = u.created_at)`, s.DB.Now())
	if err != nil {
		return fmt.Errorf("forgetting faults: %w", err)
	}
	return nil
}
