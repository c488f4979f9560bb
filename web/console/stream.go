package console

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/postgres"
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

// region renders the part of a page that is kept up to date.
type region func(context.Context) ([]byte, error)

// live is an open stream.
type live struct {
	console *Console
	ctx     echo.Context
	out     *eventWriter
	render  region
	// sent is what the browser has; checked is when the session was last seen
	// to hold, ends when the stream is old.
	sent          []byte
	checked, ends time.Time
}

// stream sends what render returns, at once and whenever it has changed, until
// the browser leaves, the session ends or the server stops.
func (c *Console) stream(ctx echo.Context, render region) error {
	request := ctx.Request().Context()
	sent, err := render(request)
	if err != nil {
		return err
	}
	now := c.DB.Now()
	stream := &live{
		console: c, ctx: ctx, out: newEventWriter(ctx), render: render,
		sent: sent, checked: now, ends: now.Add(streamLife),
	}
	ticker := time.NewTicker(c.LiveEvery)
	defer ticker.Stop()
	for goesOn := stream.out.message(sent); goesOn; {
		select {
		case <-request.Done():
			return nil
		case <-c.closing:
			return nil
		case <-ticker.C:
			postgres.Renew(request)
			goesOn = stream.holds() && stream.update(request)
		}
	}
	return nil
}

// holds tells whether the stream is neither old nor that of somebody who has
// been signed out.
func (l *live) holds() bool {
	now := l.console.DB.Now()
	if now.After(l.ends) {
		return false
	}
	if now.Sub(l.checked) <= sessionCheck {
		return true
	}
	l.checked = now
	return l.console.stillSignedIn(l.ctx)
}

// update sends the region if it has changed, and false when that is not
// possible: the browser then connects again by itself.
func (l *live) update(request context.Context) bool {
	html, err := l.render(request)
	if err != nil {
		if request.Err() == nil {
			slog.WarnContext(request, "updating a live page", "route", l.ctx.Path(), "error", err)
		}
		return false
	}
	if bytes.Equal(html, l.sent) {
		return l.out.idle()
	}
	l.sent = html
	return l.out.message(html)
}

// stillSignedIn asks the database, not the session that the stream began with.
func (c *Console) stillSignedIn(ctx echo.Context) bool {
	request := ctx.Request().Context()
	_, ok, err := c.Operators.Look(request,
		c.sessions.GetString(request, sessionID),
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

// idle sends a sign of life when it is time for one: an event, since the page
// hears no comment and takes a longer silence for a dead connection. Like
// message, it returns false when the browser is gone.
func (w *eventWriter) idle() bool {
	if time.Since(w.last) < keepAlive {
		return true
	}
	return w.write([]byte("event: alive\ndata:\n\n"))
}

// message sends HTML as one event. Line ends part the lines of an event, so a
// carriage return that belongs to the content goes as a character reference.
func (w *eventWriter) message(html []byte) bool {
	html = bytes.ReplaceAll(withTokens(html), []byte("\r"), []byte("&#13;"))
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
