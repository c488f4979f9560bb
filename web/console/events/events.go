// Package events is the console's pages about the events of applications.
package events

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
	"drawbridge/internal/webhook"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/events"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// Feature serves the pages.
type Feature struct {
	*list.Engine
	Webhooks     *webhook.Services
	Partners     *partner.Service
	Applications *application.Service
}

// Routes lists the pages.
func (f *Feature) Routes() []page.Route {
	return append(list.Routes(f.Engine, f.events()),
		page.Get(paths.Event, "console.event", operator.RoleSupport, f.event))
}

var place = page.Place{Section: ui.SectionEvents, Title: "Events"}

// events lists the events.
func (f *Feature) events() list.Spec[delivery.EventRecord] {
	return list.Spec[delivery.EventRecord]{
		Name: "console.events", Path: paths.Events, Role: operator.RoleSupport, Place: place,
		Intro: "What happened to applications, whether or not a partner asked to hear of it.",
		One:   "event", Many: "events", Order: "Newest first",
		Filters: []list.Filter{
			{
				Name: "kind", Label: "Event", Kind: list.Choice, Options: list.EventKinds(), Thing: "event",
			},
			list.Partner,
			{
				Name: "merchant", Label: "Merchant", Kind: list.Hidden,
				Pick: search.Merchant, Options: list.Any("All merchants"),
			},
			{
				Name: "application", Label: "Application id", Chip: "Application ",
				WordOf: list.ApplicationWord(f.Applications),
			},
			list.Since, list.Until,
		},
		Read: func(v *list.Values) list.Source[delivery.EventRecord] {
			filter := delivery.EventFilter{
				Kind:       list.OneOf(v, "kind", lending.AllEventKinds()),
				PartnerUID: v.UID("partner"), MerchantUID: v.UID("merchant"),
				ApplicationUID: v.UID("application"),
			}
			filter.Since, filter.Until = v.Span()
			return list.Filtered(filter, f.Webhooks.Deliveries.Events, f.Webhooks.Deliveries.CountEvents)
		},
		Table: events.Table,
		NoMatch: ui.EmptyProps{
			Title: "No event matches these filters", Text: "Remove a filter, or widen the time range.",
		},
		Empty: ui.EmptyProps{
			Icon: "zap", Title: "No events yet",
			Text: "An event appears here as soon as something happens to an application: a change of " +
				"status, a signed document, a draw, a task. It is kept even when no subscription asks " +
				"for it.",
			Href: paths.Applications, Action: "See applications",
		},
		File: &list.File[delivery.EventRecord]{
			Path: paths.EventsCSV, Name: "events", Action: "event.export", Subject: "event",
			Columns: []string{
				"event_uid", "occurred_at", "event", "status", "application_id", "partner_uid", "partner",
				"merchant_uid", "merchant", "test", "delivered", "failed", "open", "cancelled",
				"passed_over", "resends", "made_good", "subject",
			},
			Cells: cells,
		},
		Saved: true,
	}
}

func cells(e delivery.EventRecord) []string {
	owner := e.ApplicationUID.String()
	if e.Test { // a test event's application is a sample
		owner = ""
	}
	return []string{
		e.UID.String(), list.CellTime(e.OccurredAt), string(e.Kind), e.Status, owner,
		e.PartnerUID.String(), e.PartnerName, page.FormatUID(ui.Value(e.MerchantUID)),
		ui.Value(e.MerchantName), strconv.FormatBool(e.Test), strconv.Itoa(e.FanOut.Delivered),
		strconv.Itoa(e.FanOut.Failed), strconv.Itoa(e.FanOut.Open), strconv.Itoa(e.FanOut.Cancelled),
		strconv.Itoa(e.FanOut.PassedOver), strconv.Itoa(e.FanOut.Resends),
		strconv.Itoa(e.FanOut.MadeGood), e.Subject,
	}
}

// How much of an event's ledger and of its deliveries its page shows.
const (
	ledgerLines = 50
	deliveries  = 20
)

// event shows one event: its payload, its recipients, and why the others did not get it.
func (f *Feature) event(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	request := ctx.Request().Context()
	from, err := postgres.ParseCursor(ctx.QueryParam("cursor"))
	if err != nil {
		return err
	}
	shown, log := events.Page{Begun: !from.IsZero()}, f.Webhooks.Deliveries
	if shown.EventDetail, err = log.EventHead(request, uid); err != nil {
		return err
	}
	if !shown.Test {
		shown.Application, err = f.Applications.Summary(request, shown.ApplicationUID)
		if err != nil {
			return err
		}
	}
	var next postgres.Cursor
	ledger := postgres.Paging{From: from, Limit: ledgerLines}
	if shown.Ledger, next, err = log.Ledger(request, uid, ledger); err != nil {
		return err
	}
	shown.Next = next.String()
	shown.Deliveries, next, err = log.ListNamed(request, delivery.Filter{EventUID: uid},
		postgres.Paging{Limit: deliveries})
	if err != nil {
		return err
	}
	shown.More = !next.IsZero()
	if shown.Targets, err = f.Webhooks.Bulk.ReplayTargets(request, uid); err != nil {
		return err
	}
	here := place.Under(paths.Events, shown.Kind.Title())
	here.Here = shown.Kind.Title() + " for " + shown.PartnerName
	return f.Show(ctx, http.StatusOK, here, events.Detail(shown))
}
