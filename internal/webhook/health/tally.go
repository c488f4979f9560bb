package health

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

const (
	// tallyBatch bounds one transaction of a tally; smallTally is the bound soon after an
	// API request: a large one occupies a processor for 50 ms, while the next request waits.
	tallyBatch, smallTally = 5000, 500
	// tallyLock is the advisory lock of the summaries. Its value has no meaning.
	tallyLock = 7_305_140_442
)

// outcomeRow is the outcome of an attempt on its way into the summaries. The counts are 1
// or 0, or -1 to undo what a late outcome replaced.
type outcomeRow struct {
	ID           int64             `db:"outcome_id"`
	Subscription uuid.UUID         `db:"subscription_uid"`
	Delivery     uuid.UUID         `db:"delivery_uid"`
	EndedAt      time.Time         `db:"ended_at"`
	Status       *int              `db:"http_status"`
	Class        sender.ErrorClass `db:"error_class"`
	Error        string            `db:"error"`
	DurationUS   int64             `db:"duration_us"`
	Attempts     int               `db:"attempts"`
	Delivered    int               `db:"delivered"`
	Failed       int               `db:"failed"`
	// MadeGood means that the delivery failed although its event had arrived.
	MadeGood bool `db:"made_good"`
}

// Trouble is what a tally found that an operator should know about.
type Trouble struct {
	Subscription uuid.UUID
	// UsedUp counts the deliveries that failed for good, Unknown the attempts with an
	// unknown outcome, in both cases without those whose event arrived by another delivery.
	UsedUp, Unknown int
	// Delivery is the latest delivery that failed for good, the zero UUID if none did.
	Delivery uuid.UUID
	// FirstSeen and LastSeen are when the first and the last of them ended.
	FirstSeen, LastSeen time.Time
}

// Tallied is the result of one tally.
type Tallied struct {
	// Outcomes is how many outcomes were added to the summaries.
	Outcomes int
	// More means that another tally would probably find something.
	More    bool
	Trouble []Trouble
}

// Tally moves outcomes of attempts into the hourly summaries and the streaks of failures,
// oldest first. Test events never count; the attempts of a re-send count like those of
// any delivery. Outcomes are deleted from their table in the same transaction, so none
// counts twice, however late it comes. Only one process tallies at a time; the others
// find nothing to do.
func (s *Service) Tally(ctx context.Context, tx *postgres.Tx) (Tallied, error) {
	var alone bool
	err := tx.GetContext(ctx, &alone, `SELECT pg_try_advisory_xact_lock($1)`, tallyLock)
	if err != nil {
		return Tallied{}, fmt.Errorf("locking the summaries: %w", err)
	}
	if !alone {
		return Tallied{}, nil
	}
	limit := tallyBatch
	if s.Gate.Lately() {
		limit = smallTally
		s.Gate.Yield(ctx)
	}
	var rows []outcomeRow
	err = tx.SelectContext(ctx, &rows, `
		DELETE FROM attempt_outcomes
		 WHERE outcome_id IN (
		           SELECT outcome_id
		             FROM attempt_outcomes
		            ORDER BY outcome_id
		            LIMIT $1)
		RETURNING outcome_id, subscription_uid, delivery_uid, ended_at, http_status,
		          coalesce(error_class, '') AS error_class, coalesce(error, '') AS error,
		          duration_us, attempts, delivered, failed,
		          failed > 0 AND EXISTS (SELECT
		                                   FROM deliveries d
		                                  WHERE d.delivery_uid = attempt_outcomes.delivery_uid
		                                    AND d.made_good_by IS NOT NULL) AS made_good`, limit)
	if err != nil {
		return Tallied{}, fmt.Errorf("taking outcomes: %w", err)
	}
	if len(rows) == 0 {
		return Tallied{}, nil
	}
	slices.SortFunc(rows, func(a, b outcomeRow) int { return cmp.Compare(a.ID, b.ID) })
	for _, add := range []func(context.Context, *postgres.Tx, []outcomeRow) error{
		addHours, addErrors, addTraffic, addStreaks, addUnreported,
	} {
		if err := add(ctx, tx, rows); err != nil {
			return Tallied{}, err
		}
	}
	return Tallied{Outcomes: len(rows), More: len(rows) == limit, Trouble: troubleIn(rows)}, nil
}

// troubleIn sums up the failures of each subscription, in a fixed order.
func troubleIn(rows []outcomeRow) []Trouble {
	found := make(map[uuid.UUID]Trouble)
	for _, row := range rows {
		unknown := row.Class == sender.ClassUnknown && row.Attempts > 0
		if row.Failed <= 0 && !unknown || row.MadeGood {
			continue
		}
		one := found[row.Subscription]
		one.Subscription = row.Subscription
		if unknown {
			one.Unknown++
		}
		if row.Failed > 0 {
			one.UsedUp++
			one.Delivery = row.Delivery
		}
		if one.FirstSeen.IsZero() || row.EndedAt.Before(one.FirstSeen) {
			one.FirstSeen = row.EndedAt
		}
		if row.EndedAt.After(one.LastSeen) {
			one.LastSeen = row.EndedAt
		}
		found[row.Subscription] = one
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Trouble) int {
		return slices.Compare(a.Subscription[:], b.Subscription[:])
	})
}
