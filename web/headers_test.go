package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/idempotency"
	"drawbridge/internal/lending"
)

// FuzzHeaders sends hostile header values to everything that reads them: no answer repeats
// a value that could forge a header or a log line, and every accepted key can be stored.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{
		"", "order-4711", "a b", "\r\nx: y", strings.Repeat("k", 256), "ünï", "<script>", "\x00", "a,b",
	} {
		f.Add(seed)
	}
	e := echo.New()
	handler := requestID(func(echo.Context) error { return nil })
	f.Fuzz(func(t *testing.T, value string) {
		request := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		request.Header[echo.HeaderXRequestID] = []string{value}
		recorder := httptest.NewRecorder()
		if err := handler(e.NewContext(request, recorder)); err != nil {
			t.Fatal(err)
		}
		id := recorder.Header().Get(echo.HeaderXRequestID)
		if id == "" || len(id) > 128 || strings.ContainsAny(id, "\r\n\x00<> ") {
			t.Errorf("%q was answered with the request id %q", value, id)
		}
		key, err := idempotency.ParseKey([]string{value})
		if err != nil {
			if lending.ErrorCode(err) != lending.CodeValidation {
				t.Errorf("%q was refused with %v", value, err)
			}
			return
		}
		if key != "" && (len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool {
			return r <= ' ' || r > '~'
		})) {
			t.Errorf("%q was accepted as a key", value)
		}
	})
}
