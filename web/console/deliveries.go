package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

const (
	// pageSize is how many rows a list shows.
	pageSize = 50
	// maxNews is the highest count of new rows that wait to be shown.
	maxNews = 100
	// maxOptions bounds the subscriptions to choose from in the filter form.
	maxOptions = 200
)

// listTimeout bounds what a list may ask of the database; after it the page
// says that it could not be loaded.
const listTimeout = 5 * time.Second

// deliveryRoutes lists the pages and actions of the delivery log.
func (c *Console) deliveryRoutes() []Route {
	const support, operators = operator.RoleSupport, operator.RoleOperator
	return []Route{
		{http.MethodGet, paths.Deliveries, "console.deliveries", support, c.deliveries},
		{
			http.MethodGet, paths.DeliveriesLive, "console.deliveries.live", support,
			c.deliveriesLive,
		},
		{
			http.MethodPost, paths.DeliveriesCSV, "console.deliveries.csv", support,
			c.exportDeliveries,
		},
		{
			http.MethodPost, paths.DeliveriesCancel, "console.deliveries.cancel", operators,
			c.cancelDeliveries,
		},
		{http.MethodPost, paths.SavedViews, "console.savedViews", support, c.saveView},
		{http.MethodGet, paths.Delivery, "console.delivery", support, c.delivery},
		{http.MethodGet, paths.DeliveryLive, "console.delivery.live", support, c.deliveryLive},
		{http.MethodGet, paths.Resend, "console.resend", support, c.resendForm},
		{http.MethodPost, paths.Resend, "console.resend.submit", support, c.resend},
	}
}

// deliveries lists the delivery log; what was once looked for here is searched.
func (c *Console) deliveries(ctx echo.Context) error {
	if sought := ctx.QueryParam("q"); sought != "" {
		return ctx.Redirect(http.StatusSeeOther,
			paths.Search+"?"+url.Values{"q": {sought}}.Encode())
	}
	request, query := ctx.Request(), ctx.QueryParams()
	who := c.reader(ctx)
	_, shown := who.readFilter(query)
	if !isFragment(ctx) && moved(query, shown) {
		return ctx.Redirect(http.StatusSeeOther,
			paths.With(paths.Deliveries, with(filterQuery(shown), "cursor", query.Get("cursor"))))
	}
	page, err := c.deliveryList(request.Context(), who, query)
	if err != nil && request.Context().Err() != nil {
		return err
	}
	status := http.StatusOK
	switch {
	case err != nil:
		slog.ErrorContext(request.Context(), "listing deliveries", "error", err)
		page.Unavailable, status = true, http.StatusServiceUnavailable
	case len(shown.Faults) > 0:
		status = http.StatusBadRequest
	}
	if isFragment(ctx) {
		return render(ctx, status, deliveries.DeliveryListRegion(page))
	}
	if err := c.furnish(ctx, &page, shown); err != nil {
		return err
	}
	return render(ctx, status, deliveries.DeliveryListPage(page))
}

// moved tells whether the address holds a time without a zone, which means
// another moment to somebody else.
func moved(query url.Values, shown deliveries.DeliveryFilter) bool {
	if len(shown.Faults) > 0 {
		return false
	}
	return query.Get("since") != shown.Values["since"] || query.Get("until") != shown.Values["until"]
}

// listMode is how a list takes what comes in.
type listMode string

const (
	// modeRead shows the rows that the address names.
	modeRead listMode = ""
	// modeNews counts what came in since, and moves nothing.
	modeNews listMode = "news"
	// modeTail shows what comes in at once.
	modeTail listMode = "tail"
)

func modeOf(query url.Values) listMode {
	switch {
	case query.Get("tail") != "":
		return modeTail
	case query.Get("news") != "":
		return modeNews
	}
	return modeRead
}

// furnish adds to a list what stands around its live region.
func (c *Console) furnish(
	ctx echo.Context, page *deliveries.DeliveryList, shown deliveries.DeliveryFilter,
) error {
	var err error
	page.Frame, err = c.Frame(ctx, ui.SectionDeliveries, "Deliveries",
		ui.Crumb{Label: "Deliveries"})
	if err != nil {
		return err
	}
	page.Notice = c.TakeNotice(ctx)
	page.Live = page.StreamURL != ""
	page.Tabs = stateTabs(shown)
	query := filterQuery(shown)
	page.TailHref = paths.With(paths.Deliveries, with(query, "tail", "1"))
	if page.Tail {
		page.TailHref = paths.With(paths.Deliveries, query)
	}
	if page.Unavailable {
		return nil
	}
	request := ctx.Request().Context()
	if page.Choices, err = c.filterChoices(request); err != nil {
		return err
	}
	page.Active = activeFilters(shown, page.Choices)
	page.Views, err = c.deliveryViews(ctx, query, ui.ViewLink{
		Label: "Tail", Href: page.TailHref, Current: page.Tail,
	})
	return err
}

// deliveryList loads one page of the list.
func (c *Console) deliveryList(
	ctx context.Context, who reader, address url.Values,
) (deliveries.DeliveryList, error) {
	filter, shown := who.readFilter(address)
	query, mode := filterQuery(shown), modeOf(address)
	page := deliveries.DeliveryList{
		Filter: shown, Query: query.Encode(), Tail: mode == modeTail,
		MayCancel: who.role.Allows(operator.RoleOperator),
	}
	if len(shown.Faults) > 0 {
		return page, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	count := startCount(ctx, c, filter, c.Webhooks.CountDeliveries)
	loaded, err := c.Webhooks.Deliveries(ctx, filter)
	if err != nil {
		return page, err
	}
	all, err := count.with(len(loaded.Deliveries), filter.Cursor.IsZero() && loaded.Next.IsZero())
	if err != nil {
		return page, err
	}
	page.Summary = all.in("delivery", "deliveries")
	page.Rows = deliveryRows(loaded.Deliveries)
	if next := loaded.Next.String(); next != "" {
		page.Older = paths.With(paths.Deliveries, with(query, "cursor", next))
	}
	if !filter.Cursor.IsZero() && mode == modeRead {
		page.Newest = paths.With(paths.Deliveries, query)
	}
	if mode == modeNews {
		page.NewsHref = paths.With(paths.Deliveries, query)
		if page.News, err = c.Webhooks.CountNewer(ctx, filter, maxNews); err != nil {
			return page, err
		}
	}
	follow(&page, query, filter, loaded.Deliveries, mode)
	return page, nil
}

// follow sets the addresses that keep a page up to date. Except in the tail,
// they hold on to the rows that are shown: what is newer is counted, and moves
// nothing.
func follow(
	page *deliveries.DeliveryList, query url.Values, filter webhook.DeliveryFilter,
	rows []webhook.Delivery, mode listMode,
) {
	first := filter.Cursor.IsZero() || mode == modeNews
	from := filter.Cursor
	if from.IsZero() && len(rows) > 0 {
		from = postgres.Cursor{At: rows[0].CreatedAt, UID: successor(rows[0].UID)}
	}
	if mode == modeTail {
		query = with(query, "tail", "1")
	} else {
		query = with(query, "cursor", from.String())
		if first && !from.IsZero() {
			query = with(query, "news", "1")
		}
	}
	page.StreamURL = paths.With(paths.DeliveriesLive, query)
	page.PollURL = paths.With(paths.Deliveries, query)
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
	who, query := c.reader(ctx), ctx.QueryParams()
	if _, shown := who.readFilter(query); len(shown.Faults) > 0 {
		return lending.NewError(lending.CodeValidation, "the filter of this page is not right")
	}
	return c.Stream(ctx, func(ctx context.Context) ([]byte, error) {
		who.now = c.DB.Now() // a range that ends now moves on
		page, err := c.deliveryList(ctx, who, query)
		if err != nil {
			return nil, err
		}
		return renderHTML(ctx, deliveries.DeliveryListRegion(page))
	})
}

var deliveryRows, deliveryRow = ui.DeliveryRows, ui.DeliveryRowOf
