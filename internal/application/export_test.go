package application

import (
	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Query is the statement of a page, for tests of its plan.
func (f Filter) Query(page postgres.Paging) (string, []any) { return f.query(page) }

// TimelineQuery is the statement of a whole timeline, for tests of its plan.
func TimelineQuery(uid uuid.UUID) (string, []any) {
	return TimelineFilter{Limit: 100}.query(uid)
}
