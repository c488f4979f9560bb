package subscription_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestCompareSecret(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, first := h.Subscribe(t, "https://hooks.example/in", nil)
	rotated := secret.New("whsec_second_secret")
	h.Amend(t, subscribed.UID, subscription.Patch{Secret: &rotated, Overlap: time.Hour})
	compare := func(value secret.String) (found subscription.SecretMatch, err error) {
		err = h.Try(func(ctx context.Context, tx *postgres.Tx) (err error) {
			found, err = h.Subscriptions.CompareSecret(ctx, tx, subscribed.UID, value)
			return err
		})
		return found, err
	}
	for _, test := range []struct {
		name   string
		pasted secret.String
		want   secret.Match
	}{
		{"current", rotated, secret.MatchCurrent},
		{"previous", first, secret.MatchPrevious},
		{"neither", secret.New("whsec_second_secret "), secret.MatchNone},
	} {
		found, err := compare(test.pasted)
		if err != nil || found.Match != test.want || found.PreviousEnded ||
			(found.PreviousUntil != nil) != (test.want == secret.MatchPrevious) {
			t.Errorf("%s: %+v, %v", test.name, found, err)
		}
	}
	h.Clock.Move(2 * time.Hour)
	if found, err := compare(first); err != nil || !found.PreviousEnded {
		t.Errorf("after the overlap: %+v, %v", found, err)
	}
	_, err := compare(secret.String{})
	webhooktest.WantRefusal(t, err, lending.CodeValidation, "secret")
	open, _ := h.Subscribe(t, "https://open.example/", func(s *subscription.Settings) {
		s.Auth = sender.AuthNone
	})
	for uid, code := range map[uuid.UUID]lending.Code{
		open.UID: lending.CodeInvalidState, uuid.New(): lending.CodeNotFound,
	} {
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Subscriptions.CompareSecret(ctx, tx, uid, rotated)
			return err
		})
		webhooktest.WantRefusal(t, err, code)
	}
}
