// Package page is the base of every page of the console: the user, session and time zone of
// a request; the frame of a page, its notices, errors and live regions; and the guard in
// front of every handler.
//
// A feature of the console embeds a Site and renders its pages with Site.Show. Changes are
// made by package action.
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

// Options configure a site.
type Options struct {
	DB        *postgres.DB
	Operators *operator.Service
	// Badges returns the counts beside the rail's links, up to a few hundred: recently failed
	// deliveries and open alerts.
	Badges func(ctx context.Context) (failing, alerts int, err error)
	// PublicURL is the origin that browsers use, for example https://bridge.example.
	PublicURL string
	// Environment is shown over every page; empty in production.
	Environment string
	// Currency is the ISO 4217 code of every amount.
	Currency string
	// Version names the running build.
	Version string
	// Development adds the pages of a development server to the rail.
	Development bool
	// Status is the one map from error code to HTTP status.
	Status func(lending.Code) int
	// LiveEvery is how often a live page polls for changes; zero means a second.
	LiveEvery time.Duration
}

// Site serves pages.
type Site struct {
	Options
	// Sessions hold the signed-in user and the notice for the next page.
	Sessions *scs.SessionManager

	origins *http.CrossOriginProtection
	Secure  bool
	closing chan struct{}
	// guestForms limits the large forms of users who are not signed in.
	guestForms chan struct{}
	// turns holds for each user the places of what is worked for them.
	turns sync.Map
	close func()
	// roles maps the method and pattern of each route to its lowest role.
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
	// The sessions table ends sessions after their lifetime. The library's own expiry uses the
	// clock of the machine that serves the request, which may be wrong or jump.
	s.Sessions.Lifetime = 365 * 24 * time.Hour
	// Someone who reads the table cannot use the tokens in it.
	s.Sessions.HashTokenInStore = true
	s.Sessions.Cookie.Name = s.CookieName("session")
	s.Sessions.Cookie.HttpOnly = true
	s.Sessions.Cookie.SameSite = http.SameSiteLaxMode
	s.Sessions.Cookie.Secure = s.Secure
	s.Sessions.Cookie.Path = "/"
	s.Sessions.ErrorFunc = refuseSession
	return s, nil
}

// Close ends the streams of live pages, so that a stopping server does not wait for them;
// browsers reconnect to the next server by themselves.
func (s *Site) Close() { s.close() }

// Route is one page or change, for the server's route table.
type Route struct {
	Method string
	// Path is absolute, in Echo's notation.
	Path string
	Name string
	// Role is the lowest role that may use the route; empty for the sign-in, which is for guests.
	Role    operator.Role
	Handler echo.HandlerFunc
}

// Get returns the route of a page.
func Get(path, name string, role operator.Role, handler echo.HandlerFunc) Route {
	return Route{Method: http.MethodGet, Path: path, Name: name, Role: role, Handler: handler}
}

// Post returns the route of a change.
func Post(path, name string, role operator.Role, handler echo.HandlerFunc) Route {
	return Route{Method: http.MethodPost, Path: path, Name: name, Role: role, Handler: handler}
}

// Mount wraps every route in the guard, with once inside it, and records the roles: the
// frame of a page looks up which links a user may follow.
func (s *Site) Mount(routes []Route, once func(echo.HandlerFunc) echo.HandlerFunc) []Route {
	for i, route := range routes {
		s.roles[route.Method+" "+route.Path] = route.Role
		routes[i].Handler = s.Guard(route.Role, once(route.Handler))
	}
	return routes
}

// may reports whether a role may open the page at a path or, if there is no page, make the
// change. A path with a method in front asks for that method only.
func (s *Site) may(role operator.Role, path string) bool {
	for _, method := range []string{"", http.MethodGet + " ", http.MethodPost + " "} {
		if needed, ok := s.roles[method+path]; ok {
			return role.Allows(needed)
		}
	}
	return false
}

// IsSent reports whether the request submits a form.
func IsSent(ctx echo.Context) bool { return ctx.Request().Method == http.MethodPost }

// IsFragment reports whether htmx asks for a part of a page.
func IsFragment(ctx echo.Context) bool {
	header := ctx.Request().Header
	return header.Get("HX-Request") == "true" && header.Get("HX-Boosted") == ""
}

// isStream reports whether the request is for an event stream. htmx accepts streams on all
// its requests, so the path decides.
func isStream(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/live") }

// UID returns the identifier in the request's path. Error: NOT_FOUND.
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

// Named returns what find reads for the identifier in the request's path. Error: NOT_FOUND.
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

// SessionUID returns the session id in the request's path. Error: NOT_FOUND.
func SessionUID(ctx echo.Context) (uuid.UUID, error) {
	session, err := uuid.Parse(ctx.Param("session"))
	if err != nil {
		return uuid.Nil, lending.NewError(lending.CodeNotFound, "this session has ended already")
	}
	return session, nil
}

// Redirect redirects the browser to another page, even if a script requested only a part of
// this one.
func Redirect(ctx echo.Context, target string) error {
	if IsFragment(ctx) {
		ctx.Response().Header().Set("HX-Redirect", target)
		return ctx.NoContent(http.StatusOK)
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}

// SafeNext returns next if it is a path of the console, otherwise the console's home.
func SafeNext(next string) string {
	inside := next == paths.Home || strings.HasPrefix(next, paths.Home+"/") ||
		strings.HasPrefix(next, paths.Home+"?")
	if !inside || strings.ContainsAny(next, "\\\r\n\t") || strings.Contains(next, "..") {
		return paths.Home
	}
	return next
}

// CameFrom returns the requested page of the console or, for a submitted form, the page
// that it was sent from.
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

// FormatUID formats an identifier; the nil UUID is the empty string.
func FormatUID(uid uuid.UUID) string {
	if uid == uuid.Nil {
		return ""
	}
	return uid.String()
}
