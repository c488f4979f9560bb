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
	// sessionWaitingProof is when the provider asked who they are.
	sessionWaitingProof = "waiting.proof"
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
	sessions.ErrorFunc = refuseSession
	return sessions
}

// sessionFault is what keeps a request from its session.
type sessionFault struct {
	err error
	// answering tells that the handler is at work, whose answer is on its way when
	// the session cannot be kept.
	answering bool
}

type sessionFaultKey struct{}

// refuseSession leaves a fault of the library to the guard, to be answered like every
// other, unless an answer is on its way, before which nothing else can be said.
func refuseSession(w http.ResponseWriter, r *http.Request, err error) {
	fault, guarded := r.Context().Value(sessionFaultKey{}).(*sessionFault)
	if guarded && !fault.answering {
		fault.err = err
		return
	}
	slog.ErrorContext(r.Context(), "keeping a session", "error", err)
	w.Header().Set(echo.HeaderRetryAfter, "5")
	http.Error(w, "The console cannot use its database. Try again in a moment.",
		http.StatusServiceUnavailable)
}

// withSession lets a handler answer in the session that the request's cookie names.
func (c *Console) withSession(handler echo.HandlerFunc) echo.HandlerFunc {
	answer := echo.WrapMiddleware(c.sessions.LoadAndSave)(func(ctx echo.Context) error {
		if fault, ok := ctx.Request().Context().Value(sessionFaultKey{}).(*sessionFault); ok {
			fault.answering = true
			defer func() { fault.answering = false }()
		}
		return handler(ctx)
	})
	return func(ctx echo.Context) error {
		var fault sessionFault
		request := ctx.Request()
		ctx.SetRequest(request.WithContext(
			context.WithValue(request.Context(), sessionFaultKey{}, &fault)))
		if err := answer(ctx); err != nil || ctx.Response().Committed {
			return err
		}
		return fault.err
	}
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
	ctx echo.Context, user operator.User, visit operator.Session, how map[string]any,
) error {
	visit.Address, visit.Device = ctx.RealIP(), ctx.Request().UserAgent()
	var session operator.Session
	err := c.inTx(ctx, func(request context.Context, tx *postgres.Tx) (err error) {
		session, err = c.Operators.Begin(request, tx, user, visit)
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
	c.keepDevice(ctx, user.Email)
	return c.keep(ctx, user, session)
}

// visitor is where a try to sign in to an account comes from.
func (c *Console) visitor(ctx echo.Context, email string) operator.Visitor {
	visitor := operator.Visitor{Address: ctx.RealIP()}
	if cookie, err := ctx.Cookie(c.cookieName(operator.DeviceCookie(email))); err == nil {
		visitor.Known = c.Operators.Device(email, cookie.Value)
	}
	return visitor
}

// keepDevice lets the browser be known when it signs in to an account again.
func (c *Console) keepDevice(ctx echo.Context, email string) {
	kept := c.Operators.NewDevice(email, c.visitor(ctx, email).Known)
	if kept == "" {
		return
	}
	//nolint:gosec // Secure wherever TLS is: over plain http browsers would drop the cookie
	ctx.SetCookie(&http.Cookie{
		Name: c.cookieName(operator.DeviceCookie(email)), Value: kept, Path: "/",
		Secure: c.secure, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(operator.DeviceLife.Seconds()),
	})
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
func (c *Console) wait(ctx echo.Context, user operator.User, visit operator.Session) error {
	request := ctx.Request().Context()
	if err := c.sessions.RenewToken(request); err != nil {
		return err
	}
	c.sessions.Put(request, sessionWaiting, user.UID.String())
	c.sessions.Put(request, sessionWaitingFor, user.Credential)
	c.sessions.Put(request, sessionWaitingAt, c.DB.Now().Unix())
	c.sessions.Put(request, sessionWaitingBy, string(visit.Method))
	c.sessions.Put(request, sessionWaitingProof, visit.ProvedAt.Unix())
	return nil
}

func (c *Console) forgetWaiting(ctx echo.Context) {
	for _, key := range []string{
		sessionWaiting, sessionWaitingFor, sessionWaitingAt, sessionWaitingBy,
		sessionWaitingProof,
	} {
		c.sessions.Remove(ctx.Request().Context(), key)
	}
}

// currentSession is the session of who is signed in.
func currentSession(ctx echo.Context) operator.Session {
	session, _ := ctx.Get(sessionKey).(operator.Session)
	return session
}
