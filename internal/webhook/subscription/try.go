package subscription

import (
	"context"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// Trial is a test of settings that are not saved.
type Trial struct {
	Settings Settings
	// UID is the subscription whose settings are being changed, the nil UUID for a new one.
	// Its secret is used if the scheme stays and no secret is given, its stored header
	// values where a header is Kept. Nothing stored is sent to another scheme, host or port.
	UID uuid.UUID
	// NewSecret means that saving would generate a secret.
	NewSecret bool
	// Kind is the event kind of the sample.
	Kind lending.EventKind
	// Claim, unless nil, is called right before the request is sent; its error ends the
	// trial.
	Claim func() error
}

// TrialResult holds what was sent and what was received.
type TrialResult struct {
	sender.Attempt
	// Body is the request body.
	Body []byte
	// Generated means that a signing secret or token was generated for the trial, so that
	// the endpoint cannot have known it.
	Generated bool
	// Secret is the generated one if saving would generate one, so that it can be saved as
	// it was tested; zero otherwise.
	Secret secret.String
}

// Try sends one marked sample event with settings that are not saved. Nothing is recorded
// except by the caller. It makes a request, so it belongs outside any transaction.
//
// Errors: VALIDATION_ERROR naming every wrong setting, NOT_FOUND, INVALID_STATE as
// for Amend.
func (s *Service) Try(ctx context.Context, trial Trial) (TrialResult, error) {
	sample, err := lending.SampleEvent(trial.Kind)
	if err != nil {
		return TrialResult{}, err
	}
	settings := trial.Settings
	value, err := s.prepare(ctx, trial, &settings)
	if err != nil {
		return TrialResult{}, err
	}
	now := s.DB.Now()
	body, err := sample.Render(now)
	if err != nil {
		return TrialResult{}, err
	}
	if trial.Claim != nil {
		if err := trial.Claim(); err != nil {
			return TrialResult{}, err
		}
	}
	attempt := s.Sender.Send(ctx, sender.Request{
		URL: settings.URL, Event: sender.TestIdentity(trial.Kind, postgres.NewUID(now).String()),
		Delivery: postgres.NewUID(now).String(), Number: 1, Test: true,
		Headers: settings.Headers, Auth: settings.Auth, Secret: value.secret, Body: body,
		Standard: settings.Standard, At: now,
	})
	result := TrialResult{Attempt: attempt, Body: body, Generated: value.generated}
	if value.new {
		result.Secret = value.secret
	}
	return result, nil
}

// trialSecret is the secret of a trial.
type trialSecret struct {
	secret secret.String
	// generated means that it was generated, new that it could be saved.
	generated, new bool
}

// prepare checks the settings of a trial, fills in the stored values of Kept headers, and
// returns the secret to use.
func (s *Service) prepare(
	ctx context.Context, trial Trial, settings *Settings,
) (trialSecret, error) {
	var row Row
	var current Subscription
	var err error
	if trial.UID != uuid.Nil {
		if row, err = load(ctx, s.DB, trial.UID, notDeleted); err != nil {
			return trialSecret{}, err
		}
		current = s.subscription(row)
	}
	if settings.Headers, err = keepHeaders(settings.Headers, current.Headers); err != nil {
		return trialSecret{}, err
	}
	keep := trial.UID != uuid.Nil && !trial.NewSecret && settings.Secret.IsZero() &&
		settings.Auth == current.Auth && settings.Auth != sender.AuthNone
	value, err := s.check(settings, !keep)
	if err != nil {
		return trialSecret{}, err
	}
	if trial.UID != uuid.Nil {
		if err := settings.checkMove(current, !keep); err != nil {
			return trialSecret{}, err
		}
	}
	switch {
	case !keep:
		generated := settings.Auth != sender.AuthNone && settings.Secret.IsZero()
		return trialSecret{value, generated, generated}, nil
	case !SameOrigin(current.URL, settings.URL):
		return trialSecret{secret: secret.NewToken(prefixOf(settings.Auth)), generated: true}, nil
	}
	value, err = s.OpenSecret(row.UID, row.SecretSealed)
	return trialSecret{secret: value}, err
}
