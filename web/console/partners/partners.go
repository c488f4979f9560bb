// Package partners is the console's pages about partners and the log of their requests.
package partners

import (
	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
	"drawbridge/internal/operator"
	"drawbridge/internal/retention"
	"drawbridge/views/paths"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Applications *application.Service
	Requests     *apilog.Service
	Retention    *retention.Service
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	return append(list.Routes(f.Engine, f.requests()),
		page.Get(paths.Request, "console.request", operator.RoleSupport, f.request))
}
