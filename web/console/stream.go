package console

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// keepAlive is how often an idle stream shows that it lives.
	keepAlive = 15 * time.Second
	// streamLife bounds a stream: the browser's next one is checked anew.
	streamLife = 10 * time.Minute
	// sessionCheck is how often an open stream asks whether its user still may.
	sessionCheck = 15 * time.Second
	// writeTimeout is what one message may take to a browser that reads slowly.
	writeTimeout = 10 * time.Second
)

// isStream tells whether the request is for an event stream. htmx also accepts
// streams on every other request, so the path decides.
func isStream(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/live") }

// stream sends what render returns, at once and whenever it has changed, until
// the browser leaves, the session ends or the server stops.
func (c *Console) stream(
	ctx echo.Context, renderRegion func(context.Context) ([]byte, error),
) error {
	request := ctx.Request().Context()
	sent, err := renderRegion(request)
	if err != nil {
		return err
	}
	out := newEventWriter(ctx)
	if !out.message(sent) {
		return nil
	}
	ticker := time.NewTicker(c.LiveEvery)
	defer ticker.Stop()
	checked, ends := c.DB.Now(), c.DB.Now().Add(streamLife)
	for {
		select {
		case <-request.Done():
			return nil
		case <-c.closing:
			return nil
		case <-ticker.C:
		}
		now := c.DB.Now()
		if now.After(ends) || now.Sub(checked) > sessionCheck && !c.stillSignedIn(ctx) {
			return nil
		}
		if now.Sub(checked) > sessionCheck {
			checked = now
		}
		region, err := renderRegion(request)
		if err != nil {
			if request.Err() == nil {
				slog.WarnContext(request, "updating a live page", "route", ctx.Path(), "error", err)
			}
			return nil
		}
		if bytes.Equal(region, sent) {
			region = nil
		} else {
			sent = region
		}
		if !out.next(region) {
			return nil
		}
	}
}

// stillSignedIn asks the database, not the session that the stream began with.
func (c *Console) stillSignedIn(ctx echo.Context) bool {
	request := ctx.Request().Context()
	_, ok, err := c.Operators.Resume(request,
		c.sessions.GetString(request, sessionUser),
		c.sessions.GetString(request, sessionCredential))
	return ok && err == nil
}

// eventWriter writes server-sent events.
type eventWriter struct {
	response   *echo.Response
	controller *http.ResponseController
	last       time.Time
}

func newEventWriter(ctx echo.Context) *eventWriter {
	w := &eventWriter{
		response: ctx.Response(), controller: http.NewResponseController(ctx.Response()),
	}
	header := w.response.Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // proxies must pass each event on
	// The deadline for reading a request would end the stream; a writer without
	// deadlines is that of a test without a connection.
	_ = w.controller.SetReadDeadline(time.Time{})
	w.response.WriteHeader(http.StatusOK)
	return w
}

// next sends a message, or a sign of life when there is none and it is time. It
// returns false when the browser is gone.
func (w *eventWriter) next(html []byte) bool {
	if html != nil {
		return w.message(html)
	}
	if time.Since(w.last) < keepAlive {
		return true
	}
	return w.write([]byte(": still here\n\n"))
}

// message sends HTML as one event. Line ends part the lines of an event, so a
// carriage return that belongs to the content goes as a character reference.
func (w *eventWriter) message(html []byte) bool {
	html = bytes.ReplaceAll(html, []byte("\r"), []byte("&#13;"))
	html = bytes.ReplaceAll(html, []byte("\n"), []byte("\ndata: "))
	return w.write(append(append([]byte("data: "), html...), "\n\n"...))
}

func (w *eventWriter) write(text []byte) bool {
	w.last = time.Now()
	_ = w.controller.SetWriteDeadline(w.last.Add(writeTimeout)) // as for reading
	if _, err := w.response.Write(text); err != nil {
		return false
	}
	return w.controller.Flush() == nil
}
