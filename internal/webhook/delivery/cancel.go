package delivery

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// Cancel ends deliveries that still wait for an attempt and returns those that
// it ended; the others of uids had ended before. An attempt that is under way
// goes on, and if it succeeds the delivery counts as delivered after all.
// Error: VALIDATION_ERROR when uids are none or more than postgres.MaxPage.
func (s *Service) Cancel(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID,
) ([]uuid.UUID, error) {
	if len(uids) < 1 || len(uids) > postgres.MaxPage {
		return nil, lending.Invalid("delivery", "choose from 1 to %d deliveries", postgres.MaxPage)
	}
	texts := make([]string, len(uids))
	for i, uid := range uids {
		texts[i] = uid.String()
	}
	var ended []uuid.UUID
	err := tx.SelectContext(ctx, &ended, `
		WITH chosen AS (
			SELECT delivery_uid, created_at
			  FROM deliveries
			 WHERE delivery_uid = ANY ($1::uuid[])
			   AND state IN ('pending', 'retrying')
			 ORDER BY delivery_uid
			   FOR UPDATE
		)
		UPDATE deliveries d
		   SET `+subscription.Cancelled+`
		  FROM chosen c
		 WHERE d.delivery_uid = c.delivery_uid
		   AND d.created_at = c.created_at
		RETURNING d.delivery_uid`, pq.Array(texts), tx.Now)
	if err != nil {
		return nil, fmt.Errorf("cancelling deliveries: %w", err)
	}
	return ended, nil
}

// ByUIDs returns the deliveries that have one of the ids, newest first;
// ids that nothing has are left out. Error: VALIDATION_ERROR when uids are none
// or more than postgres.MaxPage.
func (s *Service) ByUIDs(ctx context.Context, uids []uuid.UUID) ([]Delivery, error) {
	if err := postgres.CheckLimit(len(uids)); err != nil {
		return nil, err
	}
	texts := make([]string, len(uids))
	for i, uid := range uids {
		texts[i] = uid.String()
	}
	var rows []Delivery
	err := s.DB.SelectContext(ctx, &rows, `SELECT `+deliveryColumns+deliveryTables+`
		WHERE d.delivery_uid = ANY ($1::uuid[])`+newestFirst, pq.Array(texts))
	if err != nil {
		return nil, fmt.Errorf("loading chosen deliveries: %w", err)
	}
	return rows, nil
}
