package console

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// What a session holds. The list of sessions in the database says whose it is.
const (
	sessionID         = "session"
	sessionCredential = "credential"
	sessionNotice     = "notice"
)

// codeWait is how long a right password waits for the code.
const codeWait = 10 * time.Minute

// What a session holds between the password and the code.
const (
	sessionWaiting    = "waiting"
	sessionWaitingFor = "waiting.credential"
	sessionWaitingAt  = "waiting.at"
	sessionWaitingBy  = "waiting.by"
)

// sessionKey is where the guard leaves the session for the handler.
const sessionKey = "console.session"

func (c *Console) newSessions() *scs.SessionManager {
	sessions := scs.New()
	sessions.Store = c.Operators.SessionStore()
	sessions.IdleTimeout = operator.SessionIdle
	// The list of sessions ends them after their lifetime. The library's own end is
	// told by the clock of whichever machine is asked, which may be wrong or step.
	sessions.Lifetime = 365 * 24 * time.Hour
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

// resume returns who the request's session belongs to, and false without one.
// A live page does not keep its session from idling.
func (c *Console) resume(ctx echo.Context) (operator.Signed, bool, error) {
	request := ctx.Request().Context()
	if !c.sessions.Exists(request, sessionID) {
		return operator.Signed{}, false, nil
	}
	look := c.Operators.Resume
	if isStream(ctx.Request()) {
		look = c.Operators.Look
	}
	signed, ok, err := look(request,
		c.sessions.GetString(request, sessionID),
		c.sessions.GetString(request, sessionCredential))
	if err != nil || ok {
		return signed, ok, err
	}
	return operator.Signed{}, false, c.sessions.Destroy(request)
}

// begin starts a session under a new token, so that one that was planted
// before the sign-in is worth nothing, and keeps it in the audit log.
func (c *Console) begin(
	ctx echo.Context, user operator.User, method operator.Method, how map[string]any,
) error {
	var session operator.Session
	err := c.inTx(ctx, func(request context.Context, tx *postgres.Tx) (err error) {
		session, err = c.Operators.Begin(request, tx, user, operator.Session{
			Method: method, Address: ctx.RealIP(), Device: ctx.Request().UserAgent(),
		})
		if err != nil {
			return err
		}
		return c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: "user.sign_in",
			SubjectKind: "user", Subject: user.Email, After: how,
		})
	})
	if err != nil {
		return err
	}
	return c.keep(ctx, user, session)
}

// keep lets the browser go on with a session under a new token.
func (c *Console) keep(ctx echo.Context, user operator.User, session operator.Session) error {
	request := ctx.Request().Context()
	if err := c.sessions.RenewToken(request); err != nil {
		return err
	}
	c.forgetWaiting(ctx)
	c.sessions.Put(request, sessionID, session.UID.String())
	c.sessions.Put(request, sessionCredential, user.Credential)
	return nil
}

// wait keeps who has given the right password until the code comes.
func (c *Console) wait(ctx echo.Context, user operator.User, method operator.Method) error {
	request := ctx.Request().Context()
	if err := c.sessions.RenewToken(request); err != nil {
		return err
	}
	c.sessions.Put(request, sessionWaiting, user.UID.String())
	c.sessions.Put(request, sessionWaitingFor, user.Credential)
	c.sessions.Put(request, sessionWaitingAt, c.DB.Now().Unix())
	c.sessions.Put(request, sessionWaitingBy, string(method))
	return nil
}

func (c *Console) forgetWaiting(ctx echo.Context) {
	for _, key := range []string{
		sessionWaiting, sessionWaitingFor, sessionWaitingAt, sessionWaitingBy,
	} {
		c.sessions.Remove(ctx.Request().Context(), key)
	}
}

// currentSession is the session of who is signed in.
func currentSession(ctx echo.Context) operator.Session {
	session, _ := ctx.Get(sessionKey).(operator.Session)
	return session
}
