package deliveries

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// failures shows the failures of one endpoint: since when, which errors, one failed
// exchange and the last successful one, and what can be done about all of them.
func (f *Feature) failures(ctx echo.Context) error {
	failing, err := page.Named(ctx, f.Webhooks.Subscriptions.Get)
	if err != nil {
		return err
	}
	request, uid := ctx.Request().Context(), failing.UID
	shown := deliveries.Failures{Subscription: failing}
	all := delivery.Filter{
		SubscriptionUID: uid, State: delivery.StateFailed, Open: true, Test: new(false),
	}
	shown.Filter = all // the address narrows it, unless it names no kind of failure
	class := sender.ErrorClass(ctx.QueryParam("error"))
	if slices.Contains(sender.ErrorClasses(), class) {
		shown.Filter.ErrorClass = class
	}
	status, err := strconv.Atoi(ctx.QueryParam("code"))
	if err == nil && status >= 100 && status <= 999 {
		shown.Filter.HTTPStatus = status
	}
	shown.Groups, err = f.Webhooks.Deliveries.FailureGroups(request, all, deliveries.MaxFailures)
	if err != nil {
		return err
	}
	found, err := f.Webhooks.Health.Read(request, []uuid.UUID{uid}, f.DB.Now().Add(-time.Hour),
		f.DB.Now())
	if err != nil {
		return err
	}
	shown.FailingSince = found[uid].FailingSince
	moves, err := subscription.Moves(request, f.DB, uid)
	if err != nil {
		return err
	}
	shown.Move = moves[uid]
	if shown.Sample, err = f.newest(request, shown.Filter); err != nil {
		return err
	}
	shown.Good, err = f.newest(request, delivery.Filter{
		SubscriptionUID: uid, State: delivery.StateDelivered,
	})
	if err != nil {
		return err
	}
	here := page.Place{Section: ui.SectionSubscriptions, Title: "Subscriptions"}.
		Under(paths.Subscriptions, shown.Subscription.Label()).
		Under(paths.To(paths.Subscription, uid.String()), "What fails")
	return f.Show(ctx, http.StatusOK, here, deliveries.FailuresPage(shown))
}

// newest returns the newest delivery that matches, with its attempts; nil for none.
func (f *Feature) newest(ctx context.Context, filter delivery.Filter) (*delivery.Detail, error) {
	found, _, err := f.Webhooks.Deliveries.List(ctx, filter, postgres.Paging{Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	detail, err := f.Webhooks.Deliveries.Get(ctx, found[0].UID)
	return &detail, err
}
