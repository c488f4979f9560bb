// Package console serves the lender's staff: sign-in, the delivery log, re-sends and the
// other pages of the console.
//
// A handler reads the request, calls a service and renders a page of package views, or only
// the page's live region if htmx asks for that. Everything works without script. Each route
// names the lowest role that may use it. The guard in front of every handler checks the
// role on every request, and the session and the origin of a change; it also sets the
// strict headers.
package console

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/alert"
	"drawbridge/internal/apilog"
	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/config"
	"drawbridge/internal/document"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/processes"
	"drawbridge/internal/queue"
	"drawbridge/internal/restore"
	"drawbridge/internal/retention"
	"drawbridge/internal/search"
	"drawbridge/internal/statement"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/why"
	"drawbridge/views/paths"
	subscriptionsview "drawbridge/views/subscriptions"
	"drawbridge/web/console/account"
	"drawbridge/web/console/action"
	"drawbridge/web/console/applications"
	"drawbridge/web/console/bulk"
	"drawbridge/web/console/deliveries"
	"drawbridge/web/console/development"
	"drawbridge/web/console/emails"
	"drawbridge/web/console/events"
	"drawbridge/web/console/list"
	"drawbridge/web/console/operations"
	"drawbridge/web/console/page"
	"drawbridge/web/console/partners"
	"drawbridge/web/console/people"
	"drawbridge/web/console/subscriptions"
)

// Prefix is the path under which every route of the console lies.
const Prefix = paths.Home

// Options configure the console.
type Options struct {
	DB           *postgres.DB
	Operators    *operator.Service
	Webhooks     *webhook.Services
	Search       *search.Service
	Statements   *statement.Service
	Why          *why.Service
	Emails       *email.Service
	Applications *application.Service
	Loans        *loan.Service
	// Documents is only read.
	Documents *document.Store
	Partners  *partner.Service
	Products  *catalog.Service
	// Requests is the log of the partners' API requests.
	Requests *apilog.Service
	// Alerts is the queue of what needs a person, Processes the state of the whole system.
	Alerts    *alert.Service
	Processes *processes.Service
	// Restored is the quarantine of a restored database.
	Restored *restore.Service
	// System is shown on the system page.
	System SystemFacts
	// BasePath precedes the API's paths, for example /api.
	BasePath string
	// Currency is the ISO 4217 code of every amount.
	Currency string
	// Retention holds the retention periods.
	Retention *retention.Service
	// Configuration lists the settings of the environment, with secrets masked.
	Configuration []config.Setting
	// Provider signs users in by OpenID Connect; nil for passwords only.
	Provider *operator.Provider
	// Queues reads, pauses and resumes the job queues.
	Queues *queue.Service
	// JobConsole is River's own console, nil for none.
	JobConsole http.Handler
	// PublicURL is the origin that browsers use, for example https://bridge.example.
	PublicURL string
	// Environment is shown over every page; empty in production.
	Environment string
	// Version names the running build.
	Version string
	// Development is nil in production.
	Development *Development
	// Snippets are programs that check a signature, shown beside a new secret.
	Snippets []subscriptionsview.Snippet
	// Status is the one map from error code to HTTP status.
	Status func(lending.Code) int
	// LiveEvery is how often a live page polls for changes; zero means a second.
	LiveEvery time.Duration
	// CountTimeout is how long a list waits for its count; zero means 50 ms.
	CountTimeout time.Duration
}

// Development holds the extras of a development server.
type Development = development.Server

// SystemFacts are the configuration shown on the system page.
type SystemFacts = operations.SystemFacts

// Console serves the console.
type Console struct {
	Options
	*page.Site
	Changes *action.Engine
	Lists   *list.Engine
	routes  []page.Route
	// failing and alerts are the counts beside links of the navigation rail.
	failing, alerts badge
}

// New returns a console. It fails when the public URL is not an origin.
func New(options Options) (*Console, error) {
	c := &Console{Options: options}
	site, err := page.NewSite(page.Options{
		DB: options.DB, Operators: options.Operators,
		Badges:    c.badges,
		PublicURL: options.PublicURL, Environment: options.Environment, Version: options.Version,
		Currency:    options.Currency,
		Development: options.Development != nil, Status: options.Status, LiveEvery: options.LiveEvery,
	})
	if err != nil {
		return nil, err
	}
	c.Site = site
	c.Changes = &action.Engine{Site: site, ShownOnce: shownOnce}
	c.Lists = &list.Engine{
		Engine: c.Changes, CountTimeout: options.CountTimeout, Things: options.Search,
	}
	c.routes = c.Mount(c.assemble(), c.Changes.Once)
	return c, nil
}

const (
	// recent is the period that the overview and the rail's badge cover.
	recent = 24 * time.Hour
	// maxBadge is the highest number that the rail's badge shows.
	maxBadge = 999
)

// badge is a count in the rail. If counting takes too long, the last count is kept.
type badge struct{ last atomic.Int64 }

func (b *badge) count(
	ctx context.Context, lists *list.Engine, count func(ctx context.Context) (int, error),
) (int, error) {
	found, err := lists.CountSoon(ctx, int(b.last.Load()), count)
	if err == nil {
		b.last.Store(int64(found))
	}
	return found, err
}

// badges counts the open alerts and the deliveries of a day that failed and were not made
// good. It goes by creation time, like the index and the list that the badge leads to.
func (c *Console) badges(ctx context.Context) (failing, alerts int, err error) {
	failing, err = c.failing.count(ctx, c.Lists, func(ctx context.Context) (int, error) {
		return c.Webhooks.Deliveries.Count(ctx, delivery.Filter{
			State: delivery.StateFailed, Open: true, Test: new(false),
			Since: c.Options.DB.Now().Add(-recent),
		}, maxBadge)
	})
	if err != nil {
		return 0, 0, err
	}
	alerts, err = c.alerts.count(ctx, c.Lists, func(ctx context.Context) (int, error) {
		return c.Alerts.Count(ctx, alert.Filter{State: alert.Waiting}, maxBadge)
	})
	return failing, alerts, err
}

// shownOnce maps a form's path to the notice for its second submission if the first showed
// a secret, or would have: see action.Engine.Once.
var shownOnce = map[string]string{
	paths.ClientNew:      issuedThen,
	paths.LenderNew:      issuedThen,
	paths.ClientRotate:   rotatedThen,
	paths.LenderRotate:   rotatedThen,
	paths.PersonNew:      passwordShownThen,
	paths.PersonPassword: passwordShownThen,
	paths.SecondFactor:   codesShownThen,
	paths.RecoveryCodes:  codesShownThen,
}

const (
	issuedThen = "These credentials were issued already, and no page shows their secret again. " +
		"If nobody copied it, rotate it."
	rotatedThen = "The secret was rotated already, and no page shows the new one again. " +
		"If nobody copied it, rotate again."
	passwordShownThen = "The one-time password was made already, and no page shows it again. " +
		"If nobody copied it, reset the password."
	codesShownThen = "The recovery codes were made already, and no page shows them again. " +
		"If you did not keep them, make new ones."
)

// Routes lists every page and change.
func (c *Console) Routes() []page.Route { return slices.Clone(c.routes) }

// assemble builds the features and returns their routes.
func (c *Console) assemble() []page.Route {
	log := &deliveries.Feature{
		Engine: c.Lists, Webhooks: c.Webhooks, Applications: c.Applications, Alerts: c.Alerts,
	}
	features := []interface{ Routes() []page.Route }{
		&account.Feature{Engine: c.Changes, Provider: c.Provider},
		&operations.Feature{
			Engine: c.Lists, Alerts: c.Alerts, Emails: c.Emails, Processes: c.Processes,
			Partners: c.Partners, Queues: c.Queues, Restored: c.Restored, Retention: c.Retention,
			Search: c.Search, Why: c.Why, Webhooks: c.Webhooks, System: c.System,
			Configuration: c.Configuration, Provider: c.Provider, JobConsole: c.JobConsole,
		},
		&applications.Feature{
			Engine: c.Lists, Applications: c.Applications, Documents: c.Documents, Loans: c.Loans,
			Partners: c.Partners, Products: c.Products, Retention: c.Retention, Webhooks: c.Webhooks,
		},
		log,
		&events.Feature{
			Engine: c.Lists, Webhooks: c.Webhooks, Partners: c.Partners, Applications: c.Applications,
		},
		&bulk.Feature{Engine: c.Lists, Webhooks: c.Webhooks, Filter: log.Filter},
		&subscriptions.Feature{
			Engine: c.Lists, Webhooks: c.Webhooks, Partners: c.Partners, Snippets: c.Snippets,
		},
		&emails.Feature{Engine: c.Lists, Emails: c.Emails},
		&partners.Feature{
			Engine: c.Lists, Partners: c.Partners, Applications: c.Applications, Webhooks: c.Webhooks,
			Requests: c.Requests, Retention: c.Retention, Statements: c.Statements,
			BasePath: c.BasePath,
		},
		&people.Feature{Engine: c.Lists},
	}
	if c.Development != nil {
		features = append(features, &development.Feature{
			Engine: c.Lists, Server: *c.Development, Partners: c.Partners, Webhooks: c.Webhooks,
		})
	}
	routes := []page.Route{
		page.Post(paths.Preferences, "console.preferences", operator.RoleSupport, c.SavePreferences),
		c.Lists.SaveRoute(), c.Lists.PickRoute(),
	}
	for _, feature := range features {
		routes = append(routes, feature.Routes()...)
	}
	return routes
}

// Elsewhere answers every path of the console that has no route, with a page that keeps
// signed-in users within the console.
func (c *Console) Elsewhere() echo.HandlerFunc {
	return c.Guard("", func(echo.Context) error {
		return lending.NewError(lending.CodeNotFound, "there is nothing at this path")
	})
}
