// Package operations is the console's pages about running Drawbridge: the overview, alerts,
// the job queues, the system, the settings, the audit log, the search.
package operations

import (
	"net/http"

	"drawbridge/internal/alert"
	"drawbridge/internal/config"
	"drawbridge/internal/email"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/processes"
	"drawbridge/internal/queue"
	"drawbridge/internal/restore"
	"drawbridge/internal/retention"
	"drawbridge/internal/search"
	"drawbridge/internal/webhook"
	"drawbridge/internal/why"
	"drawbridge/views/paths"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Alerts    *alert.Service
	Emails    *email.Service
	Processes *processes.Service
	Partners  *partner.Service
	Queues    *queue.Service
	Restored  *restore.Service
	Retention *retention.Service
	Search    *search.Service
	Why       *why.Service
	Webhooks  *webhook.Services
	// System is shown on the system page.
	System SystemFacts
	// Configuration lists the settings of the environment, with secrets masked.
	Configuration []config.Setting
	// Provider signs users in by OpenID Connect; nil for passwords only.
	Provider *operator.Provider
	// JobConsole is River's own console, nil for none.
	JobConsole http.Handler
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	const support, admin = operator.RoleSupport, operator.RoleAdmin
	routes := []page.Route{
		page.Get(paths.Home, "console.overview", support, f.MayLag(f.overview)),
		page.Get(paths.HomeLive, "console.overview.live", support, f.MayLag(f.overviewLive)),
		page.Get(paths.Alert, "console.attention.item", support, f.alert),
		page.Post(paths.Alert, "console.attention.act", operator.RoleOperator, f.actOnAlert),
		page.Get(paths.AuditEntry, "console.audit.entry", support, f.auditEntry),
		page.Get(paths.Search, "console.search", support, f.MayLag(f.search)),
		page.Get(paths.Why, "console.why", support, f.why),
		page.Get(paths.System, "console.system", support, f.system),
		page.Get(paths.Settings, "console.settings", admin, f.settings),
		page.Post(paths.SettingsSignIn, "console.settings.signIn", admin,
			f.Reauthenticated(f.Post(f.saveSignIn))),
		page.Post(paths.SettingsRetention, "console.settings.retention", admin, f.saveRetention),
		page.Get(paths.Queues, "console.queues", support, f.queues),
		page.Post(paths.QueueAct, "console.queue.act", admin, f.Post(f.steerQueue)),
	}
	routes = append(routes, list.Routes(f.Engine, f.alerts())...)
	routes = append(routes, list.Routes(f.Engine, f.audit())...)
	routes = append(routes, f.Actions(f.healthSettings())...)
	if f.JobConsole == nil {
		return routes
	}
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	} {
		routes = append(routes,
			page.Route{
				Method: method, Path: paths.JobConsole, Name: "console.river." + method,
				Role: admin, Handler: f.jobConsole,
			},
			page.Route{
				Method: method, Path: paths.JobConsoles, Name: "console.river.in." + method,
				Role: admin, Handler: f.jobConsole,
			})
	}
	return routes
}
