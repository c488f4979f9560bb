package console

import (
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	bulkview "drawbridge/views/bulk"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// bulkRoutes lists the pages and actions of bulk re-sends and events.
func (c *Console) bulkRoutes() []Route {
	const support = operator.RoleSupport
	get, post := http.MethodGet, http.MethodPost
	return []Route{
		{get, paths.Bulks, "console.bulks", support, c.bulks},
		{get, paths.BulkNew, "console.bulk.new", support, c.newBulk},
		{post, paths.BulkNew, "console.bulk.draft", support, c.draftBulk},
		{get, paths.Bulk, "console.bulk", support, c.bulk},
		{get, paths.BulkLive, "console.bulk.live", support, c.bulkLive},
		{get, paths.BulkItems, "console.bulk.items", support, c.bulkItems},
		{post, paths.BulkOptions, "console.bulk.options", support, c.amendBulk},
		{post, paths.BulkConfirm, "console.bulk.confirm", support, c.confirmBulk},
		{post, paths.BulkPause, "console.bulk.pause", support, c.moveBulk(pauseBulk)},
		{post, paths.BulkResume, "console.bulk.resume", support, c.moveBulk(resumeBulk)},
		{post, paths.BulkCancel, "console.bulk.cancel", support, c.moveBulk(cancelBulk)},
	}
}

// bulks lists the bulk re-sends.
func (c *Console) bulks(ctx echo.Context) error {
	request, query := ctx.Request().Context(), ctx.QueryParams()
	filter := webhook.BulksFilter{State: webhook.BulkState(query.Get("state")), Limit: pageSize}
	var err error
	if filter.Cursor, err = postgres.ParseCursor(query.Get("cursor")); err != nil {
		return err
	}
	count := startCount(request, c, filter, c.Webhooks.CountBulks)
	found, next, err := c.Webhooks.Bulks(request, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(found), filter.Cursor.IsZero() && next.IsZero())
	if err != nil {
		return err
	}
	page := bulkview.List{
		Filtered: filter.State != "", Tabs: bulkTabs(filter.State),
		Summary: all.in("bulk re-send", "bulk re-sends"),
	}
	for _, bulk := range found {
		page.Rows = append(page.Rows, bulkRow(bulk))
	}
	kept := url.Values{}
	if filter.State != "" {
		kept.Set("state", string(filter.State))
	}
	if !filter.Cursor.IsZero() {
		page.Newest = paths.With(paths.Bulks, kept)
	}
	if !next.IsZero() {
		page.Older = paths.With(paths.Bulks, with(kept, "cursor", next.String()))
	}
	page.Frame, err = c.Frame(ctx, ui.SectionBulks, "Bulk re-sends",
		ui.Crumb{Label: "Bulk re-sends"})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, bulkview.ListPage(page))
}

func bulkRow(bulk webhook.Bulk) bulkview.Row {
	counts := bulk.Counts
	return bulkview.Row{
		UID: bulk.UID.String(), State: string(bulk.State), What: bulkTitle(bulk.Scope),
		Partner: bulk.PartnerName, Total: counts.Total(), Failed: counts.Failed,
		Done: counts.Delivered + counts.Failed + counts.Cancelled,
		By:   bulk.CreatedBy, Created: bulk.CreatedAt,
	}
}

// bulkTabs are the views of the list by state, what goes on first.
func bulkTabs(current webhook.BulkState) []ui.Tab {
	tabs := []ui.Tab{{Label: "All", Href: paths.Bulks, Current: current == ""}}
	for _, state := range []webhook.BulkState{
		webhook.BulkRunning, webhook.BulkPaused, webhook.BulkDraft, webhook.BulkFinished,
		webhook.BulkCancelled,
	} {
		tabs = append(tabs, ui.Tab{
			Label:   bulkview.Chip(string(state)).Word,
			Href:    paths.With(paths.Bulks, url.Values{"state": {string(state)}}),
			Current: current == state,
		})
	}
	return tabs
}

// bulk shows one bulk re-send: a draft with its plan, or how far it has come.
func (c *Console) bulk(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	found, err := c.Webhooks.Bulk(ctx.Request().Context(), uid)
	if err != nil {
		return err
	}
	if found.State == webhook.BulkDraft {
		return c.showDraft(ctx, found, draftForm{Status: http.StatusOK})
	}
	return c.showProgress(ctx, found)
}

// bulkFrame surrounds a page of one bulk re-send.
func (c *Console) bulkFrame(ctx echo.Context, title string) (ui.Frame, error) {
	return c.Frame(ctx, ui.SectionBulks, title,
		ui.Crumb{Label: "Bulk re-sends", Href: paths.Bulks},
		ui.Crumb{Label: title})
}

// auditBulk keeps in the audit log what somebody did with a bulk re-send.
func (c *Console) auditBulk(
	ctx echo.Context, tx *postgres.Tx, uid uuid.UUID, action string, entry operator.Entry,
) error {
	entry.Actor, entry.Address = currentUser(ctx).Email, ctx.RealIP()
	entry.Action, entry.SubjectKind, entry.Subject = "bulk_resend."+action, "bulk_resend", uid.String()
	return c.Operators.Audit(ctx.Request().Context(), tx, entry)
}
