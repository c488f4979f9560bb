// Package api serves programs: the REST operations of partners under /v2 and of the
// lender's own systems under /lender/v1, their credentials, their limits and the one
// envelope of every answer.
//
// A handler decodes, calls a service and encodes. What changes anything runs
// through effect, which opens the transaction, so that the reply kept under an
// Idempotency-Key commits together with what it reports.
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

// API holds what its operations call. Each resource is a struct with the part that it
// needs and its routes.
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
	// Statements are the daily ones of merchants.
	Statements *statement.Service
	// Admission bounds the calls that are worked at a time; nil bounds nothing.
	Admission *admission.Limiter
	// Calls is told of every call; nil is told nothing.
	Calls *delivery.Gate
	// Now is the clock of the answers' timestamps.
	Now func() time.Time
	// Sandbox registers the operations that play the lender's part, and those of Scenarios
	// and Faults, which are nil without it.
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
	// Scopes make the operation one of the lender's own systems: who has any of them may
	// call it. Without any it is one of partners.
	Scopes []partner.Scope
	// MaxBody bounds a JSON body in bytes; zero is the usual bound.
	MaxBody int64
	// Upload tells that the body is multipart and may be large.
	Upload bool
	// AllMerchants tells that a group client may name no merchant, and then calls for
	// all of its own: the handler sees to what they may see by merchantsOf.
	AllMerchants bool
	// Waits tells that the answer may be held back until there is something to tell.
	Waits bool
}

// get is the route of a call that reads.
func get(path, name string, handler echo.HandlerFunc) Route {
	return Route{Method: http.MethodGet, Path: path, Name: name, Handler: handler}
}

// post is the route of a call that changes something.
func post(path, name string, handler echo.HandlerFunc) Route {
	return Route{Method: http.MethodPost, Path: path, Name: name, Handler: handler}
}

// forAll lets group clients call for all of their merchants, as AllMerchants says.
func (r Route) forAll() Route {
	r.AllMerchants = true
	return r
}

// IsLender tells that the operation is one of the lender's own systems.
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
