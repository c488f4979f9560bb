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
	// chunkTimeout is how long a client may take to read one chunk of an answer.
	chunkTimeout = 30 * time.Second
	chunkSize    = 64 << 10
	// A whole answer must be read within answerTimeout plus the time that its bytes take at
	// leastRate, in bytes per second.
	answerTimeout = 60 * time.Second
	leastRate     = 8 << 10
	// maxStreams bounds the concurrent requests of one HTTP/2 connection.
	maxStreams = 100
)

// errUnread reports that the client of an answer has disconnected or does not read.
var errUnread = errors.New("the answer was not read")

// boundReaders ends connections whose client does not read. An event stream may go on for
// as long as its client reads, so it is only bounded per chunk: see endless.
func boundReaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := &boundWriter{ResponseWriter: c.Response().Writer}
		w.controller = http.NewResponseController(w.ResponseWriter)
		c.Response().Writer = w
		// net/http writes "100 Continue" before any handler writes.
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

// extend sets the deadline of the next chunk. A writer that supports no deadlines belongs
// to a test without a connection.
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

// WriteHeader starts the answer and with it the clock of answerTimeout.
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

// Unwrap lets http.ResponseController reach the underlying writer.
func (w *boundWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// findBound returns the boundWriter of an answer, or nil if it has none.
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
