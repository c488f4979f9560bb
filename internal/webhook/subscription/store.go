package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// The table and columns that a sealed value is bound to: a ciphertext moved to another
// row or column cannot be decrypted.
const (
	sealTable   = "subscriptions"
	sealSecret  = "secret_sealed"
	sealHeaders = "headers_sealed"
)

// Row is a subscription as stored: its secrets and headers are sealed.
type Row struct {
	Subscription
	SecretSealed   *string `db:"secret_sealed"`
	PreviousSealed *string `db:"previous_sealed"`
	HeadersSealed  *string `db:"headers_sealed"`
}

const columns = `
	s.subscription_uid, s.partner_uid, s.url, s.auth, s.secret_sealed, s.previous_sealed,
	s.previous_until, s.headers_sealed, s.events,
	ARRAY (SELECT m.merchant_uid
	         FROM subscription_merchants m
	        WHERE m.subscription_uid = s.subscription_uid
	        ORDER BY m.merchant_uid) AS merchant_uids,
	coalesce(s.rate, 0) AS rate, coalesce(s.failing_minutes, 0) AS "watch.failing_minutes",
	coalesce(s.failing_events, 0) AS "watch.failing_events",
	s.on_failing = 'pause' AS "watch.pause", s.alert_email AS "watch.alert_email",
	s.name, s.retry, s.standard, s.state, s.stopped_at, s.version, s.created_at, s.updated_at`

// subscription decrypts the sealed headers of a row, if possible, and checks whether the
// secrets could be decrypted. Secrets stay sealed.
func (s *Service) subscription(row Row) Subscription {
	made := row.Subscription
	var err error
	made.Headers, err = s.OpenHeaders(row.UID, row.HeadersSealed)
	made.HeadersUnknown = err != nil
	if err == nil {
		_, err = s.OpenSecret(row.UID, row.SecretSealed)
	}
	if err == nil && row.PreviousUntil != nil && s.DB.Now().Before(*row.PreviousUntil) {
		_, err = s.OpenSecret(row.UID, row.PreviousSealed)
	}
	if unopened, ok := errors.AsType[*unopenedError](err); ok {
		made.Unopened, made.MissingKey = unopened.Error(), unopened.key
	}
	return made
}

// unopenedError means that a stored value cannot be decrypted: its key is missing here,
// or it is damaged. It is an INVALID_STATE.
type unopenedError struct {
	what  string
	key   string // the id of the missing key, empty for a damaged value
	cause error
}

// Error says what to do.
func (e *unopenedError) Error() string {
	if e.key != "" {
		return fmt.Sprintf("The %s is encrypted with the key %s, which this server does not have, so "+
			"that nothing is sent. Add that key behind the first one of DRAWBRIDGE_SECRETS_KEY and "+
			"restart, or give the %s again.", e.what, e.key, e.what)
	}
	return fmt.Sprintf("The stored %s is damaged, so that nothing is sent. Give the %s again.",
		e.what, e.what)
}

// Unwrap returns the INVALID_STATE error and the cause.
func (e *unopenedError) Unwrap() []error {
	return []error{lending.NewError(lending.CodeInvalidState, "%s", e.Error()), e.cause}
}

// open decrypts a value that was sealed for a column of a subscription. All its errors
// are of type *unopenedError.
func (s *Service) open(uid uuid.UUID, sealed, column, what string) ([]byte, error) {
	plain, err := s.Keys.Open(sealed, sealTable, column, uid.String())
	if err == nil {
		return plain, nil
	}
	unopened := &unopenedError{what: what, cause: err}
	if missing, ok := errors.AsType[*secret.UnknownKeyError](err); ok {
		unopened.key = missing.ID
	}
	return nil, unopened
}

// OpenHeaders returns the headers, or an *unopenedError.
func (s *Service) OpenHeaders(uid uuid.UUID, sealed *string) ([]sender.Header, error) {
	const what = "set of custom headers"
	if sealed == nil {
		return nil, nil
	}
	plain, err := s.open(uid, *sealed, sealHeaders, what)
	if err != nil {
		return nil, err
	}
	var headers []sender.Header
	if err := json.Unmarshal(plain, &headers); err != nil {
		return nil, &unopenedError{what: what, cause: err}
	}
	return headers, nil
}

// configure copies the settings into the row, except the scheme and its secret.
func (s *Service) configure(row *Row, settings Settings) error {
	row.URL, row.Events, row.Merchants = settings.URL, settings.Events, settings.Merchants
	row.Rate, row.Watch, row.Options = settings.Rate, settings.Watch, settings.Options
	row.HeadersSealed = nil
	if len(settings.Headers) == 0 {
		return nil
	}
	plain, err := json.Marshal(settings.Headers)
	if err != nil {
		return fmt.Errorf("writing the headers of subscription %s: %w", row.UID, err)
	}
	row.HeadersSealed = new(s.Keys.Seal(plain, sealTable, sealHeaders, row.UID.String()))
	return nil
}

// sealSecret returns nil if there is no secret.
func (s *Service) sealSecret(uid uuid.UUID, value secret.String) *string {
	if value.IsZero() {
		return nil
	}
	return new(s.Keys.Seal([]byte(value.Reveal()), sealTable, sealSecret, uid.String()))
}

// OpenSecret returns the secret, the zero value if there is none, or an *unopenedError.
func (s *Service) OpenSecret(uid uuid.UUID, sealed *string) (secret.String, error) {
	if sealed == nil {
		return secret.String{}, nil
	}
	plain, err := s.open(uid, *sealed, sealSecret, "secret")
	if err != nil {
		return secret.String{}, err
	}
	return secret.New(string(plain)), nil
}

// The conditions that load appends after the identifier: whether a deleted subscription
// is found, and whether the row is locked against changes by others.
const (
	anyState   = ``
	notDeleted = ` AND s.state <> 'deleted'`
	forChange  = notDeleted + ` FOR NO KEY UPDATE OF s`
)

// load returns the row of a subscription, or NOT_FOUND.
func load(ctx context.Context, db sqlx.QueryerContext, uid uuid.UUID, which string) (Row, error) {
	var row Row
	err := sqlx.GetContext(ctx, db, &row,
		`SELECT `+columns+` FROM subscriptions s WHERE s.subscription_uid = $1`+which, uid)
	return row, postgres.RowError(err, NotFound(uid), "loading subscription %s", uid)
}

// Lock loads a subscription for a change, or returns NOT_FOUND, also for a deleted one.
func Lock(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (Row, error) {
	return load(ctx, tx, uid, forChange)
}

// NotFound is the error that no subscription has the id.
func NotFound(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no subscription has the id %s", uid)
}

// Save writes a subscription's configuration and the version for it.
func Save(ctx context.Context, tx *postgres.Tx, row Row, by Edit) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO subscriptions (subscription_uid, partner_uid, url, auth, secret_sealed,
		                           previous_sealed, previous_until, headers_sealed, events,
		                           all_merchants, state, version, created_at, updated_at, rate,
		                           failing_minutes, failing_events, on_failing, alert_email,
		                           name, retry, standard)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, nullif($15, 0),
		        nullif($16, 0), nullif($17, 0), CASE WHEN $18 THEN 'pause' ELSE 'continue' END, $19,
		        $20, $21, $22)
		ON CONFLICT (subscription_uid) DO UPDATE
		   SET url = excluded.url, auth = excluded.auth, secret_sealed = excluded.secret_sealed,
		       previous_sealed = excluded.previous_sealed,
		       previous_until = excluded.previous_until, headers_sealed = excluded.headers_sealed,
		       events = excluded.events, all_merchants = excluded.all_merchants,
		       state = excluded.state, version = excluded.version, rate = excluded.rate,
		       failing_minutes = excluded.failing_minutes,
		       failing_events = excluded.failing_events, on_failing = excluded.on_failing,
		       alert_email = excluded.alert_email, name = excluded.name,
		       retry = excluded.retry, standard = excluded.standard,
		       updated_at = excluded.updated_at`,
		row.UID, row.PartnerUID, row.URL, string(row.Auth), row.SecretSealed,
		row.PreviousSealed, row.PreviousUntil, row.HeadersSealed, row.Events,
		len(row.Merchants) == 0, string(row.State), row.Version, row.CreatedAt, row.UpdatedAt,
		row.Rate, row.Watch.FailingMinutes, row.Watch.FailingEvents, row.Watch.Pause,
		row.Watch.AlertEmail, row.Name, row.Retry, row.Standard)
	if err != nil {
		return fmt.Errorf("saving subscription %s: %w", row.UID, err)
	}
	if err := saveMerchants(ctx, tx, row); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO subscription_versions (subscription_uid, version, url, auth, headers_sealed,
		                                   events, merchant_uids, change, changed_by, changed_at,
		                                   state, reason, rate, health_rules, name, retry,
		                                   standard)
		VALUES ($1, $2, $3, $4, $5, $6, $7::uuid[], $8, $9, $10, $11, $12, nullif($13, 0),
		        $14, $15, $16, $17)`,
		row.UID, row.Version, row.URL, string(row.Auth), row.HeadersSealed,
		row.Events, row.Merchants, by.What, by.By, tx.Now, string(row.State), by.reason, row.Rate,
		row.Watch.words(), row.Name, row.Retry, row.Standard)
	if err != nil {
		return fmt.Errorf("saving version %d of subscription %s: %w", row.Version, row.UID, err)
	}
	return nil
}

// saveMerchants returns VALIDATION_ERROR for a merchant that is not the partner's.
func saveMerchants(ctx context.Context, tx *postgres.Tx, row Row) error {
	var strange []string
	err := tx.SelectContext(ctx, &strange, `
		SELECT uid
		  FROM unnest($1::uuid[]) AS uid
		 WHERE NOT EXISTS (
		           SELECT 1
		             FROM merchants
		            WHERE merchant_uid = uid
		              AND partner_uid = $2)`, row.Merchants, row.PartnerUID)
	if err != nil {
		return fmt.Errorf("checking the merchants of subscription %s: %w", row.UID, err)
	}
	var errs lending.FieldErrors
	for _, uid := range strange {
		errs.Add("merchant", `"merchant" %s is not a merchant of the partner`, uid)
	}
	if err := errs.Err(); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		DELETE FROM subscription_merchants
		 WHERE subscription_uid = $1
		   AND merchant_uid <> ALL ($2::uuid[])`, row.UID, row.Merchants)
	if err != nil {
		return fmt.Errorf("clearing the merchants of subscription %s: %w", row.UID, err)
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO subscription_merchants (subscription_uid, merchant_uid, partner_uid)
		SELECT $1, unnest($2::uuid[]), $3
		    ON CONFLICT DO NOTHING`, row.UID, row.Merchants, row.PartnerUID)
	if err != nil {
		return fmt.Errorf("saving the merchants of subscription %s: %w", row.UID, err)
	}
	return nil
}
