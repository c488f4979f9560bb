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
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/document"
	"drawbridge/internal/feed"
	"drawbridge/internal/idempotency"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/scenario"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/fault"
)

// API holds what the handlers call.
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

// IsLender tells that the operation is one of the lender's own systems.
func (r Route) IsLender() bool { return len(r.Scopes) > 0 }

// Routes lists every operation. All of them need credentials.
func (a *API) Routes() []Route {
	routes := []Route{
		{
			Method: http.MethodPost, Path: "/v2/application", Alias: "/application",
			Name: "createApplication", Handler: a.createApplication,
		},
		{
			Method: http.MethodGet, Path: "/v2/application",
			Name: "listApplications", Handler: a.listApplications, AllMerchants: true,
		},
		{
			Method: http.MethodPost, Path: "/v2/application/create-run-decision",
			Alias: "/application/create-run-decision",
			Name:  "runDecision", Handler: a.runDecision,
		},
		{
			Method: http.MethodPut, Path: "/v2/application/accept-offer",
			Name: "acceptOffer", Handler: a.acceptOffer,
		},
		{
			Method: http.MethodGet, Path: "/v2/application/:uid",
			Name: "getApplication", Handler: a.getApplication,
		},
		{
			Method: http.MethodGet, Path: "/v2/loan/:uid",
			Name: "getLoan", Handler: a.getLoan,
		},
		{
			Method: http.MethodGet, Path: "/v2/loan/:uid/draw-preview",
			Name: "previewDraw", Handler: a.previewDraw,
		},
		{
			Method: http.MethodPost, Path: "/v2/loan/:uid/request-draw",
			Name: "requestDraw", Handler: a.requestDraw, Upload: true,
		},
		{
			Method: http.MethodPost, Path: "/v2/loan/:uid/completion-cert-upload",
			Alias: "/loan/:uid/completion-cert-upload",
			Name:  "uploadCertificate", Handler: a.uploadCertificate, Upload: true,
		},
	}
	routes = append(routes, a.feedRoutes()...)
	routes = append(routes, a.deliveryRoutes()...)
	routes = append(routes, a.lenderRoutes()...)
	if a.Sandbox {
		routes = append(routes, a.sandboxRoutes()...)
	}
	return routes
}

func (a *API) sandboxRoutes() []Route {
	post := func(path, name string, handler echo.HandlerFunc) Route {
		return Route{
			Method: http.MethodPost, Path: "/v2/sandbox" + path, Name: name, Handler: handler,
		}
	}
	faults := func(method, path, name string, handler echo.HandlerFunc) Route {
		return Route{
			Method: method, Path: "/v2/sandbox/faults" + path, Name: name, Handler: handler,
			AllMerchants: true,
		}
	}
	return []Route{
		post("/scenario", "sandboxScenario", a.sandboxScenario),
		faults(http.MethodPost, "", "sandboxFault", a.orderFault),
		faults(http.MethodGet, "", "sandboxFaults", a.listFaults),
		faults(http.MethodDelete, "/:uid", "sandboxFaultWithdraw", a.withdrawFault),
		post("/application/:uid/status", "sandboxStatus", a.sandboxStatus),
		post("/application/:uid/amount", "sandboxAmount", a.sandboxAmount),
		post("/application/:uid/terms", "sandboxTerms", a.sandboxTerms),
		post("/application/:uid/document", "sandboxDocument", a.sandboxDocument),
		post("/application/:uid/task", "sandboxTask", a.sandboxTask),
		post("/task/:uid/status", "sandboxTaskStatus", a.sandboxTaskStatus),
		post("/disbursement/:id/status", "sandboxFunding", a.sandboxFunding),
	}
}
