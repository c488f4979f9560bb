// Package deliveries is the console's pages about deliveries: their log, the page of one,
// and what is done to them.
package deliveries

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/attention"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
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
	Attention    *attention.Service
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

// deliveries lists the delivery log.
func (f *Feature) deliveries() list.Spec[delivery.Delivery] {
	tabs := list.Options("All", []delivery.State{ // what needs a human first
		delivery.StateFailed, delivery.StateRetrying, delivery.StatePending,
		delivery.StateDelivered, delivery.StateCancelled,
	}, func(state delivery.State) string { return ui.DeliveryChip(state).Word })
	return list.Spec[delivery.Delivery]{
		Name: "console.deliveries", Path: paths.Deliveries, Role: operator.RoleSupport, Place: place,
		Intro: "Every event sent to a partner's endpoint, one row per delivery.",
		One:   "delivery", Many: "deliveries", Order: "Newest first",
		Tabs:    list.Tabs{Name: "state", Options: tabs},
		Filters: f.filters(),
		Read: func(v *list.Values) list.Source[delivery.Delivery] {
			filter := readFilter(v)
			source := list.Filtered(filter, func(
				ctx context.Context, filter delivery.Filter, from postgres.Cursor, limit int,
			) ([]delivery.Delivery, postgres.Cursor, error) {
				filter.Cursor, filter.Limit = from, limit
				found, err := f.Webhooks.Deliveries.List(ctx, filter)
				return found.Deliveries, found.Next, err
			}, f.Webhooks.Deliveries.Count)
			source.Newer = func(ctx context.Context, from postgres.Cursor, limit int) (int, error) {
				newer := filter
				newer.Cursor = from
				return f.Webhooks.Deliveries.CountNewer(ctx, newer, limit)
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

func (f *Feature) filters() []list.Filter {
	classes := list.Options("Any or none", sender.ErrorClasses(), deliveries.ErrorClassWord)
	either := func(both string) []ui.Option {
		return []ui.Option{
			{Label: both}, {Value: "no", Label: "without"}, {Value: "yes", Label: "only"},
		}
	}
	return []list.Filter{
		{
			Name: "event", Label: "Event", Chip: "Event: ", Kind: list.Choice,
			Options: list.EventKinds(),
		},
		{
			Name: "partner", Label: "Partner", Chip: "Partner: ", Kind: list.Choice,
			Pick: search.Partner, Options: list.Any("All partners"),
		},
		{
			Name: "merchant", Label: "Merchant", Chip: "Merchant: ", Kind: list.Choice,
			Pick: search.Merchant, Options: list.Any("All merchants"),
		},
		{
			Name: "subscription", Label: "Subscription", Chip: "Subscription: ", Kind: list.Choice,
			Pick: search.Subscription, Options: list.Any("All subscriptions"),
		},
		{Name: "application", Label: "Application id", Chip: "Application: "},
		{Name: "event_uid", Label: "Event id", Chip: "Event id: "},
		{Name: "code", Label: "HTTP answer, such as 503 or 5xx", Chip: "Answer: ", Max: 3},
		{Name: "error", Label: "Error", Chip: "Error: ", Kind: list.Choice, Options: classes},
		{
			Name: "test", Label: "Test events", Chip: "Test events: ", Kind: list.Choice,
			Options: either("With test events"),
		},
		{
			Name: "resend", Label: "Re-sends", Chip: "Re-sends: ", Kind: list.Choice,
			Options: either("With re-sends"),
		},
		{
			Name: "open", Label: "Failures made good later", Chip: "Made good: ", Kind: list.Choice,
			Options: []ui.Option{{Label: "With those"}, {Value: "yes", Label: "without"}},
		},
		{
			Name: "slow", Label: "Last attempt took", Chip: "Slow: ", Kind: list.Choice,
			Options: []ui.Option{{Label: "Any duration"}, {Value: "yes", Label: "5 s and more"}},
		},
		{
			Name: "range", Label: "Time range", Chip: "Range: ", Kind: list.Choice,
			Options: []ui.Option{
				{Label: "All time"},
				{Value: "1h", Label: "Last hour"},
				{Value: "today", Label: "Today"},
				{Value: "24h", Label: "Last 24 hours"},
				{Value: "7d", Label: "Last 7 days"},
				{Value: "30d", Label: "Last 30 days"},
			},
		},
		{Name: "since", Label: "From", Chip: "From: ", Kind: list.Time},
		{Name: "until", Label: "To", Chip: "To: ", Kind: list.Time},
	}
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
		State:      list.OneOf(v, "state", delivery.States()),
		Event:      list.OneOf(v, "event", lending.AllEventKinds()),
		ErrorClass: list.OneOf(v, "error", sender.ErrorClasses()),
		Test:       v.YesNo("test"), Resend: v.YesNo("resend"), Slow: v.Is("slow"), Open: v.Is("open"),
		SubscriptionUID: v.UID("subscription"), PartnerUID: v.UID("partner"),
		MerchantUID: v.UID("merchant"), ApplicationUID: v.UID("application"),
		EventUID: v.UID("event_uid"), Since: v.Time("since"), Until: v.Time("until"),
		Limit: list.PageSize,
	}
	now := v.Now.In(v.Zone)
	starts := map[string]time.Time{ // of the ranges, which end now
		"1h": now.Add(-time.Hour), "24h": now.Add(-24 * time.Hour),
		"7d": now.Add(-7 * 24 * time.Hour), "30d": now.Add(-30 * 24 * time.Hour),
		"today": time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, v.Zone),
	}
	from := starts[list.OneOf(v, "range", slices.Collect(maps.Keys(starts)))]
	if from.After(filter.Since) {
		filter.Since = from.UTC()
	}
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		v.Wrong["until"] = "The end must come after the beginning."
	}
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
