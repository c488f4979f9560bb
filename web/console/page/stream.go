package page

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// SessionCheck is how often a long-running response, a stream or a file, checks that its
// user is still signed in.
const SessionCheck = 15 * time.Second

const (
	// keepAlive is how often an idle stream sends a sign of life.
	keepAlive = 15 * time.Second
	// streamLife bounds a stream; the browser then reconnects and is checked again.
	streamLife = 10 * time.Minute
	// writeTimeout is how long a browser may take to read one message.
	writeTimeout = 10 * time.Second
)

// Stream sends the live part of a page: the result of render, at once and whenever it has
// changed, until the browser disconnects, the session ends or the server stops.
func (s *Site) Stream(ctx echo.Context, render func(context.Context) ([]byte, error)) error {
	request := ctx.Request().Context()
	sent, err := s.look(ctx, render)
	if err != nil {
		return err
	}
	checked, ends := s.DB.Now(), s.DB.Now().Add(streamLife)
	out := &eventWriter{
		response: ctx.Response(), controller: http.NewResponseController(ctx.Response()),
	}
	header := out.response.Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // proxies must not buffer events
	out.response.WriteHeader(http.StatusOK)
	ticker := time.NewTicker(s.LiveEvery)
	defer ticker.Stop()
	for connected := out.message(withTokens(ctx, sent)); connected; {
		select {
		case <-request.Done():
			return nil
		case <-s.closing:
			return nil
		case <-ticker.C:
		}
		postgres.Renew(request)
		now := s.DB.Now()
		if now.After(ends) {
			return nil
		}
		if now.Sub(checked) > SessionCheck {
			checked = now
			if known, err := s.StillSignedIn(ctx); !known || err != nil {
				return nil // the browser reconnects by itself
			}
		}
		html, err := s.look(ctx, render)
		if err != nil {
			if request.Err() == nil {
				slog.WarnContext(request, "updating a live page", "route", ctx.Path(), "error", err)
			}
			return nil
		}
		if bytes.Equal(html, sent) {
			// Send a sign of life now and then. It must be an event, because the page does not see
			// comments and takes a longer silence for a dead connection.
			connected = time.Since(out.last) < keepAlive || out.write([]byte("event: alive\ndata:\n\n"))
			continue
		}
		sent = html
		connected = out.message(withTokens(ctx, html))
	}
	return nil
}

// look renders a live part of a page in its user's turn.
func (s *Site) look(
	ctx echo.Context, render func(context.Context) ([]byte, error),
) ([]byte, error) {
	request := ctx.Request().Context()
	leave, err := s.turn(request, User(ctx).UID)
	if err != nil {
		return nil, err
	}
	defer leave()
	html, err := render(request)
	if errors.Is(err, context.DeadlineExceeded) {
		err = lending.NewError(lending.CodeUnavailable,
			"The page could not be loaded in time. Reload it.").WithCause(err)
	}
	return html, err
}

// eventWriter writes server-sent events.
type eventWriter struct {
	response   *echo.Response
	controller *http.ResponseController
	last       time.Time
}

// message sends HTML as one event, and returns false if the browser has disconnected. Line
// ends separate the lines of an event, so a carriage return in the content is sent as a
// character reference.
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
