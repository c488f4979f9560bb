package delivery

import (
	"context"

	"drawbridge/internal/postgres"
)

// Query is the statement of a page, and CountQuery the counting one, for tests that check
// their plans.
func (s *Service) Query(
	ctx context.Context, f Filter, page postgres.Paging,
) (string, []any, error) {
	scope, err := scopeOf(ctx, s.DB, f)
	query, args := scope.query(page)
	return query, args, err
}

// CountQuery is the statement that counts at most limit deliveries.
func (s *Service) CountQuery(
	ctx context.Context, f Filter, limit int,
) (string, []any, error) {
	scope, err := scopeOf(ctx, s.DB, f)
	query, args := scope.countQuery(limit)
	return query, args, err
}

// DueRest is the longest rest between two scans for due deliveries.
const DueRest = maxScanRest

// HeadersJSON renders an attempt's headers for its record.
var HeadersJSON = headersJSON
