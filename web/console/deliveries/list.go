package deliveries

import (
	"context"
	"strconv"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// stateWaiting is a tab in addition to the states: pending and retrying deliveries.
const stateWaiting delivery.State = ui.WaitingDeliveries

// states are the tabs, beginning with what needs a person.
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
		Filters: f.filters(),
		Read: func(v *list.Values) list.Source[delivery.Delivery] {
			filter := readFilter(v)
			log := f.Webhooks.Deliveries
			source := list.Filtered(filter, log.ListNamed, log.Count)
			source.Newer = func(ctx context.Context, page postgres.Paging) (int, error) {
				return log.CountNewer(ctx, filter, page)
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
				"finished_at", "test", "resend_of", "resent_by", "resend_reason", "last_url", "subject",
			},
			Cells: cells,
		},
		Saved: true,
		Views: []list.View{
			{Label: "Failing now", Query: "state=retrying"},
			{Label: "Failed of today", Query: "range=today&state=failed"},
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
	span, since, until := list.Range, list.Since, list.Until
	span.Label, span.Chip = "Created", "Created"
	since.Label, until.Label = "Created from", "Created to"
	return list.Colons(
		list.Choose("event", "Event", list.EventKinds()),
		list.Partner, list.Merchant, list.Subscription,
		list.Filter{
			Name: "application", Label: "Application id", Chip: "Application",
			WordOf: list.ApplicationWord(f.Applications),
		},
		list.Filter{Name: "event_uid", Label: "Event id"},
		list.Filter{Name: "code", Label: "HTTP answer, such as 503 or 5xx", Chip: "Answer", Max: 3},
		list.Choose("error", "Error", classes),
		list.Either("test", "Test events", "With test events"),
		list.Either("resend", "Re-sends", "With re-sends"),
		list.Only("open", "Failures made good later", "With those", "without").Called("Made good"),
		list.Only("slow", "Last attempt took", "Any duration", "5 s and more").Called("Slow"),
		span, since, until,
	)
}

func readFilter(v *list.Values) delivery.Filter {
	filter := delivery.Filter{
		State:      list.OneOf(v, "state", states),
		Event:      list.OneOf(v, "event", lending.AllEventKinds()),
		ErrorClass: list.OneOf(v, "error", sender.ErrorClasses()),
		Test:       v.YesNo("test"), Resend: v.YesNo("resend"), Slow: v.Is("slow"), Open: v.Is("open"),
		SubscriptionUID: v.UID("subscription"), PartnerUID: v.UID("partner"),
		MerchantUID: v.UID("merchant"), ApplicationUID: v.UID("application"),
		EventUID: v.UID("event_uid"),
	}
	if filter.State == stateWaiting {
		filter.State, filter.Waiting = "", true
	}
	filter.Since, filter.Until = v.Span()
	var ok bool
	if filter.HTTPStatus, filter.HTTPClass, ok = delivery.ParseAnswer(v.Text("code")); !ok {
		v.Wrong["code"] = "This is not an HTTP status; write one such as 503, or a class such as 5xx."
	}
	return filter
}

// cells returns a delivery's row of the file; times are in UTC.
func cells(d delivery.Delivery) []string {
	owner := d.ApplicationUID.String()
	if d.Test { // a test event's application is a sample
		owner = ""
	}
	return []string{
		d.UID.String(), list.CellTime(d.CreatedAt), string(d.State), string(d.Event), d.Status,
		owner, d.PartnerUID.String(), d.PartnerName, d.SubscriptionUID.String(), d.URL,
		d.EventUID.String(), list.CellTime(d.EventAt), strconv.Itoa(d.AttemptCount),
		list.CellTime(d.Due()), list.CellNumber(int64(d.LastStatus())), string(d.LastError()),
		list.CellNumber(d.Took().Milliseconds()), list.CellTime(ui.Value(d.FinishedAt)),
		strconv.FormatBool(d.Test), page.FormatUID(ui.Value(d.ResendOf)), ui.Value(d.ResentBy),
		ui.Value(d.ResendReason), d.LastURL, d.Subject,
	}
}
