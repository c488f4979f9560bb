package subscription

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// Version is a configuration that was in force, and who made it. Secrets are not part of
// it: older versions have no secret of their own.
type Version struct {
	Number    int       `db:"version"`
	ChangedBy string    `db:"changed_by"`
	ChangedAt time.Time `db:"changed_at"`
	// Change describes what was done, such as "created", "url, secret changed" or "paused".
	Change string         `db:"change"`
	Reason string         `db:"reason"`
	URL    string         `db:"url"`
	Auth   sender.Auth    `db:"auth"`
	Events pq.StringArray `db:"events"`
	// Merchants is empty for all.
	Merchants postgres.UIDs `db:"merchant_uids"`
	// Headers hold the values in clear; Mask them before display.
	Headers []sender.Header `db:"-"`
	// HeadersUnknown means that they cannot be decrypted: Headers is empty then.
	HeadersUnknown bool `db:"-"`
	// Rate is in requests per second, 0 for no limit.
	Rate int `db:"rate"`
	// Watch holds its health rules; nil if the release that made the version did not store
	// them.
	Watch *Watch `db:"-"`
	// Options are nil if that release did not store them.
	Options *Options `db:"-"`
	// State is empty if the release that made the version did not store it.
	State State `db:"state"`

	// sealed are the headers as they are stored.
	sealed string
}

// Versions returns every version of a subscription, newest first, also of deleted ones.
// Error: NOT_FOUND.
func (s *Service) Versions(ctx context.Context, uid uuid.UUID) ([]Version, error) {
	versions, err := s.versions(ctx, s.DB, uid)
	if err == nil && len(versions) == 0 {
		return nil, NotFound(uid)
	}
	return versions, err
}

func (s *Service) versions(
	ctx context.Context, from postgres.Querier, uid uuid.UUID,
) ([]Version, error) {
	var rows []struct {
		Version
		HeadersSealed *string `db:"headers_sealed"`
		HealthRules   *string `db:"health_rules"`
		Name          *string `db:"name"`
		Retry         Delays  `db:"retry"`
		Standard      bool    `db:"standard"`
	}
	err := from.SelectContext(ctx, &rows, `
		SELECT version, changed_by, changed_at, change, reason, url, auth, events, merchant_uids,
		       headers_sealed, coalesce(rate, 0) AS rate, health_rules, coalesce(state, '') AS state,
		       name, retry, coalesce(standard, false) AS standard
		  FROM subscription_versions
		 WHERE subscription_uid = $1
		 ORDER BY version DESC`, uid)
	if err != nil {
		return nil, fmt.Errorf("loading the versions of subscription %s: %w", uid, err)
	}
	versions := make([]Version, 0, len(rows))
	for _, row := range rows {
		version := row.Version
		version.Headers, err = s.OpenHeaders(uid, row.HeadersSealed)
		version.HeadersUnknown, version.sealed = err != nil, postgres.OrZero(row.HeadersSealed)
		if row.Name != nil {
			version.Options = &Options{Name: *row.Name, Retry: row.Retry, Standard: row.Standard}
		}
		if row.HealthRules != nil {
			watch, err := readWatch(*row.HealthRules)
			if err != nil {
				return nil, fmt.Errorf("reading version %d: %w", version.Number, err)
			}
			version.Watch = &watch
		}
		versions = append(versions, version)
	}
	return versions, nil
}

// pick returns the version of that number, or NOT_FOUND.
func pick(versions []Version, number int) (Version, error) {
	at := slices.IndexFunc(versions, func(v Version) bool { return v.Number == number })
	if at < 0 {
		return Version{}, lending.NewError(lending.CodeNotFound,
			"the subscription has no version %d", number)
	}
	return versions[at], nil
}

// rotated reports whether the version put another secret in force.
func (v Version) rotated() bool {
	_, list, found := strings.Cut(v.Change, ": ")
	if !found {
		list = v.Change
	}
	list, changed := strings.CutSuffix(list, " changed")
	return changed && slices.Contains(strings.Split(list, ", "), "secret")
}

// CompareVersions returns the differences from one version to another, in either order.
// Header values that may be credentials are masked, and for secrets it only says that
// they changed. Error: NOT_FOUND.
func (s *Service) CompareVersions(
	ctx context.Context, uid uuid.UUID, from, to int,
) (VersionDiff, error) {
	versions, err := s.Versions(ctx, uid)
	if err != nil {
		return VersionDiff{}, err
	}
	return compareVersions(versions, from, to)
}

// StaleError refuses a change that was based on a version which is no longer in force,
// and lists what somebody else changed since.
type StaleError struct {
	// Since compares the base with the current version.
	Since VersionDiff
	// By is who made the current version.
	By string
}

// Error says what to do.
func (e *StaleError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the refusal with the code INVALID_STATE.
func (e *StaleError) Unwrap() error {
	return lending.NewError(lending.CodeInvalidState,
		"%s changed the %s of this subscription meanwhile (version %d to %d); "+
			"review the current settings and make your change again",
		e.By, strings.Join(e.Since.Settings(), ", "), e.Since.From, e.Since.To)
}

// LockFrom is Lock for a change based on a version, 0 for any. Errors: NOT_FOUND,
// *StaleError if somebody changed the configuration since; a pause or a resumption in
// between does not matter.
func (s *Service) LockFrom(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, base int,
) (Row, error) {
	row, err := Lock(ctx, tx, uid)
	if err != nil || base == 0 || base == row.Version {
		return row, err
	}
	versions, err := s.versions(ctx, tx, uid)
	if err != nil {
		return Row{}, err
	}
	diff, err := compareVersions(versions, base, row.Version)
	if err != nil {
		return Row{}, err
	}
	diff.Changes = slices.DeleteFunc(diff.Changes, func(c SettingChange) bool {
		return c.Setting == SettingState
	})
	if len(diff.Changes) == 0 {
		return row, nil
	}
	moves := []string{
		string(StateActive), string(StateFailing), string(StatePaused), string(StateDeleted),
		ChangeRecovered, ChangePausedAfterFailing,
	}
	last := slices.IndexFunc(versions, func(v Version) bool {
		return !slices.Contains(moves, v.Change) // it changed a setting
	})
	return Row{}, &StaleError{Since: diff, By: versions[last].ChangedBy}
}

// Choice names the version to restore.
type Choice struct {
	Version int
	// Base is the version that the choice was based on, and Reason why it was made, as in a
	// Patch; both may be omitted.
	Base   int
	Reason string
	// Secret is put in force; the zero value keeps the current one.
	Secret secret.String
	// Headers replace values of the version's headers; NoHeaders leaves all of its headers
	// out.
	Headers   []sender.Header
	NoHeaders bool
}

// Restoration is the result of restoring a version.
type Restoration struct {
	Subscription Subscription
	// SecretKept means that the secret is unchanged: versions have none of their own.
	SecretKept bool
	// Secret is a new one if there was none to keep, else the zero value.
	Secret secret.String
}

// Restore makes a new version with the URL, the scheme, the headers, the events, the
// merchants, the rate and the health rules of an older one, checked by today's rules. The
// current secret stays unless the choice contains one; if there is none, or only a
// signing secret while the older version needs a token, a new one is generated. Restoring
// the current configuration makes no version.
//
// Errors: those of Amend, NOT_FOUND for the version, INVALID_STATE if its headers cannot
// be decrypted.
func (s *Service) Restore(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, choice Choice, by string,
) (Restoration, error) {
	row, err := s.LockFrom(ctx, tx, uid, choice.Base)
	if err != nil {
		return Restoration{}, err
	}
	versions, err := s.versions(ctx, tx, uid)
	if err != nil {
		return Restoration{}, err
	}
	old, err := pick(versions, choice.Version)
	if err != nil {
		return Restoration{}, err
	}
	patch, err := old.patch(choice)
	if err != nil {
		return Restoration{}, err
	}
	made, value, err := s.amendLocked(ctx, tx, row, patch, Edit{
		By: by, reason: choice.Reason, What: fmt.Sprintf("version %d restored", choice.Version),
	})
	return Restoration{
		Subscription: made, Secret: value,
		SecretKept: value.IsZero() && made.Auth != sender.AuthNone,
	}, err
}

// patch returns a patch that restores the version, as the choice says.
func (v Version) patch(choice Choice) (Patch, error) {
	merchants := v.Merchants
	if merchants == nil {
		merchants = []uuid.UUID{}
	}
	patch := Patch{
		URL: &v.URL, Auth: &v.Auth, Events: v.Events, Merchants: merchants, Headers: &[]sender.Header{},
		Rate: &v.Rate, Watch: v.Watch, Reason: choice.Reason, Overlap: DefaultOverlap,
		keepSecret: choice.Secret.IsZero(), stored: v.Headers,
	}
	if !choice.Secret.IsZero() {
		patch.Secret = &choice.Secret
	}
	if v.Options != nil {
		patch.Name, patch.Retry = &v.Options.Name, &v.Options.Retry
		patch.Standard = &v.Options.Standard
	}
	if choice.NoHeaders {
		return patch, nil
	}
	if v.HeadersUnknown {
		return Patch{}, lending.NewError(lending.CodeInvalidState,
			"the custom headers of version %d cannot be read; restore it without them, then set them",
			v.Number)
	}
	headers := allKept(v.Headers)
	var errs lending.FieldErrors
	for _, header := range choice.Headers {
		name := strings.ToLower(header.Name)
		at := slices.IndexFunc(headers, func(h sender.Header) bool { return h.Name == name })
		if at < 0 {
			errs.Add("header", "the version to restore has no header %q", header.Name)
			continue
		}
		headers[at] = header
	}
	patch.Headers = &headers
	return patch, errs.Err()
}
