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
	// UID is the subscription whose settings are being changed, the nil UUID for
	// a new one. Its secret is used while the scheme stays and none is brought, its
	// header values where a header is Kept. Nothing that is stored goes to another
	// scheme, host or port.
	UID uuid.UUID
	// NewSecret tells that saving would generate a secret.
	NewSecret bool
	// Kind is the event kind of the sample.
	Kind lending.EventKind
	// Claim is asked right before the request is sent, unless nil; its error ends the
	// trial.
	Claim func() error
}

// TrialResult is what was sent and what came back.
type TrialResult struct {
	sender.Attempt
	// Body is what was sent.
	Body []byte
	// Generated tells that a signing secret or token was made up for the trial,
	// so that the endpoint cannot have known it.
	Generated bool
	// Secret is the one that was made up where saving would make one up, so that it can be
	// saved as it was tested; zero otherwise.
	Secret secret.String
}

// Try sends one marked sample event with settings that are not saved, and
// nothing is recorded but what the caller keeps. It makes a request, so it
// belongs outside any transaction.
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
	// generated tells that it was made up, new that it could be saved.
	generated, new bool
}

// prepare checks the settings of a trial, puts the stored header values in that they
// keep, and returns the secret to use.
func (s *Service) prepare(
	ctx context.Context, trial Trial, settings *Settings,
) (trialSecret, error) {
	var row Row
	var current Subscription
	var err error
	if trial.UID != uuid.Nil {
		if row, err = load(ctx, s.DB, trial.UID, notGone); err != nil {
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
