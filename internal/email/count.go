package email

import (
	"context"
	"fmt"

	"drawbridge/internal/postgres"
)

// Count counts the mails that match, at most limit of them. It reads them in the order of the
// list, so that it stops as early.
func Count(ctx context.Context, db *postgres.DB, filter Filter, limit int) (int, error) {
	c := filter.conditions()
	count, err := db.Count(ctx, `
		SELECT count(*)
		  FROM (SELECT FROM emails`+c.Where()+`
		         ORDER BY created_at DESC, email_uid DESC
		         LIMIT `+c.Bind(limit)+`) AS matching`, c.Args...)
	if err != nil {
		return 0, fmt.Errorf("counting e-mails: %w", err)
	}
	return count, nil
}
