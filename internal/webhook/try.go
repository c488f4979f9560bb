package webhook

import (
	"context"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

// Trial is a test of settings that are not saved.
type Trial struct {
	Settings Settings
	// UID is the subscription whose settings are being changed, the nil UUID for
	// a new one. Its secret is used while the scheme stays and none is brought.
	UID uuid.UUID
	// Kind is the event kind of the sample.
	Kind lending.EventKind
}

// TrialResult is what was sent and what came back.
type TrialResult struct {
	Attempt
	// Body is what was sent.
	Body []byte
	// Generated tells that a signing secret or token was made up for the trial,
	// so that the endpoint cannot have known it.
	Generated bool
}

// Try sends one marked sample event with settings that are not saved, and
// nothing is recorded but what the caller keeps. It makes a request, so it
// belongs outside any transaction.
//
// Errors: VALIDATION_ERROR naming every wrong setting, NOT_FOUND.
func (s *Service) Try(ctx context.Context, trial Trial) (TrialResult, error) {
	sample, err := lending.SampleEvent(trial.Kind)
	if err != nil {
		return TrialResult{}, err
	}
	kept, err := s.keptSecret(ctx, trial)
	if err != nil {
		return TrialResult{}, err
	}
	settings := trial.Settings
	value, err := s.check(&settings, kept.IsZero())
	if err != nil {
		return TrialResult{}, err
	}
	if !kept.IsZero() {
		value = kept
	}
	now := s.DB.Now()
	body, err := sample.Render(now)
	if err != nil {
		return TrialResult{}, err
	}
	attempt := s.Sender.Send(ctx, Request{
		URL: settings.URL, Event: string(trial.Kind), Delivery: postgres.NewUID(now).String(),
		Number: 1, Test: true, Headers: settings.Headers, Auth: settings.Auth, Secret: value,
		Body: body,
	})
	generated := kept.IsZero() && settings.Auth != AuthNone && trial.Settings.Secret.IsZero()
	return TrialResult{Attempt: attempt, Body: body, Generated: generated}, nil
}

// keptSecret is the secret that a change would leave in force; the zero value
// where the settings bring or need another one.
func (s *Service) keptSecret(ctx context.Context, trial Trial) (secret.String, error) {
	if trial.UID == uuid.Nil || !trial.Settings.Secret.IsZero() {
		return secret.String{}, nil
	}
	var row subscriptionRow
	err := s.DB.GetContext(ctx, &row, `
		SELECT `+subscriptionColumns+`
		  FROM subscriptions s
		 WHERE s.subscription_uid = $1
		   AND s.state <> 'deleted'`, trial.UID)
	if postgres.IsNoRows(err) {
		return secret.String{}, errNoSubscription(trial.UID)
	}
	if err != nil {
		return secret.String{}, err
	}
	if row.Auth != trial.Settings.Auth {
		return secret.String{}, nil
	}
	return s.openSecret(row.UID, row.SecretSealed)
}
