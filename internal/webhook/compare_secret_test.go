package webhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

func TestCompareSecret(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	subscription, first := h.subscribe(t, "https://hooks.example/in", nil)
	rotated := secret.New("whsec_second_secret")
	h.amend(t, subscription.UID, webhook.Patch{Secret: &rotated, Overlap: time.Hour})
	compare := func(value secret.String) (found webhook.SecretMatch, err error) {
		err = h.try(func(ctx context.Context, tx *postgres.Tx) (err error) {
			found, err = h.CompareSecret(ctx, tx, subscription.UID, value)
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
	h.clock.move(2 * time.Hour)
	if found, err := compare(first); err != nil || !found.PreviousEnded {
		t.Errorf("after the overlap: %+v, %v", found, err)
	}
	_, err := compare(secret.String{})
	wantRefusal(t, err, lending.CodeValidation, "secret")
	open, _ := h.subscribe(t, "https://open.example/", func(s *webhook.Settings) {
		s.Auth = webhook.AuthNone
	})
	for uid, code := range map[uuid.UUID]lending.Code{
		open.UID: lending.CodeInvalidState, uuid.New(): lending.CodeNotFound,
	} {
		err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.CompareSecret(ctx, tx, uid, rotated)
			return err
		})
		wantRefusal(t, err, code)
	}
}
