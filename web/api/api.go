// Package api serves programs: the REST operations of partners under /v2 and of the
// lender's own systems under /lender/v1. It checks their credentials and limits, and wraps
// every answer in the one envelope.
//
// A handler decodes, calls a service and encodes. Every change runs through effect, which
// opens the transaction, so that the reply kept under an Idempotency-Key commits together
// with the change it reports.
package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/admission"
	"drawbridge/internal/application"
	"drawbridge/internal/document"
	"drawbridge/internal/feed"
	"drawbridge/internal/idempotency"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/scenario"
	"drawbridge/internal/statement"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/fault"
)

// API holds the services that its operations call. Each resource is a struct with the
// services it needs and its routes.
type API struct {
	Partners     *partner.Service
	Limiter      *partner.Limiter
	Idempotency  *idempotency.Store
	Applications *application.Service
	Loans        *loan.Service
	Feed         *feed.Service
	Deliveries   *delivery.Service
	Bulk         *bulk.Service
	Documents    *document.Store
	Operators    *operator.Service
	// Statements are the daily statements of merchants.
	Statements *statement.Service
	// Admission bounds the requests that are processed at a time; nil bounds nothing.
	Admission *admission.Limiter
	// Calls is notified of the requests in progress, so that deliveries yield to them; nil is valid.
	Calls *delivery.Gate
	// Now is the clock of the answers' timestamps.
	Now func() time.Time
	// Sandbox registers the operations that play the lender's part, and those of Scenarios and
	// Faults, which are nil otherwise.
	Sandbox   bool
	Scenarios *scenario.Service
	Faults    *fault.Service

	credentials credentialLimit
	uploads     uploads
}

// Route is one operation.
type Route struct {
	Method string
	// Path is relative to the base path.
	Path string
	// Alias is a second path of the same operation, empty for none.
	Alias   string
	Name    string
	Handler echo.HandlerFunc
	// Scopes make the operation one of the lender's own systems; a system needs any one of
	// them. Without scopes the operation is one of partners.
	Scopes []partner.Scope
	// MaxBody bounds a JSON body in bytes; zero means maxJSON.
	MaxBody int64
	// Upload means that the body is multipart and may be large.
	Upload bool
	// AllMerchants means that a group client may name no merchant and then acts for all of its
	// own. The handler restricts the answer to merchantsOf.
	AllMerchants bool
	// Waits means that the answer may be held back until there is an event to return.
	Waits bool
}

// get returns the route of an operation that reads.
func get(path, name string, handler echo.HandlerFunc) Route {
	return Route{Method: http.MethodGet, Path: path, Name: name, Handler: handler}
}

// post returns the route of an operation that changes something.
func post(path, name string, handler echo.HandlerFunc) Route {
	return Route{Method: http.MethodPost, Path: path, Name: name, Handler: handler}
}

// forAll sets AllMerchants.
func (r Route) forAll() Route {
	r.AllMerchants = true
	return r
}

// IsLender reports whether the operation is one of the lender's own systems.
func (r Route) IsLender() bool { return len(r.Scopes) > 0 }

// Routes lists every operation. All of them need credentials.
func (a *API) Routes() []Route {
	edge := &edge{a.Idempotency, a.Partners, &a.uploads, a.Now}
	routes := slices.Concat(
		(&applications{edge, a.Applications}).routes(),
		(&loans{edge, a.Loans, a.Documents}).routes(),
		(&events{edge, a.Feed}).routes(),
		(&deliveries{edge, a.Deliveries, a.Bulk}).routes(),
		(&statements{edge, a.Statements}).routes(),
		(&lender{edge, a.Applications, a.Loans, a.Documents, a.Operators}).routes(),
	)
	if a.Sandbox {
		routes = append(routes, (&sandbox{edge, a.Applications, a.Loans, a.Scenarios}).routes()...)
		routes = append(routes, (&faults{edge, a.Faults, a.Deliveries}).routes()...)
	}
	return routes
}
