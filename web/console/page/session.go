package page

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// The keys of a session. Which user it belongs to is in the database's table of sessions.
const (
	// SessionID and SessionCredential identify the session in that table.
	SessionID         = "session"
	SessionCredential = "credential"
	sessionNotice     = "notice"
)

// sessionError is the error of loading or saving a request's session.
type sessionError struct {
	err error
	// answering is set while the handler runs. Its answer may have begun when saving the
	// session fails.
	answering bool
}

type sessionErrorKey struct{}

// refuseSession passes an error of the session library to the guard, which answers it like any
// other error, unless the handler is already answering: then it writes the error itself.
func refuseSession(w http.ResponseWriter, r *http.Request, err error) {
	refused, guarded := r.Context().Value(sessionErrorKey{}).(*sessionError)
	if guarded && !refused.answering {
		refused.err = err
		return
	}
	slog.ErrorContext(r.Context(), "keeping a session", "error", err)
	w.Header().Set(echo.HeaderRetryAfter, "5")
	http.Error(w, "The console cannot use its database. Try again in a moment.",
		http.StatusServiceUnavailable)
}

// withSession runs a handler in the session that the request's cookie names.
func (s *Site) withSession(handler echo.HandlerFunc) echo.HandlerFunc {
	answer := echo.WrapMiddleware(s.Sessions.LoadAndSave)(func(ctx echo.Context) error {
		if refused, ok := ctx.Request().Context().Value(sessionErrorKey{}).(*sessionError); ok {
			refused.answering = true
			defer func() { refused.answering = false }()
		}
		return handler(ctx)
	})
	return func(ctx echo.Context) error {
		var refused sessionError
		request := ctx.Request()
		ctx.SetRequest(request.WithContext(operator.ReadingSession(
			context.WithValue(request.Context(), sessionErrorKey{}, &refused))))
		if err := answer(ctx); err != nil || ctx.Response().Committed {
			return err
		}
		return refused.err
	}
}

// resume returns the user of the request's session, and false if there is none. A live page
// does not keep its session from expiring when idle.
func (s *Site) resume(ctx echo.Context) (operator.Signed, bool, error) {
	request := ctx.Request().Context()
	if !s.Sessions.Exists(request, SessionID) {
		return operator.Signed{}, false, nil
	}
	look := s.Operators.Resume
	if isStream(ctx.Request()) || !IsSent(ctx) && ctx.Request().Header.Get("X-Poll") != "" {
		look = s.Operators.Look
	}
	signed, ok, err := look(request,
		s.Sessions.GetString(request, SessionID), s.Sessions.GetString(request, SessionCredential))
	if err != nil || ok {
		return signed, ok, err
	}
	return operator.Signed{}, false, s.Sessions.Destroy(request)
}

// StillSignedIn reports for a long-running request whether its session is still valid, by
// reading the database rather than the session that the request began with.
func (s *Site) StillSignedIn(ctx echo.Context) (bool, error) {
	request := postgres.Current(ctx.Request().Context())
	_, known, err := s.Operators.Look(request,
		s.Sessions.GetString(request, SessionID), s.Sessions.GetString(request, SessionCredential))
	return known, err
}

// LeaveNotice stores a message for the next page.
func (s *Site) LeaveNotice(ctx echo.Context, text string) {
	s.Sessions.Put(ctx.Request().Context(), sessionNotice, text)
}

// changedCookie marks a browser that made a change which the replica may not have yet.
const changedCookie = "changed"

// MayLag lets a handler read from the replica, unless this browser made a change a short
// while ago: users see their own changes on the next page.
func (s *Site) MayLag(handler echo.HandlerFunc) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		if _, err := ctx.Cookie(s.CookieName(changedCookie)); err != nil { // there is none
			request := ctx.Request()
			ctx.SetRequest(request.WithContext(postgres.MayLag(request.Context())))
		}
		return handler(ctx)
	}
}

// CookieName adds the prefix that makes browsers bind a cookie to this host and to TLS.
// Browsers refuse the prefix over plain HTTP.
func (s *Site) CookieName(name string) string {
	if s.Secure {
		return "__Host-drawbridge-" + name
	}
	return "drawbridge-" + name
}

// Cookie returns a cookie with the given lifetime that scripts cannot read and that is sent
// to this host only and, where TLS is used, only over TLS.
func (s *Site) Cookie(name, value string, life time.Duration) *http.Cookie {
	//nolint:gosec // Secure wherever TLS is: over plain http browsers would drop the cookie
	return &http.Cookie{
		Name: s.CookieName(name), Value: value, Path: "/", Secure: s.Secure,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds()),
	}
}
