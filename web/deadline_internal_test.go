package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

// TestSlowCallsSpoilNoConnection: processing a request may take longer than its body may
// take to arrive, without cancelling the next requests on the connection.
func TestSlowCallsSpoilNoConnection(t *testing.T) {
	t.Parallel()
	const limit = 200 * time.Millisecond
	for method, body := range map[string]string{http.MethodGet: "", http.MethodPost: "{}"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			e := echo.New()
			e.Any("/*", func(c echo.Context) error {
				if _, err := io.ReadAll(c.Request().Body); err != nil {
					return err
				}
				work := time.After(3 * limit)
				if c.Request().URL.Path == "/quick" {
					work = time.After(0)
				}
				select {
				case <-c.Request().Context().Done():
					return c.NoContent(http.StatusGone)
				case <-work:
				}
				if c.Request().Context().Err() != nil {
					return c.NoContent(http.StatusGone)
				}
				return c.NoContent(http.StatusOK)
			}, refuseAtOnce, deadline(limit))
			server := httptest.NewUnstartedServer(nil)
			server.Config = NewServer(e)
			server.Start()
			t.Cleanup(server.Close)
			for _, path := range []string{"/slow", "/quick"} {
				request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path,
					strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				response, err := server.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close() // it is empty
				if response.StatusCode != http.StatusOK {
					t.Errorf("%s was cancelled", path)
				}
			}
		})
	}
}
