package retention

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// maxReason is the longest reason, in characters.
const maxReason = 500

// LegalHold keeps everything of an application until it is released.
type LegalHold struct {
	ID             int64      `db:"hold_id"`
	ApplicationUID uuid.UUID  `db:"application_uid"`
	Reason         string     `db:"reason"`
	PlacedBy       string     `db:"placed_by"`
	PlacedAt       time.Time  `db:"placed_at"`
	ReleaseReason  *string    `db:"release_reason"`
	ReleasedBy     *string    `db:"released_by"`
	ReleasedAt     *time.Time `db:"released_at"`
}

// InForce reports whether the hold is in force.
func (h LegalHold) InForce() bool { return h.ReleasedAt == nil }

const legalHoldColumns = `
	hold_id, application_uid, reason, placed_by, placed_at, release_reason, released_by, released_at`

// Place puts an application under a legal hold. Data removed before stays removed. Errors:
// NOT_FOUND, VALIDATION_ERROR for the reason, INVALID_STATE when the application is already under a
// hold.
func (s *Service) Place(
	ctx context.Context, tx *postgres.Tx, application uuid.UUID, by, reason string,
) (LegalHold, error) {
	if err := checkReason(reason); err != nil {
		return LegalHold{}, err
	}
	var hold LegalHold
	err := tx.GetContext(ctx, &hold, `
		INSERT INTO application_holds (application_uid, reason, placed_by, placed_at)
		VALUES ($1, $2, $3, $4)
		RETURNING `+legalHoldColumns, application, reason, by, tx.Now)
	switch {
	case postgres.IsForeignKey(err, ""):
		return LegalHold{}, lending.NewError(lending.CodeNotFound,
			"no application has the id %s", application)
	case postgres.IsUnique(err, "application_holds_in_force"):
		return LegalHold{}, lending.NewError(lending.CodeInvalidState,
			"application %s is already under a legal hold", application)
	case err != nil:
		return LegalHold{}, fmt.Errorf("holding application %s: %w", application, err)
	}
	return hold, nil
}

// Release ends the hold of an application; the next run removes what it kept beyond its time.
// Errors: VALIDATION_ERROR for the reason, INVALID_STATE when there is no hold.
func (s *Service) Release(
	ctx context.Context, tx *postgres.Tx, application uuid.UUID, by, reason string,
) (LegalHold, error) {
	if err := checkReason(reason); err != nil {
		return LegalHold{}, err
	}
	var hold LegalHold
	err := tx.GetContext(ctx, &hold, `
		UPDATE application_holds
		   SET released_by = $2, release_reason = $3, released_at = $4
		 WHERE application_uid = $1
		   AND released_at IS NULL
		RETURNING `+legalHoldColumns, application, by, reason, tx.Now)
	return hold, postgres.RowError(err, lending.NewError(lending.CodeInvalidState,
		"application %s is not under a legal hold", application), "releasing application %s", application)
}

// LegalHolds returns the legal holds of an application, newest first, including released ones.
func (s *Service) LegalHolds(ctx context.Context, application uuid.UUID) ([]LegalHold, error) {
	return s.legalHolds(ctx, `application_uid = $1 ORDER BY hold_id DESC`, application)
}

// LegalHoldsInForce returns every legal hold in force, newest first.
func (s *Service) LegalHoldsInForce(ctx context.Context) ([]LegalHold, error) {
	return s.legalHolds(ctx, `released_at IS NULL ORDER BY hold_id DESC`)
}

func (s *Service) legalHolds(ctx context.Context, which string, args ...any) ([]LegalHold, error) {
	var holds []LegalHold
	err := s.DB.SelectContext(ctx, &holds,
		`SELECT `+legalHoldColumns+` FROM application_holds WHERE `+which, args...)
	if err != nil {
		return nil, fmt.Errorf("loading legal holds: %w", err)
	}
	return holds, nil
}

func checkReason(reason string) error {
	var errs lending.FieldErrors
	errs.Text("reason", reason, maxReason)
	return errs.Err()
}
