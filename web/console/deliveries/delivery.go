package deliveries

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/alert"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// The bounds on a page's related deliveries of the application and on its lines of the ledger.
const (
	maxRelated = 8
	maxLedger  = 20
)

// delivery shows one delivery.
func (f *Feature) delivery(ctx echo.Context) error {
	shown, err := page.Named(ctx, f.load)
	if err != nil {
		return err
	}
	if page.IsFragment(ctx) {
		return page.Render(ctx, http.StatusOK, deliveries.Region(shown))
	}
	if err := f.addNeighbours(ctx, &shown); err != nil {
		return err
	}
	here := place.Under(paths.Deliveries, shown.Delivery.Event.Title())
	here.Here, here.Live = ui.DeliveryLabel(shown.Delivery.Delivery), true
	return f.Show(ctx, http.StatusOK, here, deliveries.Detail(shown))
}

// deliveryLive streams the page's live region.
func (f *Feature) deliveryLive(ctx echo.Context) error {
	uid, err := page.UID(ctx)
	if err != nil {
		return err
	}
	return f.Stream(ctx, func(request context.Context) ([]byte, error) {
		shown, err := f.load(request, uid)
		if err != nil {
			return nil, err
		}
		return page.HTML(request, deliveries.Region(shown))
	})
}

// load reads one delivery with everything that its page shows.
func (f *Feature) load(ctx context.Context, uid uuid.UUID) (shown deliveries.Page, err error) {
	if shown.Resend, err = f.loadResend(ctx, uid); err != nil {
		return shown, err
	}
	detail, subscription := shown.Delivery, shown.Subscription
	var next postgres.Cursor
	shown.Ledger, next, err = f.Webhooks.Deliveries.Ledger(ctx, detail.EventUID,
		postgres.Paging{Limit: maxLedger})
	if err != nil {
		return shown, err
	}
	shown.MoreLedger = !next.IsZero()
	if shown.Related, err = f.related(ctx, detail.Delivery); err != nil {
		return shown, err
	}
	if shown.Bulk, err = f.Webhooks.Bulk.OfDelivery(ctx, uid); err != nil {
		return shown, err
	}
	if detail.State == delivery.StateFailed && detail.MadeGoodBy == nil && !detail.Test {
		alerts, _, err := f.Alerts.List(ctx, alert.Filter{
			State: alert.Waiting, Kind: alert.KindUsedUp,
			Subscription: detail.SubscriptionUID,
		}, postgres.Paging{Limit: 1})
		if err != nil {
			return shown, err
		}
		if len(alerts) > 0 {
			shown.Alert = &alerts[0]
		}
	}
	if last := len(detail.Attempts) - 1; last >= 0 {
		then := detail.Attempts[last].SubscriptionVersion
		if then != 0 && then != subscription.Version {
			changes, err := f.Webhooks.Subscriptions.CompareVersions(ctx, subscription.UID, then,
				subscription.Version)
			if err != nil {
				return shown, err
			}
			shown.Changed = changes.Settings()
		}
	}
	return shown, nil
}

// related returns the other deliveries of a delivery's application, newest first.
func (f *Feature) related(ctx context.Context, to delivery.Delivery) ([]delivery.Delivery, error) {
	if to.Test {
		return nil, nil
	}
	found, _, err := f.Webhooks.Deliveries.ListNamed(ctx,
		delivery.Filter{ApplicationUID: to.ApplicationUID}, postgres.Paging{Limit: maxRelated + 1})
	others := slices.DeleteFunc(found, func(d delivery.Delivery) bool { return d.UID == to.UID })
	return others[:min(len(others), maxRelated)], err
}

// loadResend reads a delivery that may be re-sent, with the reasons against it.
func (f *Feature) loadResend(
	ctx context.Context, uid uuid.UUID,
) (shown deliveries.Resend, err error) {
	if shown.Delivery, err = f.Webhooks.Deliveries.Get(ctx, uid); err != nil {
		return shown, err
	}
	if shown.Resends, err = f.Webhooks.Deliveries.ResendsOf(ctx, uid); err != nil {
		return shown, err
	}
	if !shown.Delivery.Test {
		shown.Application, err = f.Applications.Summary(ctx, shown.Delivery.ApplicationUID)
		if err != nil {
			return shown, err
		}
	}
	shown.Subscription, err = f.Webhooks.Subscriptions.Get(ctx, shown.Delivery.SubscriptionUID)
	if err != nil || !shown.Possible() {
		return shown, err
	}
	shown.NewerDelivered, err = f.Webhooks.Deliveries.NewerDelivered(ctx, shown.Delivery.Delivery)
	return shown, err
}

// addNeighbours adds links to the deliveries before and after this one in the list that it
// was opened from. The Referer names that list first; later links carry it in their
// address.
func (f *Feature) addNeighbours(ctx echo.Context, shown *deliveries.Page) error {
	var query url.Values
	if ctx.QueryParams().Has("in") {
		in, err := url.ParseQuery(ctx.QueryParam("in"))
		if err != nil {
			return nil //nolint:nilerr // the page is whole without the way through a list
		}
		query = in
	} else {
		from, err := url.Parse(ctx.Request().Referer())
		if err != nil || from.Path != paths.Deliveries || lending.CheckValues(from.Query()) != nil {
			return nil //nolint:nilerr // as above
		}
		query = from.Query()
	}
	filter, kept, wrong := f.Filter(ctx, query)
	if len(wrong) > 0 {
		return nil
	}
	newer, older, err := f.Webhooks.Deliveries.Neighbours(ctx.Request().Context(), filter,
		shown.Delivery.Delivery)
	if err != nil {
		return err
	}
	shown.ListHref = paths.With(paths.Deliveries, kept)
	for uid, href := range map[uuid.UUID]*string{newer: &shown.NewerHref, older: &shown.OlderHref} {
		if uid != uuid.Nil {
			*href = paths.Where(paths.To(paths.Delivery, uid.String()), "in", kept.Encode())
		}
	}
	return nil
}
