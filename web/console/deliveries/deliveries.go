// Package deliveries is the console's pages about deliveries: their log, the page of one,
// and what is done to them.
package deliveries

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/alert"
	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/views/deliveries"
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
		if sought := ctx.QueryParam("q"); sought != "" { // what was once looked for here
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

// stateWaiting is a tab besides the states: pending and retrying deliveries.
const stateWaiting delivery.State = ui.WaitingDeliveries

// states are the tabs, what needs a human first.
var states = []delivery.State{
	delivery.StateFailed, stateWaiting, delivery.StateRetrying, delivery.StatePending,
	delivery.StateDelivered, delivery.StateCancelled,
}

// deliveries lists the delivery log.
func (f *Feature) deliveries() list.Spec[delivery.Delivery] {
	tabs := list.Options("All", states, func(state delivery.State) string {
		if state == stateWaiting {
			return "Waiting"
		}
		return ui.DeliveryChip(state).Word
	})
	return list.Spec[delivery.Delivery]{
		Name: "console.deliveries", Path: paths.Deliveries, Role: operator.RoleSupport, Place: place,
		Intro: "Every event sent to a partner's endpoint, one row per delivery.",
		One:   "delivery", Many: "deliveries", Order: "Newest first",
		Tabs:    list.Tabs{Name: "state", Options: tabs},
		Filters: filters(),
		Read: func(v *list.Values) list.Source[delivery.Delivery] {
			filter := readFilter(v)
			source := list.Filtered(filter, func(
				ctx context.Context, filter delivery.Filter, page postgres.Paging,
			) ([]delivery.Delivery, postgres.Cursor, error) {
				filter.Cursor, filter.Limit = page.From, page.Limit
				found, err := f.Webhooks.Deliveries.List(ctx, filter)
				return found.Deliveries, found.Next, err
			}, f.Webhooks.Deliveries.Count)
			source.Newer = func(ctx context.Context, page postgres.Paging) (int, error) {
				newer := filter
				newer.Cursor = page.From
				return f.Webhooks.Deliveries.CountNewer(ctx, newer, page.Limit)
			}
			return source
		},
		Table: deliveries.Table,
		NoMatch: ui.EmptyProps{
			Title: "No delivery matches these filters", Text: "Remove a filter, or widen the time range.",
		},
		Empty: ui.EmptyProps{
			Icon: "send", Title: "No deliveries yet",
			Text: "A delivery appears here as soon as an event happens to an application of a partner " +
				"with a subscription: a draw, a change of status, a signed document.",
			Href: paths.Subscriptions, Action: "See subscriptions",
		},
		Unavailable: "The database did not answer in time. Nothing is lost: deliveries go on while " +
			"this page cannot show them.",
		File: &list.File[delivery.Delivery]{
			Path: paths.DeliveriesCSV, Name: "deliveries", Action: "delivery.export",
			Subject: "delivery",
			Columns: []string{
				"delivery_uid", "created_at", "state", "event", "status", "application_id", "partner_uid",
				"partner", "subscription_uid", "url", "event_uid", "event_at", "attempts",
				"next_attempt_at", "last_http_status", "last_error_class", "last_duration_ms",
				"finished_at", "test", "resend_of", "resent_by", "resend_reason",
			},
			Cells: cells,
		},
		Saved: true,
		Views: []list.View{
			{Label: "Failing now", Query: "state=retrying"},
			{Label: "Failed today", Query: "range=today&state=failed"},
			{Label: "Slow", Query: "slow=yes"},
		},
		PickAction: paths.BulkNew, PickButtons: deliveries.PickButtons(),
		Live: &list.Live[delivery.Delivery]{
			Path: paths.DeliveriesLive, Place: delivery.Delivery.Place,
		},
	}
}

func filters() []list.Filter {
	classes := list.Options("Any or none", sender.ErrorClasses(), deliveries.ErrorClassWord)
	return list.Colons(
		list.Choose("event", "Event", list.EventKinds()),
		list.Partner, list.Merchant, list.Subscription,
		list.Filter{Name: "application", Label: "Application id", Chip: "Application"},
		list.Filter{Name: "event_uid", Label: "Event id"},
		list.Filter{Name: "code", Label: "HTTP answer, such as 503 or 5xx", Chip: "Answer", Max: 3},
		list.Choose("error", "Error", classes),
		list.Either("test", "Test events", "With test events"),
		list.Either("resend", "Re-sends", "With re-sends"),
		list.Only("open", "Failures made good later", "With those", "without").Called("Made good"),
		list.Only("slow", "Last attempt took", "Any duration", "5 s and more").Called("Slow"),
		list.Range, list.Since, list.Until,
	)
}

// Filter reads the filter of the list from the query of its address; it is not right
// where wrong is not empty.
func (f *Feature) Filter(
	ctx echo.Context, query url.Values,
) (filter delivery.Filter, kept url.Values, wrong map[string]string) {
	v := list.Read(ctx, f.Engine, f.deliveries(), query)
	filter = readFilter(v)
	return filter, v.Query(), v.Wrong
}

func readFilter(v *list.Values) delivery.Filter {
	filter := delivery.Filter{
		State:      list.OneOf(v, "state", states),
		Event:      list.OneOf(v, "event", lending.AllEventKinds()),
		ErrorClass: list.OneOf(v, "error", sender.ErrorClasses()),
		Test:       v.YesNo("test"), Resend: v.YesNo("resend"), Slow: v.Is("slow"), Open: v.Is("open"),
		SubscriptionUID: v.UID("subscription"), PartnerUID: v.UID("partner"),
		MerchantUID: v.UID("merchant"), ApplicationUID: v.UID("application"),
		EventUID: v.UID("event_uid"), Limit: list.PageSize,
	}
	if filter.State == stateWaiting {
		filter.State, filter.Waiting = "", true
	}
	filter.Since, filter.Until = v.Span()
	code := strings.ToLower(v.Text("code"))
	digits, isClass := strings.CutSuffix(code, "xx")
	number, err := strconv.Atoi(digits)
	switch {
	case code == "":
	case err == nil && isClass && number >= 1 && number <= 9:
		filter.HTTPClass = number
	case err == nil && !isClass && number >= 100 && number <= 999:
		filter.HTTPStatus = number
	default:
		v.Wrong["code"] = "This is not an HTTP status; write one such as 503, or a class such as 5xx."
	}
	return filter
}

// cells are a delivery's line of the file; times are in UTC.
func cells(d delivery.Delivery) []string {
	owner := d.ApplicationUID.String()
	if d.Test { // that of a test event is a sample
		owner = ""
	}
	return []string{
		d.UID.String(), list.CellTime(d.CreatedAt), string(d.State), string(d.Event), d.Status,
		owner, d.PartnerUID.String(), d.PartnerName, d.SubscriptionUID.String(), d.URL,
		d.EventUID.String(), list.CellTime(d.EventAt), strconv.Itoa(d.AttemptCount),
		list.CellTime(d.Due()), list.CellNumber(int64(d.LastStatus())), string(d.LastError()),
		list.CellNumber(d.Took().Milliseconds()), list.CellTime(page.Value(d.FinishedAt)),
		strconv.FormatBool(d.Test), page.Known(page.Value(d.ResendOf)), page.Value(d.ResentBy),
		page.Value(d.ResendReason),
	}
}
