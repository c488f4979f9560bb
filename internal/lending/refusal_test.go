package lending_test

import (
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
