package email

import (
	"context"
	"fmt"

	"drawbridge/internal/postgres"
)

// Count counts the mails that match, at most limit of them. It reads them in the order of the
// list, so that it stops as early.
func Count(ctx context.Context, db *postgres.DB, filter Filter, limit int) (int, error) {
	where, args := filter.where(postgres.Cursor{})
	args = append(args, limit)
	count, err := db.Count(ctx, fmt.Sprintf(`
		SELECT count(*)
		  FROM (SELECT FROM emails %s
		         ORDER BY created_at DESC, email_uid DESC
		         LIMIT $%d) AS matching`, where, len(args)), args...)
	if err != nil {
		return 0, fmt.Errorf("counting e-mails: %w", err)
	}
	return count, nil
}
