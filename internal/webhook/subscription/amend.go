package subscription

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// DefaultOverlap is how long the previous signing secret still signs alongside the new
// one.
const DefaultOverlap = 24 * time.Hour

// MaxReason is the longest reason for a change or a re-send, in characters.
const MaxReason = 500

// Amend changes settings of a subscription and makes a new version of it, unless nothing
// changes. It returns the new secret if that changed, else the zero value.
//
// A new signing secret leaves the previous one in force alongside it for the overlap; a
// bearer token has no overlap, because a request carries only one.
//
// Errors: NOT_FOUND, VALIDATION_ERROR naming every wrong setting, *StaleError
// (INVALID_STATE) if the configuration changed since the patch's base, and INVALID_STATE
// naming the fields if the address changes to another scheme, host or port and stored
// credentials would be sent there.
func (s *Service) Amend(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, patch Patch, by string,
) (Subscription, secret.String, error) {
	row, err := s.LockFrom(ctx, tx, uid, patch.Base)
	if err != nil {
		return Subscription{}, secret.String{}, err
	}
	return s.amendLocked(ctx, tx, row, patch, Edit{By: by, reason: patch.Reason})
}

// Edit describes who makes a version and why.
type Edit struct {
	By, reason string
	// What begins the description of the version, such as "version 3 restored".
	What string
}

// amendLocked applies the patch to a subscription that the caller has locked.
func (s *Service) amendLocked(
	ctx context.Context, tx *postgres.Tx, row Row, patch Patch, by Edit,
) (Subscription, secret.String, error) {
	if err := CheckReason(patch.Reason); err != nil {
		return Subscription{}, secret.String{}, err
	}
	if patch.Overlap < 0 || patch.Overlap > secret.MaxOverlap {
		return Subscription{}, secret.String{}, lending.Invalid("overlap",
			`"overlap" must be from 0s to %dh`, int(secret.MaxOverlap.Hours()))
	}
	value, changes, err := s.amend(tx.Now, &row, patch)
	if err != nil {
		return Subscription{}, secret.String{}, err
	}
	if len(changes) > 0 {
		row.Version++
		row.UpdatedAt = tx.Now
		// In a form that rotated parses.
		by.What = strings.TrimPrefix(by.What+": "+strings.Join(changes, ", ")+" changed", ": ")
		if err := Save(ctx, tx, row, by); err != nil {
			return Subscription{}, secret.String{}, err
		}
		if slices.Contains(changes, "rate") {
			if err := s.Backlogs.rebook(ctx, tx, row.UID); err != nil {
				return Subscription{}, secret.String{}, err
			}
		}
	}
	subscription := s.subscription(row)
	if row.StoppedAt != nil && subscription.Unopened == "" {
		subscription.StoppedAt, err = nil, s.Backlogs.reopen(ctx, tx, row)
	}
	return subscription, value, err
}

// CheckReason returns VALIDATION_ERROR for a reason that is too long or not text.
func CheckReason(reason string) error {
	if reason == "" {
		return nil
	}
	var errs lending.FieldErrors
	errs.Text("reason", reason, MaxReason)
	return errs.Err()
}

// amend applies the patch to the row and returns the names of the settings that changed.
func (s *Service) amend(
	now time.Time, row *Row, patch Patch,
) (value secret.String, changes []string, err error) {
	current := s.subscription(*row)
	settings, value, err := s.after(current, patch)
	if err != nil {
		return secret.String{}, nil, err
	}
	rotate := patch.rotates(settings.Auth, current.Auth)
	if rotate && s.inForce(now, *row, settings.Auth, value, patch.Overlap) {
		value, rotate = secret.String{}, false
	}
	for i := range settings.Headers {
		settings.Headers[i].Kept = false // their values are filled in now
	}
	changes = settings.changes(current, rotate)
	if err := s.configure(row, settings); err != nil {
		return secret.String{}, nil, err
	}
	switch {
	case rotate:
		s.rotate(now, row, settings.Auth, value, patch.Overlap)
	case settings.Auth != current.Auth:
		row.Auth, row.PreviousSealed, row.PreviousUntil = settings.Auth, nil, nil
	}
	return value, changes, nil
}

// CheckAmend returns the errors of Amend about the settings of a patch to a configuration.
func (s *Service) CheckAmend(current Subscription, patch Patch) error {
	_, _, err := s.after(current, patch)
	return err
}

// after returns the settings that result from a patch, and the secret if it changes.
func (s *Service) after(
	current Subscription, patch Patch,
) (settings Settings, value secret.String, err error) {
	if patch.Headers == nil {
		if err := current.CheckHeaders(); err != nil {
			return Settings{}, secret.String{}, err
		}
	}
	settings = patch.over(current)
	rotate := patch.rotates(settings.Auth, current.Auth)
	stored := current.Headers
	if patch.stored != nil {
		stored = patch.stored
	}
	if settings.Headers, err = keepHeaders(settings.Headers, stored); err != nil {
		return Settings{}, secret.String{}, err
	}
	if value, err = s.check(&settings, rotate); err != nil {
		return Settings{}, secret.String{}, err
	}
	return settings, value, settings.checkMove(current, rotate)
}

// rotates reports whether the patch puts another secret in force. A signing secret never
// becomes a token, because a token is sent.
func (p Patch) rotates(wanted, now sender.Auth) bool {
	if p.keepSecret && wanted != sender.AuthNone && now != sender.AuthNone &&
		(wanted == now || wanted != sender.AuthBearer) {
		return false
	}
	return p.Secret != nil || wanted != now
}

// changes names the settings that differ from the current ones. Both must have been
// normalised by check.
func (s Settings) changes(current Subscription, rotate bool) []string {
	var names []string
	add := func(name string, changed bool) {
		if changed {
			names = append(names, name)
		}
	}
	add("url", s.URL != current.URL)
	add("auth", s.Auth != current.Auth)
	add("secret", rotate && s.Auth != sender.AuthNone)
	add("events", !slices.Equal(s.Events, current.Events))
	add("merchants", !slices.Equal(s.Merchants, current.Merchants))
	add("headers", !slices.Equal(s.Headers, current.Headers) || current.HeadersUnknown)
	add("rate", s.Rate != current.Rate)
	add("health rules", s.Watch != current.Watch)
	add("name", s.Name != current.Name)
	add("retries", s.Retry != current.Retry)
	add("Standard Webhooks", s.Standard != current.Standard)
	return names
}

// inForce reports whether a secret is the current one, given again, as after a lost
// response. Without an overlap, giving it again ends the overlap of the previous secret.
func (s *Service) inForce(
	now time.Time, row Row, auth sender.Auth, value secret.String, overlap time.Duration,
) bool {
	former, err := s.OpenSecret(row.UID, row.SecretSealed)
	ends := overlap == 0 && row.PreviousUntil != nil && now.Before(*row.PreviousUntil)
	return err == nil && auth == row.Auth && former.Equal(value) && !ends
}

// rotate puts a new secret in force. An old one that cannot be decrypted gets no overlap.
func (s *Service) rotate(
	now time.Time, row *Row, auth sender.Auth, value secret.String, overlap time.Duration,
) {
	_, err := s.OpenSecret(row.UID, row.SecretSealed)
	overlaps := row.Auth == sender.AuthHMAC && auth == sender.AuthHMAC && overlap > 0 && err == nil
	row.PreviousSealed, row.PreviousUntil = nil, nil
	if overlaps {
		row.PreviousSealed, row.PreviousUntil = row.SecretSealed, new(now.Add(overlap))
	}
	row.Auth = auth
	row.SecretSealed = s.sealSecret(row.UID, value)
}

// over applies the patch to the current configuration.
func (p Patch) over(current Subscription) Settings {
	settings := Settings{
		URL:       current.URL,
		Auth:      current.Auth,
		Events:    current.Events,
		Merchants: current.Merchants,
		Headers:   allKept(current.Headers),
		Rate:      current.Rate,
		Watch:     current.Watch,
		Options:   current.Options,
	}
	setUnlessNil(&settings.URL, p.URL)
	setUnlessNil(&settings.Auth, p.Auth)
	setUnlessNil(&settings.Secret, p.Secret)
	setUnlessNil(&settings.Headers, p.Headers)
	setUnlessNil(&settings.Rate, p.Rate)
	setUnlessNil(&settings.Watch, p.Watch)
	setUnlessNil(&settings.Name, p.Name)
	setUnlessNil(&settings.Retry, p.Retry)
	setUnlessNil(&settings.Standard, p.Standard)
	if p.Events != nil {
		settings.Events = p.Events
	}
	if p.Merchants != nil {
		settings.Merchants = p.Merchants
	}
	return settings
}

// setUnlessNil replaces a setting unless value is nil.
func setUnlessNil[T any](setting, value *T) {
	if value != nil {
		*setting = *value
	}
}

// MaxRate is the highest rate of a subscription, in requests per second.
const MaxRate = 1000
