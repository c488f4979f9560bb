package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// submissionsKept is for how long a form that was sent is recognised.
const submissionsKept = 24 * time.Hour

// Once runs what a form asks for at most once. The token identifies the form as
// it was shown. The first arrival runs use, which returns where the result is to
// be seen; any other, also one that arrives at the same moment, is told that
// place and runs nothing. When use fails, so does the first arrival, and the
// form may be sent again.
//
// Errors: VALIDATION_ERROR for a token that another person used.
func (s *Service) Once(
	ctx context.Context, tx *postgres.Tx, token uuid.UUID, actor string,
	use func() (target string, err error),
) (target string, repeated bool, err error) {
	// A simultaneous arrival waits here for the first one's end.
	result, err := tx.ExecContext(ctx, `
		INSERT INTO console_submissions (token, at, actor) VALUES ($1, $2, $3)
		ON CONFLICT (token) DO NOTHING`, token, tx.Now, actor)
	if err != nil {
		return "", false, fmt.Errorf("noting a form: %w", err)
	}
	if count, err := result.RowsAffected(); err != nil {
		return "", false, fmt.Errorf("counting noted forms: %w", err)
	} else if count == 0 {
		target, err := submitted(ctx, tx, token, actor)
		return target, true, err
	}
	if target, err = use(); err != nil {
		return "", false, err
	}
	_, err = tx.ExecContext(ctx,
		`UPDATE console_submissions SET target = $2 WHERE token = $1`, token, target)
	if err != nil {
		return "", false, fmt.Errorf("noting the result of a form: %w", err)
	}
	return target, false, nil
}

func submitted(
	ctx context.Context, tx *postgres.Tx, token uuid.UUID, actor string,
) (string, error) {
	var first struct {
		Actor  string `db:"actor"`
		Target string `db:"target"`
	}
	err := tx.GetContext(ctx, &first,
		`SELECT actor, target FROM console_submissions WHERE token = $1`, token)
	if err != nil {
		return "", fmt.Errorf("looking up a form: %w", err)
	}
	if first.Actor != actor {
		return "", lending.Invalid("token", "this form was sent by somebody else; open it again")
	}
	return first.Target, nil
}

// PurgeSubmissions forgets forms that were sent a day ago or earlier.
func (s *Service) PurgeSubmissions(ctx context.Context) error {
	_, err := s.DB.ExecContext(ctx, `DELETE FROM console_submissions WHERE at < $1`,
		s.DB.Now().UTC().Add(-submissionsKept))
	if err != nil {
		return fmt.Errorf("forgetting old forms: %w", err)
	}
	return nil
}

// Submitted tells where the result of a form is to be seen, and false for a form
// that this person has not sent, or that did nothing.
func (s *Service) Submitted(
	ctx context.Context, token uuid.UUID, actor string,
) (target string, known bool, err error) {
	err = s.DB.GetContext(ctx, &target,
		`SELECT target FROM console_submissions WHERE token = $1 AND actor = $2`, token, actor)
	if postgres.IsNoRows(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("looking up a form: %w", err)
	}
	return target, true, nil
}
