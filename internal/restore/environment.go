package restore

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
)

// RecordEnvironment records the environment of a database that has none, and returns the
// one that is recorded. Processes that start together agree.
func (s *Service) RecordEnvironment(ctx context.Context, name string) (string, error) {
	recorded := ""
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		found, err := s.Environment(ctx, tx)
		if err == nil && found == nil {
			if err = writeEnvironment(ctx, tx, name, "installation.environment IS NULL"); err == nil {
				found, err = s.Environment(ctx, tx)
			}
		}
		if err == nil {
			recorded = *found
		}
		return err
	})
	return recorded, err
}

// Environment is the one that is recorded in db, a pool or a transaction; nil is none yet.
func (s *Service) Environment(ctx context.Context, db sqlx.QueryerContext) (*string, error) {
	var found []string
	err := sqlx.SelectContext(ctx, db, &found, `
		SELECT environment FROM installation WHERE environment IS NOT NULL`)
	if err != nil {
		return nil, fmt.Errorf("reading the environment of the database: %w", err)
	}
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // none is recorded
	}
	return &found[0], nil
}

// SetEnvironment changes the record.
func (s *Service) SetEnvironment(ctx context.Context, tx *postgres.Tx, name string) error {
	return writeEnvironment(ctx, tx, name, "true")
}

func writeEnvironment(ctx context.Context, tx *postgres.Tx, name, where string) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO installation (identity, recorded_at, environment)
		VALUES (`+identity+`, $1, $2)
		ON CONFLICT (only_row) DO UPDATE
		   SET environment = $2
		 WHERE `+where, tx.Now, name)
	if err != nil {
		return fmt.Errorf("recording the environment of the database: %w", err)
	}
	return nil
}
