package console

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views"
)

// subscriptions lists where events are sent.
func (c *Console) subscriptions(ctx echo.Context) error {
	cursor, err := postgres.ParseCursor(ctx.QueryParam("cursor"))
	if err != nil {
		return err
	}
	summaries, next, err := c.Webhooks.SubscriptionSummaries(
		ctx.Request().Context(), webhook.SummaryFilter{Cursor: cursor, Limit: pageSize})
	if err != nil {
		return err
	}
	page := views.SubscriptionList{Summary: "Newest first"}
	for _, summary := range summaries {
		page.Rows = append(page.Rows, views.SubscriptionRow{
			UID: summary.UID.String(), Partner: summary.PartnerName, URL: summary.URL,
			State: string(summary.State), Auth: string(summary.Auth), Events: summary.Events,
			Merchants: summary.Merchants, Created: summary.CreatedAt,
		})
	}
	if !cursor.IsZero() {
		page.Newest = views.PathSubscriptions
	}
	if !next.IsZero() {
		page.Older = views.PathSubscriptions + "?" + url.Values{"cursor": {next.String()}}.Encode()
	}
	page.Frame, err = c.frame(ctx, views.SectionSubscriptions, "Subscriptions",
		views.Crumb{Label: "Subscriptions"})
	if err != nil {
		return err
	}
	return render(ctx, http.StatusOK, views.SubscriptionListPage(page))
}
