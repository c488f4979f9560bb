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

// The deadlines of a connection. A client that sends its head or its body drop
// by drop is cut off.
const (
	readHeadTimeout = 10 * time.Second
	readBodyTimeout = 30 * time.Second
	// uploadTimeout lets 50 MiB arrive over a slow line.
	uploadTimeout = 5 * time.Minute
	// What is read of a body that was refused: a client that sends more is cut off.
	discardTimeout = 20 * time.Second
	maxDiscarded   = 256 << 20
	// idleTimeout is longer than balancers keep a connection that nobody uses.
	idleTimeout  = 90 * time.Second
	maxHeadBytes = 64 << 10
)

// Options are what the server is made of. A nil part is not served.
type Options struct {
	API     *api.API
	Console *console.Console
	Docs    *docs.Site
	// BasePath stands before the API's paths, such as /api.
	BasePath string
	// Ready tells what is missing before the process can serve, nil for nothing.
	Ready func(r *http.Request) []string
	// Replica tells how the replica of the database is used, empty where there is none.
	Replica func() string
	// Stopping tells that the process is about to stop accepting; nil means never.
	Stopping func() bool
	// Metrics serves the metrics of the process.
	Metrics http.Handler
	// Receiver accepts the demo webhooks of a development server.
	Receiver http.Handler
	// Requests keeps what partners asked; nil keeps nothing.
	Requests Recorder
	// Environment is named on every answer; empty in production.
	Environment string
	// TrustedProxies may say in X-Forwarded-For where a request comes from.
	TrustedProxies []netip.Prefix
	// Secure tells that browsers reach the service by https alone.
	Secure bool
	// DatabaseTimeout is how long a request may take because of the database;
	// postgres.DefaultTimeout when zero.
	DatabaseTimeout time.Duration
	// Observe is told of every answered request, unless nil.
	Observe func(Answered)
	// Now is the clock of the answers' timestamps.
	Now func() time.Time
}

// extractAddress returns the peer's address or, from a trusted proxy, the last
// one in X-Forwarded-For that is not itself a trusted proxy's: what stands before
// it was written by the caller.
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

// addresses are those of X-Forwarded-For without the ports that some proxies add.
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

// strictHeaders sets what every answer carries, so that a browser never takes an
// answer for what it is not, nor a sandbox for production; the console and the
// documentation add to it.
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
				// The client is to make no further request on this connection.
				header.Set(echo.HeaderConnection, "close")
			}
			return next(c)
		}
	}
}

// Answered is one request that was answered, for anyone who counts them.
type Answered struct {
	Method string
	// Route is the path with the names of its parameters, empty without a route.
	Route  string
	Status int
	// Took leaves out for how long the answer was held back on purpose.
	Took time.Duration
	// InternalError tells that the answer hides an error of our own.
	InternalError bool
	// Client is whose credentials the request had, empty for none that are valid.
	Client string
}

// New returns the server's handler.
func New(options Options) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.IPExtractor = extractAddress(options.TrustedProxies)
	e.HTTPErrorHandler = newErrorHandler(options)
	e.Pre(refuseAtOnce, boundReaders, strictHeaders(options), requestID, recordCalls(options),
		patient(options.DatabaseTimeout), logRequests(options))
	e.Use(traceRequests, recoverPanics, deadline(readBodyTimeout))
	table := Table(options)
	e.Use(refuseMethods(table))
	for _, route := range table {
		e.Add(route.Method, route.Path, route.handler, route.middleware...).Name = route.Name
		// Where no route lies below, the router would take all that follows for a part of the
		// last parameter.
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
		// OPTIONS * is answered as any other address.
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

// refuseAtOnce sends a refusal before the rest of the body has come: the server would wait for a
// short one first, and break a long one off. The rest is read then and thrown away, up to a
// bound, so that the client sees the answer and no broken connection. Nothing is read where the
// client waits for a word before it sends its body.
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
		// A connection that fails here is gone.
		_ = controller.EnableFullDuplex()
		_ = controller.Flush()
		_ = controller.SetReadDeadline(time.Now().Add(discardTimeout))
		if _, err := io.CopyN(io.Discard, body, maxDiscarded); !errors.Is(err, io.EOF) {
			// What may be left of the body must not be taken for the next request.
			panic(http.ErrAbortHandler)
		}
		return err
	}
}

// watchedBody tells how far a body was read.
type watchedBody struct {
	io.ReadCloser

	begun, ended bool
	read         int64 // in bytes
	// arrived is called when the whole body was read, nil for nobody.
	arrived func()
}

// watchBody watches the body of a request, or returns what watches it already.
func watchBody(c echo.Context) *watchedBody {
	if body, ok := c.Request().Body.(*watchedBody); ok {
		return body
	}
	body := &watchedBody{ReadCloser: c.Request().Body}
	// A copy: the server looks at its own request to tell whether a client that
	// asked first still waits to send a body that nobody wants.
	request := *c.Request()
	request.Body = body
	c.SetRequest(&request)
	return body
}

// Read reads what the client sends.
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

// deadline bounds the time in which the body of a request must arrive, and no longer: the server
// goes on reading from the connection while a request is worked, and a deadline that passes
// then cancels the request and every later one of the connection.
func deadline(limit time.Duration) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Request().ContentLength == 0 {
				return next(c)
			}
			controller := http.NewResponseController(c.Response().Writer)
			// A writer without deadlines is that of a test without a connection.
			_ = controller.SetReadDeadline(time.Now().Add(limit))
			watchBody(c).arrived = func() { _ = controller.SetReadDeadline(time.Time{}) }
			return next(c)
		}
	}
}

// endless lets an answer go on for as long as its reader stays.
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
