package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views"
)

const (
	// pageSize is how many rows a list shows.
	pageSize = 50
	// maxCount is the highest exact count of a list.
	maxCount = 10_000
	// maxNews is the highest count of new rows that wait to be shown.
	maxNews = 100
	// maxOptions bounds the subscriptions to choose from in the filter form.
	maxOptions = 200
)

// deliveries lists the delivery log, or finds what the search box asks for.
func (c *Console) deliveries(ctx echo.Context) error {
	if sought := ctx.QueryParam("q"); sought != "" {
		return c.find(ctx, sought)
	}
	request := ctx.Request()
	filter, shown := readFilter(ctx.QueryParams())
	page, err := c.deliveryList(request.Context(), filter, shown, ctx.QueryParam("news") != "")
	if err != nil {
		return err
	}
	status := http.StatusOK
	if len(shown.Faults) > 0 {
		status = http.StatusBadRequest
	}
	if isFragment(request) {
		return render(ctx, status, views.DeliveryListRegion(page))
	}
	if err := c.furnish(ctx, &page, shown); err != nil {
		return err
	}
	return render(ctx, status, views.DeliveryListPage(page))
}

// furnish adds to a list what stands around its live region.
func (c *Console) furnish(
	ctx echo.Context, page *views.DeliveryList, shown views.DeliveryFilter,
) error {
	var err error
	page.Frame, err = c.frame(ctx, views.SectionDeliveries, "Deliveries",
		views.Crumb{Label: "Deliveries"})
	if err != nil {
		return err
	}
	page.Live = page.StreamURL != ""
	page.Subscriptions, err = c.subscriptionOptions(ctx.Request().Context())
	if err != nil {
		return err
	}
	page.Events = eventOptions()
	page.Tabs = stateTabs(shown)
	page.Active = activeFilters(shown, page.Subscriptions)
	return nil
}

// deliveryList loads one page of the list. With news, what stands before the
// filter's cursor is counted, to be shown when the reader wants it.
func (c *Console) deliveryList(
	ctx context.Context, filter webhook.DeliveryFilter, shown views.DeliveryFilter, news bool,
) (views.DeliveryList, error) {
	page := views.DeliveryList{Filter: shown}
	page.Active = activeFilters(shown, nil)
	if len(shown.Faults) > 0 {
		return page, nil
	}
	loaded, err := c.Webhooks.Deliveries(ctx, filter)
	if err != nil {
		return page, err
	}
	count, err := c.Webhooks.CountDeliveries(ctx, filter, maxCount+1)
	if err != nil {
		return page, err
	}
	page.Summary = countSummary(count)
	query := filterQuery(shown)
	page.Rows = deliveryRows(loaded.Deliveries)
	if next := loaded.Next.String(); next != "" {
		page.Older = views.DeliveriesPath(with(query, "cursor", next))
	}
	first := filter.Cursor.IsZero() || news
	if !first {
		page.Newest = views.DeliveriesPath(query)
	}
	if news {
		page.NewsHref = views.DeliveriesPath(query)
		if page.News, err = c.Webhooks.CountNewer(ctx, filter, maxNews); err != nil {
			return page, err
		}
	}
	follow(&page, query, filter, loaded.Deliveries, first)
	return page, nil
}

// follow sets the addresses that keep a page up to date. They hold on to the
// rows that are shown: what is newer is counted, and moves nothing.
func follow(
	page *views.DeliveryList, query url.Values, filter webhook.DeliveryFilter,
	rows []webhook.Delivery, first bool,
) {
	from := filter.Cursor
	if from.IsZero() && len(rows) > 0 {
		from = postgres.Cursor{At: rows[0].CreatedAt, UID: successor(rows[0].UID)}
	}
	query = with(query, "cursor", from.String())
	if first && !from.IsZero() {
		query = with(query, "news", "1")
	}
	page.StreamURL = views.DeliveriesLivePath(query)
	page.PollURL = views.DeliveriesPath(query)
}

// successor returns the least identifier above uid, so that a list from there
// begins with uid itself.
func successor(uid uuid.UUID) uuid.UUID {
	for i := len(uid) - 1; i >= 0; i-- {
		uid[i]++
		if uid[i] != 0 {
			break
		}
	}
	return uid
}

// deliveriesLive streams the list's region as it changes.
func (c *Console) deliveriesLive(ctx echo.Context) error {
	filter, shown := readFilter(ctx.QueryParams())
	if len(shown.Faults) > 0 {
		return lending.NewError(lending.CodeValidation, "the filter of this page is not right")
	}
	news := ctx.QueryParam("news") != ""
	return c.stream(ctx, func(ctx context.Context) ([]byte, error) {
		page, err := c.deliveryList(ctx, filter, shown, news)
		if err != nil {
			return nil, err
		}
		return renderHTML(ctx, views.DeliveryListRegion(page))
	})
}

func (c *Console) subscriptionOptions(ctx context.Context) ([]views.Option, error) {
	summaries, _, err := c.Webhooks.SubscriptionSummaries(ctx,
		webhook.SummaryFilter{Limit: maxOptions})
	if err != nil {
		return nil, err
	}
	options := []views.Option{{Label: "All subscriptions"}}
	for _, summary := range summaries {
		options = append(options, views.Option{
			Value: summary.UID.String(),
			Label: summary.PartnerName + ", " + views.HostOf(summary.URL),
		})
	}
	return options, nil
}

func deliveryRows(deliveries []webhook.Delivery) []views.DeliveryRow {
	rows := make([]views.DeliveryRow, 0, len(deliveries))
	for _, delivery := range deliveries {
		rows = append(rows, deliveryRow(delivery))
	}
	return rows
}

func deliveryRow(d webhook.Delivery) views.DeliveryRow {
	row := views.DeliveryRow{
		UID: d.UID.String(), Event: string(d.Event), Status: d.Status,
		Subscription: d.SubscriptionUID.String(), Partner: d.PartnerName, URL: d.URL,
		State: string(d.State), Attempts: d.AttemptCount, Created: d.CreatedAt,
		Resend: d.ResendOf != nil, Test: d.Test,
		HTTPStatus: value(d.LastHTTPStatus), ErrorClass: value(d.LastErrorClass),
		Duration: time.Duration(value(d.LastDurationUS)) * time.Microsecond,
	}
	if !d.Parked {
		row.NextAttempt = value(d.NextAttemptAt)
	}
	if !d.Test {
		row.Application = d.ApplicationUID.String()
	}
	return row
}

// value returns what a pointer leads to, or the zero value.
func value[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}
