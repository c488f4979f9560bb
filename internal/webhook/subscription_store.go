package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// The table and columns that a sealed value is bound to: a ciphertext moved to
// another row or column does not open.
const (
	sealTable   = "subscriptions"
	sealSecret  = "secret_sealed"
	sealHeaders = "headers_sealed"
)

// subscriptionRow is a subscription as the tables hold it.
type subscriptionRow struct {
	UID            uuid.UUID      `db:"subscription_uid"`
	PartnerUID     uuid.UUID      `db:"partner_uid"`
	URL            string         `db:"url"`
	Auth           Auth           `db:"auth"`
	SecretSealed   *string        `db:"secret_sealed"`
	PreviousSealed *string        `db:"previous_sealed"`
	PreviousUntil  *time.Time     `db:"previous_until"`
	HeadersSealed  *string        `db:"headers_sealed"`
	Events         pq.StringArray `db:"events"`
	Merchants      pq.StringArray `db:"merchant_uids"`
	Rate           *int           `db:"rate"`
	State          State          `db:"state"`
	Version        int            `db:"version"`
	CreatedAt      time.Time      `db:"created_at"`
	UpdatedAt      time.Time      `db:"updated_at"`
}

const subscriptionColumns = `
	s.subscription_uid,
	s.partner_uid,
	s.url,
	s.auth,
	s.secret_sealed,
	s.previous_sealed,
	s.previous_until,
	s.headers_sealed,
	s.events,
	ARRAY (SELECT m.merchant_uid::text
	         FROM subscription_merchants m
	        WHERE m.subscription_uid = s.subscription_uid
	        ORDER BY m.merchant_uid) AS merchant_uids,
	s.rate,
	s.state,
	s.version,
	s.created_at,
	s.updated_at`

// subscription opens the sealed headers of a row, if the key is there. Secrets stay
// sealed.
func (s *Service) subscription(row subscriptionRow) (Subscription, error) {
	merchants, err := parseUIDs(row.Merchants)
	if err != nil {
		return Subscription{}, err
	}
	headers, err := s.openHeaders(row.UID, row.HeadersSealed)
	unknown := errors.Is(err, secret.ErrUnknownKey)
	if err != nil && !unknown {
		return Subscription{}, err
	}
	return Subscription{
		UID:           row.UID,
		PartnerUID:    row.PartnerUID,
		URL:           row.URL,
		Auth:          row.Auth,
		Events:        row.Events,
		Merchants:     merchants,
		Headers:       headers,
		Rate:          orZero(row.Rate),
		State:         row.State,
		Version:       row.Version,
		PreviousUntil: row.PreviousUntil,
		CreatedAt:     row.CreatedAt,
		UpdatedAt:     row.UpdatedAt,

		MissingKey:     s.missingKey(row),
		HeadersUnknown: unknown,
	}, nil
}

// missingKey is the id of a key that sending needs and that is not there.
func (s *Service) missingKey(row subscriptionRow) string {
	for _, sealed := range []*string{row.HeadersSealed, row.SecretSealed} {
		if sealed == nil {
			continue
		}
		if id, ok := secret.KeyID(*sealed); ok && !s.Keys.Has(id) {
			return id
		}
	}
	return ""
}

func (s *Service) openHeaders(uid uuid.UUID, sealed *string) ([]Header, error) {
	if sealed == nil {
		return nil, nil
	}
	plain, err := s.Keys.Open(*sealed, sealTable, sealHeaders, uid.String())
	if err != nil {
		return nil, fmt.Errorf("opening the headers of subscription %s: %w", uid, err)
	}
	var headers []Header
	if err := json.Unmarshal(plain, &headers); err != nil {
		return nil, fmt.Errorf("reading the headers of subscription %s: %w", uid, err)
	}
	return headers, nil
}

func (s *Service) sealHeaders(uid uuid.UUID, headers []Header) (*string, error) {
	if len(headers) == 0 {
		return nil, nil //nolint:nilnil // a column that is NULL
	}
	plain, err := json.Marshal(headers)
	if err != nil {
		return nil, fmt.Errorf("writing the headers of subscription %s: %w", uid, err)
	}
	sealed := s.Keys.Seal(plain, sealTable, sealHeaders, uid.String())
	return &sealed, nil
}

// sealSecret returns nil for no secret.
func (s *Service) sealSecret(uid uuid.UUID, value secret.String) *string {
	if value.IsZero() {
		return nil
	}
	sealed := s.Keys.Seal([]byte(value.Reveal()), sealTable, sealSecret, uid.String())
	return &sealed
}

func (s *Service) openSecret(uid uuid.UUID, sealed *string) (secret.String, error) {
	if sealed == nil {
		return secret.String{}, nil
	}
	plain, err := s.Keys.Open(*sealed, sealTable, sealSecret, uid.String())
	if err != nil {
		return secret.String{}, fmt.Errorf("opening the secret of subscription %s: %w", uid, err)
	}
	return secret.New(string(plain)), nil
}

// lockSubscription loads a subscription for a change, or answers NOT_FOUND.
// A deleted one is not found either.
func lockSubscription(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
) (subscriptionRow, error) {
	var row subscriptionRow
	err := tx.GetContext(ctx, &row, `
		SELECT `+subscriptionColumns+`
		  FROM subscriptions s
		 WHERE s.subscription_uid = $1
		   AND s.state <> 'deleted'
		   FOR NO KEY UPDATE OF s`, uid)
	if postgres.IsNoRows(err) {
		return subscriptionRow{}, errNoSubscription(uid)
	}
	if err != nil {
		return subscriptionRow{}, fmt.Errorf("locking subscription %s: %w", uid, err)
	}
	return row, nil
}

func errNoSubscription(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no subscription has the id %s", uid)
}

// save writes a subscription's configuration and its version.
func save(ctx context.Context, tx *postgres.Tx, row subscriptionRow, by edit) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO subscriptions (subscription_uid, partner_uid, url, auth, secret_sealed,
		                           previous_sealed, previous_until, headers_sealed, events,
		                           all_merchants, state, version, created_at, updated_at, rate)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (subscription_uid) DO UPDATE
		   SET url = excluded.url,
		       auth = excluded.auth,
		       secret_sealed = excluded.secret_sealed,
		       previous_sealed = excluded.previous_sealed,
		       previous_until = excluded.previous_until,
		       headers_sealed = excluded.headers_sealed,
		       events = excluded.events,
		       all_merchants = excluded.all_merchants,
		       state = excluded.state,
		       version = excluded.version,
		       rate = excluded.rate,
		       updated_at = excluded.updated_at`,
		row.UID, row.PartnerUID, row.URL, string(row.Auth), row.SecretSealed,
		row.PreviousSealed, row.PreviousUntil, row.HeadersSealed, row.Events,
		len(row.Merchants) == 0, string(row.State), row.Version, row.CreatedAt, row.UpdatedAt,
		row.Rate)
	if err != nil {
		return fmt.Errorf("saving subscription %s: %w", row.UID, err)
	}
	if err := saveMerchants(ctx, tx, row); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO subscription_versions (subscription_uid, version, url, auth, headers_sealed,
		                                   events, merchant_uids, change, changed_by, changed_at,
		                                   state, reason, rate, health_rules)
		VALUES ($1, $2, $3, $4, $5, $6, $7::uuid[], $8, $9, $10, $11, $12, $13, (
		            SELECT concat_ws(', ',
		                       CASE WHEN on_failing = 'pause' THEN 'pauses when it fails' END,
		                       'fails after ' || failing_minutes || ' minutes',
		                       'fails after ' || failing_events || ' events',
		                       'alerts ' || nullif(alert_email, ''))
		              FROM subscriptions
		             WHERE subscription_uid = $1))`,
		row.UID, row.Version, row.URL, string(row.Auth), row.HeadersSealed,
		row.Events, row.Merchants, by.what, by.by, tx.Now, string(row.State), by.reason, row.Rate)
	if err != nil {
		return fmt.Errorf("saving version %d of subscription %s: %w", row.Version, row.UID, err)
	}
	return nil
}

func saveMerchants(ctx context.Context, tx *postgres.Tx, row subscriptionRow) error {
	if err := checkMerchants(ctx, tx, row); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `
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

// checkMerchants answers VALIDATION_ERROR for a merchant that is not the
// partner's.
func checkMerchants(ctx context.Context, tx *postgres.Tx, row subscriptionRow) error {
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
	var faults lending.Faults
	for _, uid := range strange {
		faults.Add("merchant", `"merchant" %s is not a merchant of the partner`, uid)
	}
	return faults.Err()
}

func parseUIDs(texts []string) ([]uuid.UUID, error) {
	uids := make([]uuid.UUID, 0, len(texts))
	for _, text := range texts {
		uid, err := uuid.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("reading identifier %q: %w", text, err)
		}
		uids = append(uids, uid)
	}
	return uids, nil
}

func uidTexts(uids []uuid.UUID) pq.StringArray {
	texts := make(pq.StringArray, 0, len(uids))
	for _, uid := range uids {
		texts = append(texts, uid.String())
	}
	return texts
}
