// Package page is what every page of the console stands on: who asks, by which
// session and in which zone; the frame around a page, its notices, its errors and
// its live regions; and the guard in front of every handler.
//
// A feature of the console embeds a Site, and returns its pages by Site.Show. It
// changes nothing by itself: that is what package action is for.
package page

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// Options are what a site is made of.
type Options struct {
	DB        *postgres.DB
	Operators *operator.Service
	// Badges counts what the rail shows beside its links, up to a few hundred: the
	// deliveries that failed lately and the alerts that are open.
	Badges func(ctx context.Context) (failing, alerts int, err error)
	// PublicURL is the origin that browsers see, such as https://bridge.example.
	PublicURL string
	// Environment is shown over every page; empty in production.
	Environment string
	// Currency is that of every amount, by its ISO 4217 code.
	Currency string
	// Version names the running build.
	Version string
	// Development adds the pages of a development server to the rail.
	Development bool
	// Status is the one map from error code to HTTP status.
	Status func(lending.Code) int
	// LiveEvery is how often a live page looks for news; a second when zero.
	LiveEvery time.Duration
}

// Site serves pages.
type Site struct {
	Options
	// Sessions hold who is signed in, and what the next page tells.
	Sessions *scs.SessionManager

	origins *http.CrossOriginProtection
	Secure  bool
	closing chan struct{}
	// guestForms are the places for large forms of who is not signed in.
	guestForms chan struct{}
	close      func()
	// roles are the least roles by method and pattern, as the routes name them.
	roles map[string]operator.Role
}

// NewSite returns a site. It fails when the public URL is not an origin.
func NewSite(options Options) (*Site, error) {
	if options.LiveEvery == 0 {
		options.LiveEvery = time.Second
	}
	s := &Site{
		Options: options,
		origins: http.NewCrossOriginProtection(),
		Secure:  strings.HasPrefix(options.PublicURL, "https://"),
		closing: make(chan struct{}),

		guestForms: make(chan struct{}, guestForms),
		roles:      map[string]operator.Role{},
	}
	if err := s.origins.AddTrustedOrigin(strings.TrimRight(options.PublicURL, "/")); err != nil {
		return nil, err
	}
	s.close = sync.OnceFunc(func() { close(s.closing) })
	s.Sessions = scs.New()
	s.Sessions.Store = s.Operators.SessionStore()
	s.Sessions.IdleTimeout = operator.SessionIdle
	// The list of sessions ends them after their lifetime. The library's own end is
	// told by the clock of whichever machine is asked, which may be wrong or step.
	s.Sessions.Lifetime = 365 * 24 * time.Hour
	// Anyone who reads the table cannot use what it holds.
	s.Sessions.HashTokenInStore = true
	s.Sessions.Cookie.Name = s.CookieName("session")
	s.Sessions.Cookie.HttpOnly = true
	s.Sessions.Cookie.SameSite = http.SameSiteLaxMode
	s.Sessions.Cookie.Secure = s.Secure
	s.Sessions.Cookie.Path = "/"
	s.Sessions.ErrorFunc = refuseSession
	return s, nil
}

// Close ends the streams of live pages, so that a server that stops does not
// wait for them; browsers connect to the next one by themselves.
func (s *Site) Close() { s.close() }

// Route is one page or change, for the server's route table.
type Route struct {
	Method string
	// Path is absolute, in Echo's notation.
	Path string
	Name string
	// Role is the least that may call; empty for the sign-in, which is for guests.
	Role    operator.Role
	Handler echo.HandlerFunc
}

// Get is the route of a page.
func Get(path, name string, role operator.Role, handler echo.HandlerFunc) Route {
	return Route{Method: http.MethodGet, Path: path, Name: name, Role: role, Handler: handler}
}

// Post is the route of a change.
func Post(path, name string, role operator.Role, handler echo.HandlerFunc) Route {
	return Route{Method: http.MethodPost, Path: path, Name: name, Role: role, Handler: handler}
}

// Mount puts the guard in front of every route, with once between the two, and
// remembers who may call which: the frame of a page is asked for it.
func (s *Site) Mount(routes []Route, once func(echo.HandlerFunc) echo.HandlerFunc) []Route {
	for i, route := range routes {
		s.roles[route.Method+" "+route.Path] = route.Role
		routes[i].Handler = s.Guard(route.Role, once(route.Handler))
	}
	return routes
}

// may tells whether a role reaches the page at a path, or where there is none the
// change; a method before the path asks for that alone.
func (s *Site) may(role operator.Role, path string) bool {
	for _, method := range []string{"", http.MethodGet + " ", http.MethodPost + " "} {
		if needed, ok := s.roles[method+path]; ok {
			return role.Allows(needed)
		}
	}
	return false
}

// IsSent tells whether a form came back filled in.
func IsSent(ctx echo.Context) bool { return ctx.Request().Method == http.MethodPost }

// IsFragment tells whether htmx asks for a part of a page.
func IsFragment(ctx echo.Context) bool {
	header := ctx.Request().Header
	return header.Get("HX-Request") == "true" && header.Get("HX-Boosted") == ""
}

// isStream tells whether the request is for an event stream. htmx also accepts
// streams on every other request, so the path decides.
func isStream(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/live") }

// UID is the identifier in the request's path. Error: NOT_FOUND.
func UID(ctx echo.Context) (uuid.UUID, error) {
	text := ctx.Param("uid")
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		none := "is nothing with this id"
		if list, _ := listAbove(ctx.Request().URL.Path); list.thing != "" {
			none = "is no such " + list.thing
		}
		return uuid.Nil, lending.NewError(lending.CodeNotFound,
			"There %s. The link may be cut off", none)
	}
	return uid, nil
}

// Named is what the identifier in the request's path names, as find reads it. Error: NOT_FOUND.
func Named[T any](
	ctx echo.Context, find func(ctx context.Context, uid uuid.UUID) (T, error),
) (T, error) {
	uid, err := UID(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return find(ctx.Request().Context(), uid)
}

// SessionUID is the id of a session in the request's path. Error: NOT_FOUND.
func SessionUID(ctx echo.Context) (uuid.UUID, error) {
	session, err := uuid.Parse(ctx.Param("session"))
	if err != nil {
		return uuid.Nil, lending.NewError(lending.CodeNotFound, "this session has ended already")
	}
	return session, nil
}

// LeadTo sends the browser to another page, also when a script asked for a part of
// this one.
func LeadTo(ctx echo.Context, target string) error {
	if IsFragment(ctx) {
		ctx.Response().Header().Set("HX-Redirect", target)
		return ctx.NoContent(http.StatusOK)
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}

// SafeNext is a path of the console to go on to, its home for any other address.
func SafeNext(next string) string {
	inside := next == paths.Home || strings.HasPrefix(next, paths.Home+"/") ||
		strings.HasPrefix(next, paths.Home+"?")
	if !inside || strings.ContainsAny(next, "\\\r\n\t") || strings.Contains(next, "..") {
		return paths.Home
	}
	return next
}

// CameFrom is the page of the console that is asked for, or that a form was sent
// from.
func CameFrom(ctx echo.Context) string {
	if !IsSent(ctx) {
		return SafeNext(ctx.Request().URL.RequestURI())
	}
	referer, err := url.Parse(ctx.Request().Referer())
	if err != nil {
		return paths.Home
	}
	return SafeNext(referer.RequestURI())
}

// Known writes an identifier, and the nil one as nothing.
func Known(uid uuid.UUID) string {
	if uid == uuid.Nil {
		return ""
	}
	return uid.String()
}
