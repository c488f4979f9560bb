package console

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
)

// A session ends this long after the last request, and in any case after the
// lifetime: a working day.
const (
	sessionIdle     = 2 * time.Hour
	sessionLifetime = 12 * time.Hour
)

// What a session holds.
const (
	sessionUser       = "user"
	sessionCredential = "credential"
	sessionNotice     = "notice"
)

func (c *Console) newSessions() *scs.SessionManager {
	sessions := scs.New()
	sessions.Store = c.Operators.SessionStore()
	sessions.IdleTimeout = sessionIdle
	sessions.Lifetime = sessionLifetime
	// Whoever reads the table cannot use what stands in it.
	sessions.HashTokenInStore = true
	sessions.Cookie.Name = c.cookieName("session")
	sessions.Cookie.HttpOnly = true
	sessions.Cookie.SameSite = http.SameSiteLaxMode
	sessions.Cookie.Secure = c.secure
	sessions.Cookie.Path = "/"
	sessions.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		slog.ErrorContext(r.Context(), "keeping a session", "error", err)
		http.Error(w, "The console cannot reach its database. Try again in a moment.",
			http.StatusServiceUnavailable)
	}
	return sessions
}

// cookieName adds the prefix by which browsers hold a cookie to this host and
// to TLS; they refuse it over plain http.
func (c *Console) cookieName(name string) string {
	if c.secure {
		return "__Host-drawbridge-" + name
	}
	return "drawbridge-" + name
}

// resume returns the user of the request's session, and false without one.
func (c *Console) resume(ctx echo.Context) (operator.User, bool, error) {
	request := ctx.Request().Context()
	if !c.sessions.Exists(request, sessionUser) {
		return operator.User{}, false, nil
	}
	user, ok, err := c.Operators.Resume(request,
		c.sessions.GetString(request, sessionUser),
		c.sessions.GetString(request, sessionCredential))
	if err != nil || ok {
		return user, ok, err
	}
	return operator.User{}, false, c.sessions.Destroy(request)
}

// begin starts a session under a new token, so that one that was planted
// before the sign-in is worth nothing.
func (c *Console) begin(ctx echo.Context, user operator.User) error {
	request := ctx.Request().Context()
	if err := c.sessions.RenewToken(request); err != nil {
		return err
	}
	c.sessions.Put(request, sessionUser, user.UID.String())
	c.sessions.Put(request, sessionCredential, user.Credential)
	return nil
}
