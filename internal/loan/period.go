package loan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// lastChange is the time of a disbursement d's last change, exactly as its index has it.
const lastChange = `greatest(
	d.requested_at, d.processing_at, d.settled_at, d.cancelled_at, d.returned_at)`

// ChangedWithin returns the merchants' disbursements whose status changed at or after from and
// before until, ordered by id.
func (s *Service) ChangedWithin(
	ctx context.Context, tx *postgres.Tx, merchants []uuid.UUID, from, until time.Time,
) ([]Disbursement, error) {
	of, err := pq.Array(append([]uuid.UUID{}, merchants...)).Value()
	if err != nil {
		return nil, fmt.Errorf("writing the merchants' ids: %w", err)
	}
	// Both values are literals, so that the planner can tell which is fewer: the merchants'
	// applications, or the disbursements changed since from.
	var rows []drawRow
	err = tx.SelectContext(ctx, &rows, selectDraws+`
		 WHERE a.merchant_uid = ANY (`+pq.QuoteLiteral(fmt.Sprint(of))+`)
		   AND `+lastChange+` >= `+pq.QuoteLiteral(from.UTC().Format(time.RFC3339Nano))+`
		   AND EXISTS (SELECT
		                 FROM unnest(ARRAY[d.requested_at, d.processing_at, d.settled_at,
		                                   d.cancelled_at, d.returned_at]) AS at
		                WHERE at >= $1 AND at < $2)
		 ORDER BY d.merchant_disbursement_id`, from, until)
	if err != nil {
		return nil, fmt.Errorf("listing the disbursements that changed since %s: %w",
			from.Format(time.RFC3339), err)
	}
	return disbursements(rows), nil
}

// CountChanges counts, by merchant, the status changes of disbursements within a period.
func (s *Service) CountChanges(
	ctx context.Context, tx *postgres.Tx, from, until time.Time,
) (map[uuid.UUID]int, error) {
	var rows []struct {
		MerchantUID uuid.UUID `db:"merchant_uid"`
		Count       int       `db:"count"`
	}
	err := tx.SelectContext(ctx, &rows, `
		SELECT a.merchant_uid, count(*)
		  FROM disbursements d
		  JOIN applications a USING (application_uid)
		 CROSS JOIN unnest(ARRAY[d.requested_at, d.processing_at, d.settled_at, d.cancelled_at,
		                         d.returned_at]) AS at
		 WHERE `+lastChange+` >= $1
		   AND at >= $1
		   AND at < $2
		 GROUP BY a.merchant_uid`, from, until)
	if err != nil {
		return nil, fmt.Errorf("counting the changes since %s: %w", from.Format(time.RFC3339), err)
	}
	counts := make(map[uuid.UUID]int, len(rows))
	for _, row := range rows {
		counts[row.MerchantUID] = row.Count
	}
	return counts, nil
}

// AsOf returns the disbursement as it was just before until. Its request is the first change.
func (d Disbursement) AsOf(until time.Time) Disbursement {
	requested := Change{
		FundingChange: lending.FundingChange{Status: lending.FundingRequested}, At: d.RequestedAt,
	}
	d.Changes = slices.DeleteFunc(append([]Change{requested}, d.Changes...),
		func(c Change) bool { return !c.At.Before(until) })
	d.Status = lending.FundingRequested
	if len(d.Changes) > 0 {
		d.Status = d.Changes[len(d.Changes)-1].Status
	}
	return d
}
