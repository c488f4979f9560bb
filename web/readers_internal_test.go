package web

import (
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

// unwritten is an answer that cannot be written.
type unwritten struct {
	http.ResponseWriter

	err error
}

func (w unwritten) Write([]byte) (int, error) { return 0, w.err }

// TestWhoLeavesIsNoErrorOfOurs: clients that disconnect during an answer raise no alarm; a
// bug of a handler does.
func TestWhoLeavesIsNoErrorOfOurs(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{syscall.ECONNRESET: false, http.ErrContentLength: true} {
		ours := false
		handle := newErrorHandler(Options{Now: time.Now})
		e := echo.New()
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			handle(err, c)
			ours = c.Get(internalErrorKey) != nil
		}
		e.Use(boundReaders)
		e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "answer") })
		e.ServeHTTP(unwritten{httptest.NewRecorder(), err},
			httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		if ours != want {
			t.Errorf("%v is taken for an error of ours: %t", err, ours)
		}
	}
}
