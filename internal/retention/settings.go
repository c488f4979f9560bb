package retention

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// The bounds of the settings.
const (
	MinMonths = 2
	MaxMonths = 120
	MinDays   = 7
	MaxDays   = 3650
	// daysOfMonth is the shortest month: a body must be gone before its row goes.
	daysOfMonth = 28
)

// Settings define how long data is kept.
type Settings struct {
	// Months is for how many whole months events, deliveries and attempts are kept.
	Months int `db:"metadata_months" json:"metadata_months"`
	// BodyDays is for how many days the body of an event and the headers and bodies of attempts are
	// kept.
	BodyDays int `db:"body_days" json:"body_days"`
	// EmailBodyDays is for how many days the text of an e-mail is kept.
	EmailBodyDays int `db:"email_body_days" json:"email_body_days"`
	// APIRequestDays is for how many days the log of API requests is kept.
	APIRequestDays int        `db:"api_request_days" json:"api_request_days"`
	UpdatedAt      *time.Time `db:"updated_at" json:"updated_at"`
	UpdatedBy      *string    `db:"updated_by" json:"updated_by"`
}

const settingsColumns = `
	metadata_months, body_days, email_body_days, api_request_days, updated_at, updated_by`

// Settings returns the settings in force.
func (s *Service) Settings(ctx context.Context) (Settings, error) {
	var settings Settings
	err := s.DB.GetContext(ctx, &settings,
		`SELECT `+settingsColumns+` FROM retention_settings`)
	if err != nil {
		return Settings{}, fmt.Errorf("loading the retention settings: %w", err)
	}
	return settings, nil
}

// Check returns a VALIDATION_ERROR that names every setting out of its bounds.
func (s Settings) Check() error {
	var errs lending.FieldErrors
	within := func(field string, value, low, high int) {
		if value < low || value > high {
			errs.Add(field, `%q must be from %d to %d`, field, low, high)
		}
	}
	within("metadata_months", s.Months, MinMonths, MaxMonths)
	within("body_days", s.BodyDays, MinDays, MaxDays)
	within("email_body_days", s.EmailBodyDays, MinDays, MaxDays)
	within("api_request_days", s.APIRequestDays, MinDays, MaxDays)
	if err := errs.Err(); err != nil {
		return err
	}
	if s.BodyDays > s.Months*daysOfMonth {
		errs.Add("body_days", `"body_days" must be at most %d with "metadata_months" %d: `+
			`bodies cannot be kept longer than their rows`, s.Months*daysOfMonth, s.Months)
	}
	return errs.Err()
}

// LockSettings returns the settings in force, and keeps others from changing them before tx ends.
func (s *Service) LockSettings(ctx context.Context, tx *postgres.Tx) (Settings, error) {
	var settings Settings
	err := tx.GetContext(ctx, &settings,
		`SELECT `+settingsColumns+` FROM retention_settings FOR UPDATE`)
	if err != nil {
		return Settings{}, fmt.Errorf("locking the retention settings: %w", err)
	}
	return settings, nil
}

// SaveSettings puts the settings in force for the next run and returns the old and the new ones; by
// names the user. Error: VALIDATION_ERROR.
func (s *Service) SaveSettings(
	ctx context.Context, tx *postgres.Tx, settings Settings, by string,
) (before, after Settings, err error) {
	if err := settings.Check(); err != nil {
		return before, after, err
	}
	if before, err = s.LockSettings(ctx, tx); err != nil {
		return before, after, err
	}
	err = tx.GetContext(ctx, &after, `
		UPDATE retention_settings
		   SET metadata_months = $1,
		       body_days = $2,
		       email_body_days = $3,
		       api_request_days = $4,
		       updated_at = $5,
		       updated_by = $6
		RETURNING `+settingsColumns,
		settings.Months, settings.BodyDays, settings.EmailBodyDays, settings.APIRequestDays,
		tx.Now, by)
	if err != nil {
		return before, after, fmt.Errorf("saving the retention settings: %w", err)
	}
	return before, after, nil
}

// bodyCutoff is the time before which events must have occurred for their bodies to be removed.
func (s Settings) bodyCutoff(now time.Time) time.Time { return now.AddDate(0, 0, -s.BodyDays) }

func (s Settings) emailCutoff(now time.Time) time.Time {
	return now.AddDate(0, 0, -s.EmailBodyDays)
}

// RequestCutoff is the time before which days of the API request log must have ended to be removed.
func (s Settings) RequestCutoff(now time.Time) time.Time {
	return now.UTC().AddDate(0, 0, -s.APIRequestDays)
}

// monthCutoff is the beginning of the first month that is kept.
func (s Settings) monthCutoff(now time.Time) time.Time {
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	return first.AddDate(0, -s.Months, 0)
}
