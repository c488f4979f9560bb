// Package web puts the partner API, the console and the documentation behind
// one Echo server: the order of the middleware, the route table, and the one
// place where an error becomes an answer.
package web

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"drawbridge/web/api"
	"drawbridge/web/console"
	"drawbridge/web/docs"
)

// The deadlines of a connection. A client that sends its header or body too slowly is
// disconnected.
const (
	readHeadTimeout = 10 * time.Second
	readBodyTimeout = 30 * time.Second
	// uploadTimeout is enough for 50 MiB over a slow line.
	uploadTimeout = 5 * time.Minute
	// The bounds on reading the rest of a refused body. A client that sends more is disconnected.
	discardTimeout = 20 * time.Second
	maxDiscarded   = 256 << 20
	// idleTimeout is longer than load balancers keep an idle connection.
	idleTimeout  = 90 * time.Second
	maxHeadBytes = 64 << 10
)

// Options configure the server. A part that is nil is not served.
type Options struct {
	API     *api.API
	Console *console.Console
	Docs    *docs.Site
	// BasePath precedes the API's paths, for example /api.
	BasePath string
	// Ready returns what is missing before the process can serve, nil if nothing is.
	Ready func(r *http.Request) []string
	// Replica describes how the database's replica is used, empty if there is none.
	Replica func() string
	// Stopping reports whether the process is about to stop accepting; nil means never.
	Stopping func() bool
	// Metrics serves the metrics of the process.
	Metrics http.Handler
	// Receiver accepts the demo webhooks of a development server.
	Receiver http.Handler
	// Requests records the API requests of partners; nil records nothing.
	Requests Recorder
	// Environment is sent as a header with every answer; empty in production.
	Environment string
	// TrustedProxies are the proxies whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// Secure means that browsers reach the service by https only.
	Secure bool
	// DatabaseTimeout bounds the time that a request may spend waiting for the database. Zero
	// means postgres.DefaultTimeout.
	DatabaseTimeout time.Duration
	// Observe, unless nil, is called for every answered request.
	Observe func(Answered)
	// Now is the clock of the answers' timestamps.
	Now func() time.Time
}

// extractAddress returns the peer's address or, if the peer is a trusted proxy, the last
// address in X-Forwarded-For that is not a trusted proxy's. The caller may have made up
// everything before that one.
func extractAddress(trusted []netip.Prefix) echo.IPExtractor {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{
		echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false),
	}
	for _, prefix := range trusted {
		_, network, err := net.ParseCIDR(prefix.String())
		if err == nil {
			options = append(options, echo.TrustIPRange(network))
		}
	}
	extract := echo.ExtractIPFromXFFHeader(options...)
	return func(request *http.Request) string {
		plain := *request
		plain.Header = http.Header{echo.HeaderXForwardedFor: addresses(request.Header)}
		return extract(&plain)
	}
}

// addresses returns X-Forwarded-For without the ports that some proxies add.
func addresses(header http.Header) []string {
	var plain []string
	for _, line := range header[echo.HeaderXForwardedFor] {
		entries := strings.Split(line, ",")
		for i, entry := range entries {
			if address, err := netip.ParseAddrPort(strings.TrimSpace(entry)); err == nil {
				entries[i] = address.Addr().String()
			}
		}
		plain = append(plain, strings.Join(entries, ","))
	}
	return plain
}

// strictHeaders sets the headers of every answer, so that browsers do not misinterpret it
// and nobody mistakes a sandbox for production. The console and the documentation add to
// them.
func strictHeaders(options Options) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			header := c.Response().Header()
			header.Set(echo.HeaderXContentTypeOptions, "nosniff")
			header.Set(echo.HeaderContentSecurityPolicy,
				"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
			header.Set("Referrer-Policy", "no-referrer")
			header.Set("Cross-Origin-Resource-Policy", "same-origin")
			header.Set("Cache-Control", "no-store")
			if options.Environment != "" {
				header.Set("X-Drawbridge-Environment", options.Environment)
			}
			if options.Secure {
				header.Set(echo.HeaderStrictTransportSecurity, "max-age=31536000")
			}
			if options.Stopping != nil && options.Stopping() {
				// Tell the client to send no further request on this connection.
				header.Set(echo.HeaderConnection, "close")
			}
			return next(c)
		}
	}
}

// Answered describes one answered request, for metrics.
type Answered struct {
	Method string
	// Route is the path with its parameters' names, empty if no route matched.
	Route  string
	Status int
	// Took excludes the time for which the answer was held back on purpose.
	Took time.Duration
	// InternalError means that the answer hides an error of our own.
	InternalError bool
	// Client is the authenticated client, empty if there is none.
	Client string
}

// New returns the server's handler.
func New(options Options) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = extractAddress(options.TrustedProxies)
	e.HTTPErrorHandler = newErrorHandler(options)
	e.Pre(refuseAtOnce, boundReaders, strictHeaders(options), requestID, recordCalls(options),
		limitDatabaseWait(options.DatabaseTimeout), logRequests(options))
	e.Use(traceRequests, recoverPanics, deadline(readBodyTimeout))
	table := Table(options)
	e.Use(refuseMethods(table))
	for _, route := range table {
		e.Add(route.Method, route.Path, route.handler, route.middleware...).Name = route.Name
		// If no route lies below this one, the router would match all further segments as part of
		// the last parameter.
		last := route.Path[strings.LastIndexByte(route.Path, '/'):]
		if route.isOperation() && strings.HasPrefix(last, "/:") &&
			!slices.ContainsFunc(table, func(other Route) bool {
				return strings.HasPrefix(other.Path, route.Path+"/")
			}) {
			e.RouteNotFound(route.Path+"/*", echo.NotFoundHandler)
		}
	}
	if options.Console != nil {
		e.RouteNotFound(console.Prefix+"/*", options.Console.Elsewhere())
	}
	return e
}

// NewServer returns an HTTP server for the handler with the deadlines set.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler,
		// Let the handler answer OPTIONS *, so that it gets the usual envelope.
		DisableGeneralOptionsHandler: true,

		ReadHeaderTimeout: readHeadTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeadBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams,
			WriteByteTimeout:     chunkTimeout,
		},
	}
}

// refuseAtOnce sends a refusal before the rest of the body has arrived: net/http would wait
// for a short body and break off a long one. The rest is then read and discarded, up to a
// bound, so that the client sees the answer rather than a broken connection. Nothing is
// read if the client still waits for "100 Continue".
func refuseAtOnce(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if c.Request().ContentLength == 0 || c.Request().ProtoMajor > 1 {
			return next(c)
		}
		answer, controller := c.Response(), http.NewResponseController(c.Response().Writer)
		body, asks := watchBody(c), c.Request().Header.Get("Expect") != ""
		err := next(c)
		waits := asks && !body.begun
		if waits || body.ended || answer.Status < http.StatusBadRequest ||
			answer.Header().Get(echo.HeaderContentLength) == "" {
			return err
		}
		// If any of these fails, the connection is gone.
		_ = controller.EnableFullDuplex()
		_ = controller.Flush()
		_ = controller.SetReadDeadline(time.Now().Add(discardTimeout))
		if _, err := io.CopyN(io.Discard, body, maxDiscarded); !errors.Is(err, io.EOF) {
			// The rest of the body must not be parsed as the next request.
			panic(http.ErrAbortHandler)
		}
		return err
	}
}

// watchedBody tracks how much of a body was read.
type watchedBody struct {
	io.ReadCloser

	begun, ended bool
	read         int64 // in bytes
	// arrived, unless nil, is called when the whole body was read.
	arrived func()
}

// watchBody wraps the body of a request, or returns the wrapper that it already has.
func watchBody(c echo.Context) *watchedBody {
	if body, ok := c.Request().Body.(*watchedBody); ok {
		return body
	}
	body := &watchedBody{ReadCloser: c.Request().Body}
	// Replace the body in a copy: net/http inspects its own request to see whether a client
	// that sent "Expect: 100-continue" still waits to send a body.
	request := *c.Request()
	request.Body = body
	c.SetRequest(&request)
	return body
}

// Read implements io.Reader.
func (b *watchedBody) Read(data []byte) (int, error) {
	b.begun = true
	n, err := b.ReadCloser.Read(data)
	b.read += int64(n)
	b.ended = b.ended || err != nil
	if errors.Is(err, io.EOF) && b.arrived != nil {
		b.arrived()
	}
	return n, err
}

// deadline bounds the time in which the body of a request must arrive. It is lifted once
// the body was read: net/http goes on reading from the connection during a request, and a
// deadline that passed would cancel this request and all later ones on the connection.
func deadline(limit time.Duration) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Request().ContentLength == 0 {
				return next(c)
			}
			controller := http.NewResponseController(c.Response().Writer)
			// A writer that supports no deadlines belongs to a test without a connection.
			_ = controller.SetReadDeadline(time.Now().Add(limit))
			watchBody(c).arrived = func() { _ = controller.SetReadDeadline(time.Time{}) }
			return next(c)
		}
	}
}

// endless exempts an answer from answerTimeout.
func endless(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if bound := findBound(c.Response().Writer); bound != nil {
			bound.endless = true
		}
		return next(c)
	}
}

// recoverPanics turns a panic into an error with its stack, which the error handler logs.
var recoverPanics = middleware.RecoverWithConfig(middleware.RecoverConfig{
	StackSize:           16 << 10,
	DisableStackAll:     true,
	DisableErrorHandler: true,
	LogErrorFunc: func(_ echo.Context, err error, stack []byte) error {
		return fmt.Errorf("panic: %w\n%s", err, stack)
	},
})
