package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// DefaultOverlap is for how long a rotated signing secret still signs beside
// the new one.
const DefaultOverlap = 24 * time.Hour

// The bounds of a secret that is brought along instead of generated.
const (
	minSecret = 8
	maxSecret = 512
)

// secretPrefix marks generated secrets, so that one that leaks is recognised.
const secretPrefix = "whsec_"

// Subscribe creates a subscription of the partner and returns it with its
// secret, which is generated unless the settings bring one, and which is shown
// nowhere else. by names who asked.
//
// Errors: VALIDATION_ERROR naming every wrong setting, NOT_FOUND for an
// unknown partner.
func (s *Service) Subscribe(
	ctx context.Context, tx *postgres.Tx, partnerUID uuid.UUID, settings Settings, by string,
) (Subscription, secret.String, error) {
	value, err := s.check(&settings)
	if err != nil {
		return Subscription{}, secret.String{}, err
	}
	row := subscriptionRow{
		UID:        postgres.NewUID(tx.Now),
		PartnerUID: partnerUID,
		URL:        settings.URL,
		Auth:       settings.Auth,
		Events:     settings.Events,
		Merchants:  uidTexts(settings.Merchants),
		State:      StateActive,
		Version:    1,
		CreatedAt:  tx.Now,
		UpdatedAt:  tx.Now,
	}
	row.SecretSealed = s.sealSecret(row.UID, value)
	if row.HeadersSealed, err = s.sealHeaders(row.UID, settings.Headers); err != nil {
		return Subscription{}, secret.String{}, err
	}
	err = save(ctx, tx, row, by, "created")
	if postgres.IsForeignKey(err, "subscriptions_partner_uid_fkey") {
		return Subscription{}, secret.String{}, lending.NewError(lending.CodeNotFound,
			"no partner has the id %s", partnerUID)
	}
	if err != nil {
		return Subscription{}, secret.String{}, err
	}
	subscription, err := s.subscription(row)
	return subscription, value, err
}

// check validates and normalises settings and returns the secret in force.
func (s *Service) check(settings *Settings) (secret.String, error) {
	var faults lending.Faults
	parsed, err := s.Policy.CheckURL(settings.URL)
	faults.Merge(err)
	if err == nil {
		settings.URL = parsed.String()
	}
	checkEvents(&faults, settings.Events)
	slices.Sort(settings.Events)
	settings.Events = slices.Compact(settings.Events)
	value := checkSecret(&faults, settings.Auth, settings.Secret)
	headers, err := CheckHeaders(settings.Headers)
	faults.Merge(err)
	settings.Headers = headers
	return value, faults.Err()
}

// checkSecret returns the secret to use under the scheme: none, the one that
// was brought along, or a new one.
func checkSecret(faults *lending.Faults, auth Auth, brought secret.String) secret.String {
	switch auth {
	case AuthNone:
		if !brought.IsZero() {
			faults.Add("secret", `"secret" has no use with "auth" none`)
		}
		return secret.String{}
	case AuthHMAC, AuthBearer:
	default:
		faults.Add("auth", `"auth" must be none, hmac or bearer`)
		return secret.String{}
	}
	if brought.IsZero() {
		return secret.NewToken(secretPrefix)
	}
	text := brought.Reveal()
	if len(text) < minSecret || len(text) > maxSecret {
		faults.Add("secret", `"secret" must be %d to %d characters long`, minSecret, maxSecret)
	}
	for _, char := range text {
		if char <= ' ' || char > '~' {
			faults.Add("secret", `"secret" must be visible ASCII characters without spaces`)
			break
		}
	}
	return brought
}

// Amend changes settings of a subscription and makes a new version of it. A
// changed secret is returned, else the zero one.
//
// A new signing secret leaves the former one in force beside it for the
// overlap; a bearer token has none, because a request carries only one.
//
// Errors: NOT_FOUND, VALIDATION_ERROR naming every wrong setting.
func (s *Service) Amend(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, patch Patch, by string,
) (Subscription, secret.String, error) {
	row, err := lockSubscription(ctx, tx, uid)
	if err != nil {
		return Subscription{}, secret.String{}, err
	}
	value, change, err := s.amend(tx.Now, &row, patch)
	if err != nil {
		return Subscription{}, secret.String{}, err
	}
	row.Version++
	row.UpdatedAt = tx.Now
	if err := save(ctx, tx, row, by, change); err != nil {
		return Subscription{}, secret.String{}, err
	}
	subscription, err := s.subscription(row)
	return subscription, value, err
}

// amend applies the patch to the row and tells what changed.
func (s *Service) amend(
	now time.Time, row *subscriptionRow, patch Patch,
) (secret.String, string, error) {
	current, err := s.subscription(*row)
	if err != nil {
		return secret.String{}, "", err
	}
	settings := patch.over(current)
	rotate := patch.Secret != nil || settings.Auth != current.Auth
	if !rotate && settings.Auth != AuthNone {
		// The stored secret stays; check must neither miss nor generate one.
		if settings.Secret, err = s.openSecret(row.UID, row.SecretSealed); err != nil {
			return secret.String{}, "", err
		}
	}
	value, err := s.check(&settings)
	if err != nil {
		return secret.String{}, "", err
	}
	row.URL, row.Events, row.Merchants = settings.URL, settings.Events, uidTexts(settings.Merchants)
	if row.HeadersSealed, err = s.sealHeaders(row.UID, settings.Headers); err != nil {
		return secret.String{}, "", err
	}
	if !rotate {
		return secret.String{}, "changed", nil
	}
	s.rotate(now, row, settings.Auth, value, patch.Overlap)
	return value, "secret rotated", nil
}

// rotate puts a new secret in force.
func (s *Service) rotate(
	now time.Time, row *subscriptionRow, auth Auth, value secret.String, overlap time.Duration,
) {
	row.PreviousSealed, row.PreviousUntil = nil, nil
	if row.Auth == AuthHMAC && auth == AuthHMAC && overlap > 0 {
		until := now.Add(overlap)
		row.PreviousSealed, row.PreviousUntil = row.SecretSealed, &until
	}
	row.Auth = auth
	row.SecretSealed = s.sealSecret(row.UID, value)
}

// over lays the patch over the current configuration.
func (p Patch) over(current Subscription) Settings {
	settings := Settings{
		URL:       current.URL,
		Auth:      current.Auth,
		Events:    current.Events,
		Merchants: current.Merchants,
		Headers:   current.Headers,
	}
	if p.URL != nil {
		settings.URL = *p.URL
	}
	if p.Auth != nil {
		settings.Auth = *p.Auth
	}
	if p.Secret != nil {
		settings.Secret = *p.Secret
	}
	if p.Events != nil {
		settings.Events = p.Events
	}
	if p.Merchants != nil {
		settings.Merchants = p.Merchants
	}
	if p.Headers != nil {
		settings.Headers = *p.Headers
	}
	return settings
}

// Subscription returns one subscription, deleted ones included, or NOT_FOUND.
func (s *Service) Subscription(ctx context.Context, uid uuid.UUID) (Subscription, error) {
	var row subscriptionRow
	err := s.DB.GetContext(ctx, &row,
		`SELECT `+subscriptionColumns+` FROM subscriptions s WHERE s.subscription_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return Subscription{}, errNoSubscription(uid)
	}
	if err != nil {
		return Subscription{}, fmt.Errorf("loading subscription %s: %w", uid, err)
	}
	return s.subscription(row)
}

// SubscriptionFilter narrows a list of subscriptions; a zero field does not.
type SubscriptionFilter struct {
	PartnerUID uuid.UUID
	State      State
	Cursor     postgres.Cursor
	// Limit is from 1 to 500.
	Limit int
}

// Subscriptions returns one page of the subscriptions that are not deleted,
// newest first.
func (s *Service) Subscriptions(
	ctx context.Context, filter SubscriptionFilter,
) ([]Subscription, postgres.Cursor, error) {
	var partner *uuid.UUID
	if filter.PartnerUID != uuid.Nil {
		partner = &filter.PartnerUID
	}
	var at *time.Time
	if !filter.Cursor.IsZero() {
		at = &filter.Cursor.At
	}
	var rows []subscriptionRow
	err := s.DB.SelectContext(ctx, &rows, `
		SELECT `+subscriptionColumns+`
		  FROM subscriptions s
		 WHERE s.state <> 'deleted'
		   AND ($1::uuid IS NULL OR s.partner_uid = $1)
		   AND ($2 = '' OR s.state = $2)
		   AND ($3::timestamptz IS NULL OR (s.created_at, s.subscription_uid) < ($3, $4))
		 ORDER BY s.created_at DESC, s.subscription_uid DESC
		 LIMIT $5`, partner, string(filter.State), at, filter.Cursor.UID, filter.Limit+1)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing subscriptions: %w", err)
	}
	rows, next := postgres.Page(rows, filter.Limit, func(row subscriptionRow) postgres.Cursor {
		return postgres.Cursor{At: row.CreatedAt, UID: row.UID}
	})
	subscriptions := make([]Subscription, 0, len(rows))
	for _, row := range rows {
		subscription, err := s.subscription(row)
		if err != nil {
			return nil, postgres.Cursor{}, err
		}
		subscriptions = append(subscriptions, subscription)
	}
	return subscriptions, next, nil
}
