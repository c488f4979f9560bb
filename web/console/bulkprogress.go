package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	bulkview "drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// showProgress shows how far a confirmed bulk re-send has come.
func (c *Console) showProgress(ctx echo.Context, bulk webhook.Bulk) error {
	filter, err := readItemFilter(ctx.QueryParams())
	if err != nil {
		return err
	}
	page, err := c.bulkProgress(ctx.Request().Context(), bulk.UID, filter)
	if err != nil {
		return err
	}
	if isFragment(ctx.Request()) {
		return render(ctx, http.StatusOK, bulkview.ProgressRegion(page))
	}
	page.Asking = ctx.QueryParam("cancel") != ""
	if page.Frame, err = c.bulkFrame(ctx, page.What); err != nil {
		return err
	}
	page.Live = true
	page.Notice = c.takeNotice(ctx)
	return render(ctx, http.StatusOK, bulkview.ProgressPage(page))
}

// bulkLive streams the page's region as it changes.
func (c *Console) bulkLive(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	filter, err := readItemFilter(ctx.QueryParams())
	if err != nil {
		return err
	}
	return c.stream(ctx, func(ctx context.Context) ([]byte, error) {
		page, err := c.bulkProgress(ctx, uid, filter)
		if err != nil {
			return nil, err
		}
		return renderHTML(ctx, bulkview.ProgressRegion(page))
	})
}

// readItemFilter reads which results are shown from the address.
func readItemFilter(query url.Values) (webhook.BulkItemFilter, error) {
	filter := webhook.BulkItemFilter{State: webhook.ItemState(query.Get("outcome")), Limit: pageSize}
	if text := query.Get("after"); text != "" {
		var err error
		if filter.After, err = strconv.Atoi(text); err != nil || filter.After < 0 {
			return filter, lending.Invalid("after", `"after" must be a place in the results`)
		}
	}
	return filter, nil
}

func itemQuery(filter webhook.BulkItemFilter) url.Values {
	query := url.Values{}
	if filter.State != "" {
		query.Set("outcome", string(filter.State))
	}
	if filter.After > 0 {
		query.Set("after", strconv.Itoa(filter.After))
	}
	return query
}

func (c *Console) bulkProgress(
	ctx context.Context, uid uuid.UUID, filter webhook.BulkItemFilter,
) (bulkview.Progress, error) {
	bulk, err := c.Webhooks.Bulk(ctx, uid)
	if err != nil {
		return bulkview.Progress{}, err
	}
	counts := bulk.Counts
	page := bulkview.Progress{
		Facts: bulkFactsOf(ctx, bulk), Total: counts.Total(), Waiting: counts.Waiting,
		Sent: counts.Sent, Delivered: counts.Delivered, Failed: counts.Failed,
		Cancelled: counts.Cancelled, Skipped: counts.Skipped,
		Outcome: string(filter.State), Outcomes: bulkOutcomeTabs(uid, counts, filter.State),
	}
	lanes, err := c.Webhooks.BulkLanes(ctx, uid)
	if err != nil {
		return page, err
	}
	page.Lanes, page.Remaining = laneRows(lanes, bulk.Options.Pace)
	items, next, err := c.Webhooks.BulkItems(ctx, uid, filter)
	if err != nil {
		return page, err
	}
	for _, item := range items {
		page.Items = append(page.Items, itemRow(item))
	}
	query := itemQuery(filter)
	if filter.After > 0 {
		page.First = paths.With(paths.To(paths.Bulk, uid.String()), with(query, "after", ""))
	}
	if next > 0 {
		page.More = paths.With(paths.To(paths.Bulk, uid.String()),
			with(query, "after", strconv.Itoa(next)))
	}
	page.PollURL = paths.With(paths.To(paths.Bulk, uid.String()), query)
	page.StreamURL = paths.To(paths.Bulk, uid.String()) + "/" + "live?" + query.Encode()
	return page, nil
}

func bulkOutcomeTabs(
	uid uuid.UUID, counts webhook.BulkCounts, current webhook.ItemState,
) []ui.Tab {
	tabs := []ui.Tab{{
		Label: "All " + ui.Number(counts.All()), Href: paths.To(paths.Bulk, uid.String()),
		Current: current == "",
	}}
	for _, state := range webhook.ItemStates() {
		if counts.Of(state) == 0 && state != current {
			continue
		}
		tabs = append(tabs, ui.Tab{
			Label: bulkview.ItemChip(string(state)).Word + " " + ui.Number(counts.Of(state)),
			Href: paths.With(paths.To(paths.Bulk, uid.String()),
				url.Values{"outcome": {string(state)}}) + "#results",
			Current: state == current,
		})
	}
	return tabs
}

// laneRows words the lanes, and says how long the slowest will take.
func laneRows(lanes []webhook.BulkLane, pace int) ([]bulkview.LaneRow, time.Duration) {
	rows, longest := make([]bulkview.LaneRow, 0, len(lanes)), 0
	for _, lane := range lanes {
		rows = append(rows, bulkview.LaneRow{
			UID: lane.SubscriptionUID.String(), URL: lane.URL, State: string(lane.State),
			Total: lane.Total(), Waiting: lane.Waiting, Sent: lane.Sent, Delivered: lane.Delivered,
			Failed: lane.Failed, Cancelled: lane.Cancelled, Skipped: lane.Skipped,
		})
		if lane.State != webhook.StatePaused {
			longest = max(longest, lane.Waiting*int(time.Second)/lane.PaceOf(pace))
		}
	}
	return rows, time.Duration(longest)
}

func itemRow(item webhook.BulkItem) bulkview.ItemRow {
	row := bulkview.ItemRow{
		Position: item.Position, State: string(item.State), Event: string(item.Event),
		Status: item.Status, URL: item.URL, EventUID: item.EventUID.String(),
		Skip: string(value(item.SkipReason)), HTTPStatus: value(item.HTTPStatus),
		ErrorClass: value(item.ErrorClass), Occurred: item.EventAt,
	}
	for _, link := range []struct {
		to  *string
		uid *uuid.UUID
	}{
		{&row.Application, item.ApplicationUID}, {&row.New, item.NewUID}, {&row.Old, item.DeliveryUID},
	} {
		if link.uid != nil {
			*link.to = link.uid.String()
		}
	}
	return row
}

// bulkMove is a change of a bulk re-send's state.
type bulkMove struct {
	// Action names it in the audit log.
	Action string
	// Do performs it and returns what it did, for the next page.
	Do func(ctx context.Context, w *webhook.Service, tx *postgres.Tx, uid uuid.UUID) (string, error)
}

var (
	pauseBulk = bulkMove{"pause", func(
		ctx context.Context, w *webhook.Service, tx *postgres.Tx, uid uuid.UUID,
	) (string, error) {
		return "Paused. What was sent goes on.", w.PauseBulk(ctx, tx, uid)
	}}
	resumeBulk = bulkMove{"resume", func(
		ctx context.Context, w *webhook.Service, tx *postgres.Tx, uid uuid.UUID,
	) (string, error) {
		return "Resumed.", w.ResumeBulk(ctx, tx, uid)
	}}
	cancelBulk = bulkMove{"cancel", func(
		ctx context.Context, w *webhook.Service, tx *postgres.Tx, uid uuid.UUID,
	) (string, error) {
		count, err := w.CancelBulk(ctx, tx, uid)
		return "Cancelled: " + counted(count, "delivery was", "deliveries were") + " withdrawn.", err
	}}
)

// moveBulk changes the state. Under htmx the page stays and shows what follows.
func (c *Console) moveBulk(move bulkMove) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		uid, err := pathUID(ctx)
		if err != nil {
			return err
		}
		done, err := c.performMove(ctx, uid, move)
		if err != nil {
			return err
		}
		bulk, err := c.Webhooks.Bulk(ctx.Request().Context(), uid)
		if lending.ErrorCode(err) == lending.CodeNotFound { // it was a draft
			c.leaveNotice(ctx, "The draft is discarded; nothing was sent.")
			return ctx.Redirect(http.StatusSeeOther, paths.Bulks)
		}
		if err != nil {
			return err
		}
		if isFragment(ctx.Request()) {
			return c.showProgress(ctx, bulk)
		}
		c.leaveNotice(ctx, done)
		return ctx.Redirect(http.StatusSeeOther, paths.To(paths.Bulk, uid.String()))
	}
}

// performMove changes the state and keeps it in the audit log, both or neither.
func (c *Console) performMove(ctx echo.Context, uid uuid.UUID, move bulkMove) (string, error) {
	var done string
	before, err := c.Webhooks.Bulk(ctx.Request().Context(), uid)
	if err != nil {
		return "", err
	}
	target := paths.To(paths.Bulk, uid.String())
	if before.State == webhook.BulkDraft { // nothing stays of one that is discarded
		target = paths.Bulks
	}
	_, err = c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		var err error
		if done, err = move.Do(request, c.Webhooks, tx, uid); err != nil {
			return "", err
		}
		return target, c.auditBulk(ctx, tx, uid, move.Action, operator.Entry{})
	})
	return done, err
}

// bulkItems sends the results as a file.
func (c *Console) bulkItems(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	request := ctx.Request().Context()
	if _, err := c.Webhooks.Bulk(request, uid); err != nil {
		return err
	}
	filter, more := webhook.BulkItemFilter{Limit: webhook.MaxPage}, true
	return c.sendCSV(ctx, csvFile{
		Name: "bulk-resend", Action: "bulk_resend.export", SubjectKind: "bulk_resend",
		Filter: url.Values{"bulk": {uid.String()}},
		Columns: []string{
			"position", "state", "skip_reason", "event", "status", "event_uid", "occurred_at",
			"application_uid", "subscription_uid", "url", "delivery_uid", "new_delivery_uid",
			"http_status", "error_class",
		},
		Next: func() ([][]string, error) {
			if !more {
				return nil, nil
			}
			items, next, err := c.Webhooks.BulkItems(request, uid, filter)
			filter.After, more = next, next > 0
			rows := make([][]string, 0, len(items))
			for _, item := range items {
				rows = append(rows, itemCells(item))
			}
			return rows, err
		},
	})
}

func itemCells(item webhook.BulkItem) []string {
	row, status := itemRow(item), ""
	if row.HTTPStatus != 0 {
		status = strconv.Itoa(row.HTTPStatus)
	}
	return []string{
		strconv.Itoa(row.Position), row.State, row.Skip, row.Event, row.Status, row.EventUID,
		row.Occurred.UTC().Format(time.RFC3339Nano), row.Application,
		item.SubscriptionUID.String(), row.URL, row.Old, row.New, status, row.ErrorClass,
	}
}
