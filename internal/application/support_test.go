package application_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// codeOf returns the code of a refusal and fails the test on any other error.
func codeOf(t *testing.T, err error) lending.Code {
	t.Helper()
	if _, ok := errors.AsType[*lending.Error](err); err != nil && !ok {
		t.Fatalf("not a refusal: %v", err)
	}
	return lending.ErrorCode(err)
}

func refused(t *testing.T, err error, want lending.Code) {
	t.Helper()
	if got := codeOf(t, err); got != want {
		t.Errorf("code %q (%v), want %q", got, err, want)
	}
}

// same compares two lists, such as the events that a use case recorded.
func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if len(got)+len(want) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func accept(
	t *testing.T, w *apptest.Harness, uid uuid.UUID, product lending.Product,
	linked ...uuid.UUID,
) error {
	t.Helper()
	return w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Applications.AcceptOffer(ctx, tx, w.Caller(), application.Acceptance{
			ApplicationUID: uid, ProductUID: uuid.MustParse(product.UID), Linked: linked,
		})
		return err
	})
}

func decide(
	t *testing.T, w *apptest.Harness, uid uuid.UUID,
) (application.Application, error) {
	t.Helper()
	var decided application.Application
	err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		decided, err = w.Applications.RunDecision(ctx, tx, w.Caller(), uid)
		return err
	})
	return decided, err
}

// stamp formats a time as events show it.
func stamp(recorded apptest.Recorded) string { return lending.FormatTimestamp(recorded.OccurredAt) }
