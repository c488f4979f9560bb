package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// filtersVersion is the migration's number.
const filtersVersion = 28

// filterIndexes let the filters of the lists of events and of API requests be
// answered by an index. What most rows have costs nothing: most events are of
// the first kind, and most requests read.
var filterIndexes = []partitionedIndex{
	{"events_kind", "events", `(kind, occurred_at DESC, event_uid DESC)
		WHERE kind <> 'application.status.update'`},
	// Behind the order, the method is looked at without the row.
	{"api_requests_route", "api_requests", `(route, at DESC, request_uid DESC, method)`},
	{"api_requests_method", "api_requests", `(method, at DESC, request_uid DESC)
		WHERE method NOT IN ('GET', 'POST')`},
	{"api_requests_code", "api_requests", `(error_code, at DESC, request_uid DESC)
		WHERE error_code IS NOT NULL`},
	{"api_requests_failed", "api_requests", `(at DESC, request_uid DESC) WHERE status >= 500`},
	{"api_requests_key", "api_requests", `(idempotency_key, at DESC, request_uid DESC)
		WHERE idempotency_key IS NOT NULL`},
}

// plainFilterIndexes are those of tables without partitions.
var plainFilterIndexes = []plainIndex{
	{"audit_log_subject_alone", `audit_log (subject, entry_id DESC)`},
	{"disbursements_completing", `disbursements (application_uid)
		WHERE kind <> 'regular' AND status <> 'CANCELLED'`},
	{"disbursements_cancelled", `disbursements (application_uid) WHERE status = 'CANCELLED'`},
}

// filtersUp runs outside a transaction, as listsUp does.
func filtersUp(ctx context.Context, db *sql.DB) error {
	return buildAll(ctx, db, plainFilterIndexes, filterIndexes)
}

func filtersDown(ctx context.Context, db *sql.DB) error {
	var names []string
	for _, index := range plainFilterIndexes {
		names = append(names, index.name)
	}
	for _, index := range filterIndexes {
		names = append(names, index.name)
	}
	_, err := db.ExecContext(ctx, `DROP INDEX IF EXISTS `+strings.Join(names, ", "))
	if err != nil {
		return fmt.Errorf("taking the indexes of filters back: %w", err)
	}
	return nil
}
