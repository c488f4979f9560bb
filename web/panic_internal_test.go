package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// TestAPanicTellsWhereItWas: the log names the function that panicked, not only the error.
func TestAPanicTellsWhereItWas(t *testing.T) {
	t.Parallel()
	cause := errors.New("a mistake")
	var got error
	e := echo.New()
	e.HTTPErrorHandler = func(err error, _ echo.Context) { got = err }
	e.GET("/", func(echo.Context) error { panic(cause) }, recoverPanics)
	e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if !errors.Is(got, cause) || !strings.Contains(got.Error(), "TestAPanicTellsWhereItWas") {
		t.Errorf("the error is %v", got)
	}
}
