package webhook

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Neighbours returns the deliveries beside one in the list of a filter: the
// next newer and the next older one, the zero UUID at an end. The filter's
// cursor and limit do not count.
func (s *Service) Neighbours(
	ctx context.Context, filter DeliveryFilter, of Delivery,
) (newer, older uuid.UUID, err error) {
	filter.Cursor, filter.Limit = of.Place(), 1
	page, err := s.Deliveries(ctx, filter)
	if err != nil {
		return uuid.Nil, uuid.Nil, err
	}
	if len(page.Deliveries) > 0 {
		older = page.Deliveries[0].UID
	}
	filter.Cursor = postgres.Cursor{}
	filter.Since = latest(filter.Since, of.CreatedAt)
	conditions, args := filter.where(`true`)
	args = append(args, of.CreatedAt, of.UID)
	err = s.DB.GetContext(ctx, &newer, `SELECT d.delivery_uid FROM deliveries d`+conditions+
		fmt.Sprintf(` AND (d.created_at, d.delivery_uid) > ($%d, $%d)
		 ORDER BY d.created_at, d.delivery_uid LIMIT 1`, len(args)-1, len(args)), args...)
	if err != nil && !postgres.IsNoRows(err) {
		return uuid.Nil, uuid.Nil, fmt.Errorf("looking beside delivery %s: %w", of.UID, err)
	}
	return newer, older, nil
}
