package lending_test

import (
	"errors"
	"testing"

	"drawbridge/internal/lending"
)

func TestNotFoundRefusalsPointAtTheID(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		code lending.Code
		want string
	}{
		{
			lending.ApplicationNotFound(), "APPLICATION_NOT_FOUND",
			"Could not find the specified application; check the id submitted",
		},
		{
			lending.ProductNotFound(), "PRODUCT_NOT_FOUND",
			"Could not find the specified product; check the id submitted",
		},
	} {
		wantCode(t, tc.err, tc.code)
		if tc.err.Error() != tc.want {
			t.Errorf("message %q, want %q", tc.err, tc.want)
		}
	}
}

func TestOneLineSeparatesJoinedErrors(t *testing.T) {
	t.Parallel()
	joined := errors.Join(errors.New("removing  bodies"), errors.New("first\n\nclosing"))
	if got, want := lending.OneLine(joined), "removing bodies; first; closing"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
}
