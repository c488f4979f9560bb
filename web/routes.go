package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/static"
	"drawbridge/web/console"
	"drawbridge/web/docs"
)

// Access says who may call a route.
type Access string

// The levels of access.
const (
	// AccessAnyone needs no credentials.
	AccessAnyone Access = "anyone"
	// AccessPartner needs the credentials of a partner's client.
	AccessPartner Access = "partner"
	// AccessLender needs the credentials of one of the lender's own systems.
	AccessLender Access = "lender"
	// AccessGuest is the console's sign-in.
	AccessGuest Access = "guest"
	// The console's roles. Each may do everything that the one before may.
	AccessSupport  Access = "support"
	AccessOperator Access = "operator"
	AccessAdmin    Access = "admin"
)

// Route is a line of the route table.
type Route struct {
	Method string
	// Path is the whole path, with parameters in Echo's notation.
	Path   string
	Name   string
	Access Access

	handler    echo.HandlerFunc
	middleware []echo.MiddlewareFunc
	// shadow marks a route that only refuses the method: see shadowed.
	shadow bool
}

// isOperation reports whether the route is called by programs with credentials.
func (r Route) isOperation() bool { return r.Access == AccessPartner || r.Access == AccessLender }

// Table lists every route of the server.
func Table(options Options) []Route {
	routes := []Route{
		anyone("/healthz", "health", health),
		anyone("/readyz", "ready", ready(options)),
		anyone("/metrics", "metrics", echo.WrapHandler(options.Metrics)),
	}
	routes = append(routes, heads(routes)...) // probes also use HEAD
	if options.Receiver != nil {
		routes = append(routes, Route{
			Method: http.MethodPost, Path: "/sample-receiver", Name: "sampleReceiver",
			Access: AccessAnyone, handler: echo.WrapHandler(options.Receiver),
		})
	}
	routes = append(routes, apiRoutes(options)...)
	// Someone who types the bare address wants to see pages.
	home := ""
	switch {
	case options.Console != nil:
		home = console.Prefix
	case options.Docs != nil:
		home = docs.Prefix
	}
	if home != "" {
		routes = append(routes, anyone("/", "home", func(c echo.Context) error {
			return c.Redirect(http.StatusSeeOther, home)
		}))
	}
	routes = append(routes, shadowed(routes)...)
	if options.Console != nil {
		for _, page := range options.Console.Routes() {
			// The console's roles double as levels of access.
			route := Route{
				Method: page.Method, Path: page.Path, Name: page.Name,
				Access: cmp.Or(Access(page.Role), AccessGuest), handler: page.Handler,
			}
			if strings.HasSuffix(page.Path, "/live") {
				// An event stream.
				route.middleware = []echo.MiddlewareFunc{endless}
			}
			routes = append(routes, route)
		}
	}
	files := []Route{anyone(static.Prefix+"*", "static", echo.WrapHandler(static.Handler()))}
	if options.Docs != nil {
		for _, page := range options.Docs.Routes() {
			files = append(files, anyone(page.Path, page.Name, page.Handler))
		}
	}
	return slices.Concat(routes, files, heads(files))
}

// heads adds a HEAD route for each GET route; net/http leaves out the body.
func heads(routes []Route) []Route {
	added := slices.Clone(routes)
	for i := range added {
		added[i].Method, added[i].Name = http.MethodHead, added[i].Name+".head"
	}
	return added
}

// shadowed adds GET routes for fixed paths that have no GET operation. Otherwise the router
// would match their last segment as the id of a resource.
func shadowed(routes []Route) []Route {
	var added []Route
	methods := methodsOf(routes)
	for _, route := range routes {
		if !route.isOperation() || strings.Contains(route.Path, ":") ||
			slices.Contains(methods[route.Path], http.MethodGet) {
			continue
		}
		shadow := anyone(route.Path, route.Name+".get", refuse(methods[route.Path]))
		shadow.shadow = true
		// A caller that the operation would turn away must not learn its methods either.
		shadow.Access, shadow.middleware = route.Access, route.middleware
		added = append(added, shadow)
	}
	return added
}

// methodsOf maps each path to its methods.
func methodsOf(table []Route) map[string][]string {
	methods := make(map[string][]string)
	for _, route := range table {
		if !route.shadow {
			methods[route.Path] = append(methods[route.Path], route.Method)
		}
	}
	for _, of := range methods {
		slices.Sort(of)
	}
	return methods
}

// refuse returns a handler that answers 405 with the methods that the path has.
func refuse(methods []string) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAllow, strings.Join(methods, ", "))
		return echo.ErrMethodNotAllowed
	}
}

func anyone(path, name string, handler echo.HandlerFunc) Route {
	return Route{
		Method: http.MethodGet, Path: path, Name: name, Access: AccessAnyone, handler: handler,
	}
}

func apiRoutes(options Options) []Route {
	if options.API == nil {
		return nil
	}
	var routes []Route
	for _, operation := range options.API.Routes() {
		middleware := []echo.MiddlewareFunc{options.API.Guard(operation)}
		if operation.Upload {
			middleware = append(middleware, deadline(uploadTimeout))
		}
		access := AccessPartner
		if operation.IsLender() {
			access = AccessLender
		}
		for _, path := range []string{operation.Path, operation.Alias} {
			if path == "" {
				continue
			}
			routes = append(routes, Route{
				Method: operation.Method, Path: options.BasePath + path, Name: operation.Name,
				Access: access, handler: operation.Handler, middleware: middleware,
			})
		}
	}
	return routes
}

// refuseMethods answers wrong methods. The router would answer OPTIONS itself, without the
// envelope, and list it and shadowed methods in Allow although no path serves them. A
// caller that an operation of the path would turn away must not learn its methods.
func refuseMethods(table []Route) echo.MiddlewareFunc {
	methods := methodsOf(table)
	guards := make(map[string][]echo.MiddlewareFunc)
	for _, route := range table {
		if route.isOperation() {
			guards[route.Path] = route.middleware
		}
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if _, wrong := c.Get(echo.ContextKeyHeaderAllow).(string); !wrong {
				return next(c)
			}
			answer := refuse(methods[c.Path()])
			for _, guard := range slices.Backward(guards[c.Path()]) {
				answer = guard(answer)
			}
			return answer(c)
		}
	}
}

// health answers 200 as long as the process runs.
func health(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
}

// ready answers 503 and names what is missing until the process can serve.
func ready(options Options) echo.HandlerFunc {
	return func(c echo.Context) error {
		var gaps []string
		if options.Stopping != nil && options.Stopping() {
			gaps = []string{"the process is stopping"}
		} else {
			gaps = options.Ready(c.Request())
		}
		if len(gaps) == 0 {
			answer := map[string]any{"status": "ready"}
			if options.Replica != nil {
				if said := options.Replica(); said != "" {
					answer["replica"] = said
				}
			}
			return c.JSON(http.StatusOK, answer)
		}
		suggestRetry(c)
		return c.JSON(http.StatusServiceUnavailable, map[string]any{
			"status": "not ready", "missing": gaps, "message": strings.Join(gaps, "; "),
		})
	}
}
