package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/events"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// events lists what happened.
func (c *Console) events(ctx echo.Context) error {
	request := ctx.Request().Context()
	filter, shown := readEventFilter(ctx.QueryParams(), ui.ZoneOf(request))
	page := events.EventList{
		Filter: shown, Kinds: eventOptions(), Export: eventQuery(shown).Encode(),
	}
	var err error
	if page.Partners, err = c.partnerOptions(request, "All partners"); err != nil {
		return err
	}
	page.Active = activeEventFilters(shown, page.Partners)
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillEvents(ctx, &page, filter); err != nil {
		return err
	}
	if page.Views, err = c.viewsBar(ctx, paths.Events, eventQuery(shown)); err != nil {
		return err
	}
	page.Frame, err = c.Frame(ctx, ui.SectionEvents, "Events", ui.Crumb{Label: "Events"})
	if err != nil {
		return err
	}
	return render(ctx, status, events.EventListPage(page))
}

// fillEvents loads the page of the list that begins after the cursor.
func (c *Console) fillEvents(
	ctx echo.Context, page *events.EventList, filter webhook.EventFilter,
) error {
	request := ctx.Request().Context()
	count := startCount(request, c, filter, c.Webhooks.CountEvents)
	loaded, err := c.Webhooks.Events(request, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(loaded.Events), filter.Cursor.IsZero() && loaded.Next.IsZero())
	if err != nil {
		return err
	}
	page.Summary = all.in("event", "events")
	for _, event := range loaded.Events {
		page.Rows = append(page.Rows, eventRow(event))
	}
	query := eventQuery(page.Filter)
	if !filter.Cursor.IsZero() {
		page.Newest = paths.With(paths.Events, query)
	}
	if !loaded.Next.IsZero() {
		page.Older = paths.With(paths.Events, with(query, "cursor", loaded.Next.String()))
	}
	return nil
}

func eventRow(e webhook.EventRecord) events.EventRow {
	row := events.EventRow{
		UID: e.UID.String(), Kind: string(e.Kind), Status: e.Status, Partner: e.PartnerName,
		Merchant: value(e.MerchantName), Test: e.Test, Occurred: e.OccurredAt,
		Fan: events.FanView(e.FanOut),
	}
	if !e.Test {
		row.Application = e.ApplicationUID.String()
	}
	return row
}

// readEventFilter reads the filter of the event list from its address. Wrong
// values are left out of the filter, and named in the view's faults.
func readEventFilter(
	query url.Values, zone *time.Location,
) (webhook.EventFilter, events.EventFilter) {
	shown := events.EventFilter{
		Kind: query.Get("kind"), Partner: query.Get("partner"), Merchant: query.Get("merchant"),
		Application: strings.TrimSpace(query.Get("application")),
		Since:       query.Get("since"), Until: query.Get("until"), Faults: map[string]string{},
	}
	filter := webhook.EventFilter{
		Kind:           lending.EventKind(shown.Kind),
		PartnerUID:     readUID(shown.Faults, "partner", shown.Partner),
		MerchantUID:    readUID(shown.Faults, "merchant", shown.Merchant),
		ApplicationUID: readUID(shown.Faults, "application", shown.Application),
		Since:          readLocal(shown.Faults, "since", shown.Since, zone),
		Until:          readLocal(shown.Faults, "until", shown.Until, zone),
		Limit:          pageSize,
	}
	if filter.Kind != "" && !filter.Kind.IsKnown() {
		shown.Faults["kind"] = "There is no such event; choose one of the list."
	}
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		shown.Faults["until"] = "The end must come after the beginning."
	}
	cursor, err := postgres.ParseCursor(query.Get("cursor"))
	if err != nil {
		shown.Faults["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	filter.Cursor = cursor
	return filter, shown
}

// eventQuery writes a filter as the query of an address, the inverse of
// readEventFilter.
func eventQuery(shown events.EventFilter) url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"kind": shown.Kind, "partner": shown.Partner, "merchant": shown.Merchant,
		"application": shown.Application, "since": shown.Since, "until": shown.Until,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// activeEventFilters are the filters in force, each with the address of the list
// without it.
func activeEventFilters(shown events.EventFilter, partners []ui.Option) []ui.ActiveFilter {
	query, partner := eventQuery(shown), shown.Partner
	for _, option := range partners {
		if option.Value == partner && partner != "" {
			partner = option.Label
			break
		}
	}
	var active []ui.ActiveFilter
	for _, filter := range []struct{ name, label, value string }{
		{"kind", "Event", shown.Kind},
		{"partner", "Partner", partner},
		{"merchant", "Merchant", shown.Merchant},
		{"application", "Application", shown.Application},
		{"since", "From", strings.Replace(shown.Since, "T", " ", 1)},
		{"until", "To", strings.Replace(shown.Until, "T", " ", 1)},
	} {
		if filter.value != "" {
			active = append(active, ui.ActiveFilter{
				Label: filter.label + " " + filter.value,
				Href:  paths.With(paths.Events, with(query, filter.name, "")),
			})
		}
	}
	return active
}

// event shows one event with its ledger.
func (c *Console) event(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	request := ctx.Request().Context()
	detail, err := c.Webhooks.EventByUID(request, uid)
	if err != nil {
		return err
	}
	targets, err := c.Webhooks.ReplayTargets(request, uid)
	if err != nil {
		return err
	}
	page := events.EventPage{
		Event: eventRow(detail.EventRecord), PartnerUID: detail.PartnerUID.String(),
		Body: detail.Body, BodyRemoved: value(detail.BodyRemovedAt),
		Deliveries: deliveryRows(detail.Deliveries), Ledger: detail.Ledger, Targets: targets,
	}
	if detail.MerchantUID != nil {
		page.MerchantUID = detail.MerchantUID.String()
	}
	page.Frame, err = c.Frame(ctx, ui.SectionEvents, string(detail.Kind),
		ui.Crumb{Label: "Events", Href: paths.Events}, ui.Crumb{Label: page.Event.Label()})
	if err != nil {
		return err
	}
	page.Notice = c.TakeNotice(ctx)
	return render(ctx, http.StatusOK, events.EventDetailPage(page))
}
