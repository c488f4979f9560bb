package email

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Settings define how mails look and who receives alerts. The audit log stores them as they are.
type Settings struct {
	LenderName string `db:"lender_name" json:"lender_name"`
	// PrimaryColor fills the head of a mail; AccentColor highlights the important parts of it. Both
	// are "#rrggbb" in lower case.
	PrimaryColor string `db:"primary_color" json:"primary_color"`
	AccentColor  string `db:"accent_color" json:"accent_color"`
	// ReplyTo is where replies go; empty means to the sender.
	ReplyTo string `db:"reply_to" json:"reply_to"`
	// AlertTo receives the alerts; empty means every operator and admin.
	AlertTo pq.StringArray `db:"alert_to" json:"alert_to"`
}

// maxAlertTo keeps one alert from becoming a mass mailing.
const maxAlertTo = 20

var colorPattern = regexp.MustCompile(`^#[0-9a-f]{6}$`)

// Validate returns a VALIDATION_ERROR that names every invalid setting.
func (s Settings) Validate() error {
	var errs lending.FieldErrors
	if name := cleanName(s.LenderName); name == "" || name != s.LenderName ||
		utf8.RuneCountInString(name) > 100 {
		errs.Add("lender_name", `"lender_name" must have 1 to 100 characters on one line`)
	}
	for _, one := range []struct{ field, color string }{
		{"primary_color", s.PrimaryColor}, {"accent_color", s.AccentColor},
	} {
		if !colorPattern.MatchString(one.color) {
			errs.Add(one.field, "%q must be a colour such as #1d3f72", one.field)
		}
	}
	if s.ReplyTo != "" && CheckAddress(s.ReplyTo) != nil {
		errs.Add("reply_to", `"reply_to" must be an e-mail address or empty`)
	}
	if len(s.AlertTo) > maxAlertTo {
		errs.Add("alert_to", `"alert_to" must have at most %d addresses`, maxAlertTo)
	}
	for _, address := range s.AlertTo {
		if CheckAddress(address) != nil {
			errs.Add("alert_to", `"alert_to" contains %q, which is not an e-mail address`, address)
		}
	}
	return errs.Err()
}

// LoadSettings reads the settings in db, a pool or a transaction.
func LoadSettings(ctx context.Context, db sqlx.QueryerContext) (Settings, error) {
	return readSettings(ctx, db, ``)
}

// LockSettings is LoadSettings, and locks the settings until the transaction ends.
func LockSettings(ctx context.Context, tx *postgres.Tx) (Settings, error) {
	return readSettings(ctx, tx, ` FOR UPDATE`)
}

func readSettings(ctx context.Context, db sqlx.QueryerContext, locking string) (Settings, error) {
	var settings Settings
	err := sqlx.GetContext(ctx, db, &settings, `
		SELECT lender_name,
		       primary_color,
		       accent_color,
		       reply_to,
		       alert_to
		  FROM mail_settings`+locking)
	if err != nil {
		return Settings{}, fmt.Errorf("loading the mail settings: %w", err)
	}
	return settings, nil
}

// SaveSettings replaces the settings; mails that were rendered before keep their looks. It returns
// the errors of Validate.
func SaveSettings(ctx context.Context, tx *postgres.Tx, settings Settings, actor string) error {
	settings.PrimaryColor = strings.ToLower(settings.PrimaryColor)
	settings.AccentColor = strings.ToLower(settings.AccentColor)
	if err := settings.Validate(); err != nil {
		return err
	}
	if settings.AlertTo == nil {
		settings.AlertTo = pq.StringArray{}
	}
	_, err := tx.ExecContext(ctx, `
		UPDATE mail_settings
		   SET lender_name   = $1,
		       primary_color = $2,
		       accent_color  = $3,
		       reply_to      = $4,
		       alert_to      = $5,
		       updated_at    = $6,
		       updated_by    = $7`,
		settings.LenderName, settings.PrimaryColor, settings.AccentColor,
		settings.ReplyTo, settings.AlertTo, tx.Now, actor)
	if err != nil {
		return fmt.Errorf("saving the mail settings: %w", err)
	}
	return nil
}
