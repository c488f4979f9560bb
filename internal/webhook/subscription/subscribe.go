package subscription

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// The bounds of a secret that is given rather than generated, in bytes. Older ones may be
// shorter or longer.
const (
	minSecret = 16
	maxSecret = 256
)

// prefixOf returns the prefix of generated secrets, so that a leaked one is recognised.
func prefixOf(auth sender.Auth) string {
	if auth == sender.AuthBearer {
		return "whtok_"
	}
	return "whsec_"
}

// Subscribe creates a subscription of the partner and returns it with its secret, which
// is generated unless the settings contain one, and which is shown nowhere else. by names
// who asked.
//
// Errors: VALIDATION_ERROR naming every wrong setting, NOT_FOUND for an
// unknown partner.
func (s *Service) Subscribe(
	ctx context.Context, tx *postgres.Tx, partnerUID uuid.UUID, settings Settings, by string,
) (Subscription, secret.String, error) {
	value, err := s.checkNew(&settings)
	if err != nil {
		return Subscription{}, secret.String{}, err
	}
	row := Row{Subscription: Subscription{
		UID: postgres.NewUID(tx.Now), PartnerUID: partnerUID, Auth: settings.Auth,
		State: StateActive, Version: 1, CreatedAt: tx.Now, UpdatedAt: tx.Now,
	}}
	row.SecretSealed = s.sealSecret(row.UID, value)
	if err := s.configure(&row, settings); err != nil {
		return Subscription{}, secret.String{}, err
	}
	err = Save(ctx, tx, row, Edit{By: by, What: "created"})
	if postgres.IsForeignKey(err, "subscriptions_partner_uid_fkey") {
		return Subscription{}, secret.String{}, lending.NewError(lending.CodeNotFound,
			"no partner has the id %s", partnerUID)
	}
	if err != nil {
		return Subscription{}, secret.String{}, err
	}
	return s.subscription(row), value, nil
}

// CheckNew returns the errors that Subscribe would return about settings:
// VALIDATION_ERROR naming every wrong one.
func (s *Service) CheckNew(settings Settings) error {
	_, err := s.checkNew(&settings)
	return err
}

func (s *Service) checkNew(settings *Settings) (secret.String, error) {
	headers, err := keepHeaders(settings.Headers, nil)
	if err != nil {
		return secret.String{}, err
	}
	settings.Headers = headers
	return s.check(settings, true)
}

// check validates and normalises settings and returns the secret to put in force; without
// rotate the current one stays and none is returned.
func (s *Service) check(settings *Settings, rotate bool) (secret.String, error) {
	var errs lending.FieldErrors
	parsed, err := s.Policy.CheckURL(settings.URL)
	errs.Merge(err)
	if err == nil {
		settings.URL = parsed.String()
	}
	settings.Events = slices.Compact(slices.Sorted(slices.Values(settings.Events)))
	checkEvents(&errs, settings.Events)
	if settings.Rate < 0 || settings.Rate > MaxRate {
		errs.Add("rate", `"rate" must be from 1 to %d requests per second, or 0 for no limit`, MaxRate)
	}
	settings.Watch.check(&errs)
	if settings.Name = strings.TrimSpace(settings.Name); settings.Name != "" {
		errs.Text("name", settings.Name, MaxName)
	}
	for _, delay := range settings.Retry {
		if settings.Retry.IsSet() && (delay < minDelay || delay > maxDelay) {
			errs.Add("retry", `"retry" must be two delays from 1s to 72h, such as 5m,2h`)
			break
		}
	}
	if settings.Standard && settings.Auth != sender.AuthHMAC {
		errs.Add("standard", `"standard" requires "auth" hmac, since it adds a second signature`)
	}
	// All merchants are an empty list rather than nil, in JSON too.
	settings.Merchants = slices.AppendSeq([]uuid.UUID{}, slices.Values(settings.Merchants))
	slices.SortFunc(settings.Merchants, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	settings.Merchants = slices.Compact(settings.Merchants)
	var value secret.String
	if rotate {
		value = checkSecret(&errs, settings.Auth, settings.Secret)
	}
	headers, err := sender.CheckHeaders(settings.Headers)
	errs.Merge(err)
	settings.Headers = headers
	return value, errs.Err()
}

// checkSecret returns the secret to use under the scheme: none, the one that was given,
// or a new one. A token must fit into a header. A signing secret may be any text, but
// without surrounding spaces, which forms and comparisons trim.
func checkSecret(errs *lending.FieldErrors, auth sender.Auth, brought secret.String) secret.String {
	switch auth {
	case sender.AuthNone:
		if !brought.IsZero() {
			errs.Add("secret", `"secret" is not used with "auth" none; leave it out`)
		}
		return secret.String{}
	case sender.AuthHMAC, sender.AuthBearer:
	default:
		errs.Add("auth", `"auth" must be none, hmac or bearer`)
		return secret.String{}
	}
	if brought.IsZero() {
		return secret.NewToken(prefixOf(auth))
	}
	text := brought.Reveal()
	if len(text) < minSecret || len(text) > maxSecret {
		errs.Add("secret", `"secret" must be %d to %d bytes long`, minSecret, maxSecret)
	}
	isInvisible := func(char rune) bool { return char <= ' ' || char > '~' }
	switch {
	case auth == sender.AuthBearer && strings.ContainsFunc(text, isInvisible):
		errs.Add("secret", `"secret" must be visible ASCII characters without spaces`)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		errs.Add("secret", `"secret" must be text without control characters`)
	case strings.TrimSpace(text) != text:
		errs.Add("secret", `"secret" must not begin or end with a space`)
	}
	return brought
}
