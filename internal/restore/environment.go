package restore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/processes"
)

// RecordEnvironment records the environment of a database that has none, and returns the recorded
// one. Processes that start together get the same.
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

// Environment returns the environment recorded in db, a pool or a transaction; nil if none is yet.
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

// SetEnvironment changes the record. Error: INVALID_STATE while processes of another environment
// serve the database.
func (s *Service) SetEnvironment(ctx context.Context, tx *postgres.Tx, name string) error {
	recorded, err := s.Environment(ctx, tx)
	if err != nil || recorded != nil && *recorded == name {
		return err
	}
	copied, err := isCopy(ctx, tx)
	if err != nil {
		return err
	}
	living, err := processes.Living(ctx, tx, copied)
	if err != nil {
		return err
	}
	if len(living) > 0 {
		var named []string
		for _, one := range living {
			named = append(named, fmt.Sprintf("process %d on %s, seen %s ago", one.PID, one.Host,
				max(0, tx.Now.Sub(one.LastBeatAt)).Round(time.Second)))
		}
		return lending.NewError(lending.CodeInvalidState, "the database is served (%s): stop every "+
			"process first, and check that this is the intended database",
			strings.Join(named, "; "))
	}
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
