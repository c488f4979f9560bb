package web

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// The bounds on a client that reads its answer slowly or not at all.
const (
	// chunkTimeout is what a client has for each chunk of an answer.
	chunkTimeout = 30 * time.Second
	chunkSize    = 64 << 10
	// An answer as a whole has answerTimeout and, for what is long, the time that
	// it takes at leastRate, in bytes per second.
	answerTimeout = 60 * time.Second
	leastRate     = 8 << 10
	// maxStreams bounds the answers that one HTTP/2 connection waits for.
	maxStreams = 100
)

// errUnread tells that the client of an answer has left, or does not read.
var errUnread = errors.New("the answer was not read")

// boundReaders ends connections whose client does not read. An event stream, which
// goes on for as long as its reader stays, has a bound for each chunk alone: see
// endless.
func boundReaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := &boundWriter{ResponseWriter: c.Response().Writer}
		w.controller = http.NewResponseController(w.ResponseWriter)
		c.Response().Writer = w
		// "100 Continue" goes out before anything is written here.
		w.extend()
		return next(c)
	}
}

// boundWriter gives each chunk of an answer a deadline.
type boundWriter struct {
	http.ResponseWriter

	controller *http.ResponseController
	// began is when the first chunk was written.
	began   time.Time
	written int64
	endless bool
}

// extend sets the deadline of the next chunk. A writer without deadlines is that
// of a test without a connection.
func (w *boundWriter) extend() {
	now := time.Now()
	deadline := now.Add(chunkTimeout)
	if !w.began.IsZero() && !w.endless {
		whole := answerTimeout + time.Duration(w.written)*time.Second/leastRate
		if end := w.began.Add(whole); end.Before(deadline) {
			deadline = end
		}
	}
	_ = w.controller.SetWriteDeadline(deadline)
}

// WriteHeader begins the answer, which has its time from now on.
func (w *boundWriter) WriteHeader(status int) {
	if w.began.IsZero() {
		w.began = time.Now()
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write writes in chunks.
func (w *boundWriter) Write(data []byte) (int, error) {
	if w.began.IsZero() {
		w.began = time.Now()
	}
	total := 0
	for {
		chunk := data[:min(len(data), chunkSize)]
		w.extend()
		n, err := w.ResponseWriter.Write(chunk)
		total += n
		w.written += int64(n)
		if err != nil && !errors.Is(err, http.ErrContentLength) &&
			!errors.Is(err, http.ErrBodyNotAllowed) {
			err = fmt.Errorf("%w: %w", errUnread, err)
		}
		if data = data[len(chunk):]; err != nil || len(data) == 0 {
			return total, err
		}
	}
}

// Unwrap is for http.ResponseController.
func (w *boundWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// findBound returns the bound of an answer, nil without one.
func findBound(w http.ResponseWriter) *boundWriter {
	for {
		switch found := w.(type) {
		case *boundWriter:
			return found
		case interface{ Unwrap() http.ResponseWriter }:
			w = found.Unwrap()
		default:
			return nil
		}
	}
}
