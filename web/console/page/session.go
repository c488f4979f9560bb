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

// What a session holds. The list of sessions in the database says whose it is.
const (
	// SessionID and SessionCredential name the session in that list.
	SessionID         = "session"
	SessionCredential = "credential"
	sessionNotice     = "notice"
)

// sessionError is what keeps a request from its session.
type sessionError struct {
	err error
	// answering tells that the handler is at work, whose answer is on its way when
	// the session cannot be kept.
	answering bool
}

type sessionErrorKey struct{}

// refuseSession leaves an error of the library to the guard, to be answered like every
// other, unless an answer is on its way, before which nothing else can be said.
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

// withSession lets a handler answer in the session that the request's cookie names.
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

// resume returns who the request's session belongs to, and false without one.
// A live page does not keep its session from idling.
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

// StillSignedIn tells of a request that goes on for long whether its session does too: the database
// is asked, not the session that it began with.
func (s *Site) StillSignedIn(ctx echo.Context) (bool, error) {
	request := postgres.Current(ctx.Request().Context())
	_, known, err := s.Operators.Look(request,
		s.Sessions.GetString(request, SessionID), s.Sessions.GetString(request, SessionCredential))
	return known, err
}

// LeaveNotice keeps a message for the next page that is shown.
func (s *Site) LeaveNotice(ctx echo.Context, text string) {
	s.Sessions.Put(ctx.Request().Context(), sessionNotice, text)
}

// changedCookie tells that a change was made in this browser which the replica of the
// database may not have yet.
const changedCookie = "changed"

// MayLag lets a handler read from the replica of the database, unless this browser made a
// change a short while ago: anyone who changes something sees it on the next page.
func (s *Site) MayLag(handler echo.HandlerFunc) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		if _, err := ctx.Cookie(s.CookieName(changedCookie)); err != nil { // there is none
			request := ctx.Request()
			ctx.SetRequest(request.WithContext(postgres.MayLag(request.Context())))
		}
		return handler(ctx)
	}
}

// CookieName adds the prefix by which browsers hold a cookie to this host and
// to TLS; they refuse it over plain http.
func (s *Site) CookieName(name string) string {
	if s.Secure {
		return "__Host-drawbridge-" + name
	}
	return "drawbridge-" + name
}

// Cookie is one that scripts cannot read and that lives for so long, sent to this
// host alone and, where TLS is, by TLS alone.
func (s *Site) Cookie(name, value string, life time.Duration) *http.Cookie {
	//nolint:gosec // Secure wherever TLS is: over plain http browsers would drop the cookie
	return &http.Cookie{
		Name: s.CookieName(name), Value: value, Path: "/", Secure: s.Secure,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds()),
	}
}
