package console

import (
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views"
)

// bulkRoutes lists the pages and actions of bulk re-sends and events.
func (c *Console) bulkRoutes() []Route {
	const support = operator.RoleSupport
	get, post := http.MethodGet, http.MethodPost
	return []Route{
		{get, views.PathBulks, "console.bulks", support, c.bulks},
		{get, views.PathBulkNew, "console.bulk.new", support, c.newBulk},
		{post, views.PathBulkNew, "console.bulk.draft", support, c.draftBulk},
		{get, views.PathBulk, "console.bulk", support, c.bulk},
		{get, views.PathBulkLive, "console.bulk.live", support, c.bulkLive},
		{get, views.PathBulkItems, "console.bulk.items", support, c.bulkItems},
		{post, views.PathBulkOptions, "console.bulk.options", support, c.amendBulk},
		{post, views.PathBulkConfirm, "console.bulk.confirm", support, c.confirmBulk},
		{post, views.PathBulkPause, "console.bulk.pause", support, c.moveBulk(pauseBulk)},
		{post, views.PathBulkResume, "console.bulk.resume", support, c.moveBulk(resumeBulk)},
		{post, views.PathBulkCancel, "console.bulk.cancel", support, c.moveBulk(cancelBulk)},
		{get, views.PathEvents, "console.events", support, c.events},
		{post, views.PathEventsCSV, "console.events.csv", support, c.exportEvents},
		{get, views.PathEvent, "console.event", support, c.event},
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
	page := views.BulkList{
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
		page.Newest = views.BulksPath(kept)
	}
	if !next.IsZero() {
		page.Older = views.BulksPath(with(kept, "cursor", next.String()))
	}
	page.Frame, err = c.Frame(ctx, views.SectionBulks, "Bulk re-sends",
		views.Crumb{Label: "Bulk re-sends"})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, views.BulkListPage(page))
}

func bulkRow(bulk webhook.Bulk) views.BulkRow {
	counts := bulk.Counts
	return views.BulkRow{
		UID: bulk.UID.String(), State: string(bulk.State), What: bulkTitle(bulk.Scope),
		Partner: bulk.PartnerName, Total: counts.Total(), Failed: counts.Failed,
		Done: counts.Delivered + counts.Failed + counts.Cancelled,
		By:   bulk.CreatedBy, Created: bulk.CreatedAt,
	}
}

// bulkTabs are the views of the list by state, what goes on first.
func bulkTabs(current webhook.BulkState) []views.Tab {
	tabs := []views.Tab{{Label: "All", Href: views.PathBulks, Current: current == ""}}
	for _, state := range []webhook.BulkState{
		webhook.BulkRunning, webhook.BulkPaused, webhook.BulkDraft, webhook.BulkFinished,
		webhook.BulkCancelled,
	} {
		tabs = append(tabs, views.Tab{
			Label:   views.BulkChip(string(state)).Word,
			Href:    views.BulksPath(url.Values{"state": {string(state)}}),
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
func (c *Console) bulkFrame(ctx echo.Context, title string) (views.Frame, error) {
	return c.Frame(ctx, views.SectionBulks, title,
		views.Crumb{Label: "Bulk re-sends", Href: views.PathBulks},
		views.Crumb{Label: title})
}

// auditBulk keeps in the audit log what somebody did with a bulk re-send.
func (c *Console) auditBulk(
	ctx echo.Context, tx *postgres.Tx, uid uuid.UUID, action string, entry operator.Entry,
) error {
	entry.Actor, entry.Address = currentUser(ctx).Email, ctx.RealIP()
	entry.Action, entry.SubjectKind, entry.Subject = "bulk_resend."+action, "bulk_resend", uid.String()
	return c.Operators.Audit(ctx.Request().Context(), tx, entry)
}
