package restore

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// RecordBackup records that a backup was made now, and returns when the previous one was made, nil
// for none, and the time it recorded.
func (s *Service) RecordBackup(
	ctx context.Context, tx *postgres.Tx,
) (before *time.Time, now time.Time, err error) {
	err = tx.GetContext(ctx, &before, `SELECT backed_up_at FROM installation FOR UPDATE`)
	if err != nil && !postgres.IsNoRows(err) {
		return nil, time.Time{}, fmt.Errorf("reading the record of the last backup: %w", err)
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO installation (identity, recorded_at, backed_up_at)
		VALUES (`+identity+`, $1, $1)
		ON CONFLICT (only_row) DO UPDATE
		   SET backed_up_at = excluded.backed_up_at`, tx.Now)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("recording the backup: %w", err)
	}
	return before, tx.Now.UTC(), nil
}
