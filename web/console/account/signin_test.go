package account

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
)

func TestRefusedProofs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err         error
		text, retry string
	}{
		{nil, "", ""},
		{errors.New("a fault"), "", ""},
		{lending.NewError(lending.CodeNotFound, "gone"), "", ""},
		{lending.NewError(lending.CodeUnauthorized, "wrong"), "wrong", ""},
		{lending.NewError(lending.CodeRateLimited, "too many"), "too many", ""},
		{
			lending.NewError(lending.CodeUnavailable, "no room").WithCause(errors.New("why")),
			"no room", busySeconds,
		},
	} {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		text, refused := refusedProof(echo.New().NewContext(request, recorder), test.err)
		retry := recorder.Header().Get("Retry-After")
		if text != test.text || refused != (test.text != "") || retry != test.retry {
			t.Errorf("%v is shown as %q, %t, Retry-After %q", test.err, text, refused, retry)
		}
	}
}
