package restore

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// RecordBackup notes that a backup was made now, and returns when that is.
func (s *Service) RecordBackup(ctx context.Context, tx *postgres.Tx) (time.Time, error) {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO installation (identity, recorded_at, backed_up_at)
		VALUES (`+identity+`, $1, $1)
		ON CONFLICT (only_row) DO UPDATE
		   SET backed_up_at = excluded.backed_up_at`, tx.Now)
	if err != nil {
		return time.Time{}, fmt.Errorf("recording the backup: %w", err)
	}
	return tx.Now.UTC(), nil
}
