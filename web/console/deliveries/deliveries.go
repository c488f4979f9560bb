// Package deliveries is the console's pages about deliveries: the log, single deliveries,
// and the changes to them.
package deliveries

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/alert"
	"drawbridge/internal/application"
	"drawbridge/internal/operator"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Webhooks     *webhook.Services
	Applications *application.Service
	Alerts       *alert.Service
}

// Routes lists the pages and changes.
func (f *Feature) Routes() []page.Route {
	const support, operators = operator.RoleSupport, operator.RoleOperator
	routes := list.Routes(f.Engine, f.deliveries())
	shown := routes[0].Handler
	routes[0].Handler = func(ctx echo.Context) error {
		if sought := ctx.QueryParam("q"); sought != "" { // earlier links searched here
			return ctx.Redirect(http.StatusSeeOther, paths.Where(paths.Search, "q", sought))
		}
		return shown(ctx)
	}
	return append(routes,
		page.Post(paths.DeliveriesCancel, "console.deliveries.cancel", operators, f.cancel),
		page.Get(paths.Delivery, "console.delivery", support, f.delivery),
		page.Get(paths.Failures, "console.failures", support, f.failures),
		page.Get(paths.DeliveryLive, "console.delivery.live", support, f.deliveryLive),
		page.Get(paths.Resend, "console.resend", support, f.resendForm),
		page.Post(paths.Resend, "console.resend.submit", support, f.resend),
		page.Get(paths.Doctor, "console.doctor", support, f.doctor),
		page.Post(paths.Doctor, "console.doctor.submit", support, f.examine),
	)
}

var place = page.Place{Section: ui.SectionDeliveries, Title: "Deliveries"}

// Filter reads the filter of the list from the query of its address. The filter is not
// valid if wrong is not empty.
func (f *Feature) Filter(
	ctx echo.Context, query url.Values,
) (filter delivery.Filter, kept url.Values, wrong map[string]string) {
	v := list.Read(ctx, f.Engine, f.deliveries(), query)
	filter = readFilter(v)
	return filter, v.Query(), v.Wrong
}
