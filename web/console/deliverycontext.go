package console

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/attention"
	"drawbridge/internal/lending"
	"drawbridge/internal/webhook"
	"drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// maxRelated is how many deliveries of the same application a page lists.
const maxRelated = 8

// surround adds what stands around a delivery: what else its event led to, what
// else the application sent, and what has changed in the subscription since.
func (c *Console) surround(
	ctx context.Context, page *deliveries.DeliveryPage, detail webhook.DeliveryDetail,
	subscription webhook.Subscription,
) error {
	ledger, err := c.Webhooks.EventVerdicts(ctx, detail.EventUID)
	if err != nil {
		return err
	}
	page.Ledger = ledgerViews(ledger, nil)
	if !detail.Test {
		related, err := c.Webhooks.Deliveries(ctx, webhook.DeliveryFilter{
			ApplicationUID: detail.ApplicationUID, Limit: maxRelated + 1,
		})
		if err != nil {
			return err
		}
		for _, delivery := range related.Deliveries {
			if delivery.UID != detail.UID && len(page.Related) < maxRelated {
				page.Related = append(page.Related, deliveryRow(delivery))
			}
		}
	}
	page.Version = subscription.Version
	page.ForPartner = forPartner(detail)
	bulk, err := c.Webhooks.BulkOfDelivery(ctx, detail.UID)
	if err != nil {
		return err
	}
	page.BulkUID = known(bulk)
	if err := c.addMatter(ctx, page, detail); err != nil {
		return err
	}
	return c.compareThen(ctx, page, detail, subscription)
}

// addMatter adds the open item of the queue about the failed deliveries of the
// delivery's subscription, when it is one of them.
func (c *Console) addMatter(
	ctx context.Context, page *deliveries.DeliveryPage, detail webhook.DeliveryDetail,
) error {
	if detail.State != webhook.DeliveryFailed || detail.Test {
		return nil
	}
	items, _, err := c.Attention.List(ctx, attention.Filter{
		State: attention.Waiting, Kind: attention.KindUsedUp,
		Subscription: detail.SubscriptionUID, Limit: 1,
	})
	if err != nil || len(items) == 0 {
		return err
	}
	row := ui.AttentionRowOf(items[0], c.DB.Now())
	page.Matter = &row
	return nil
}

// compareThen tells what has changed in the subscription since the last attempt.
func (c *Console) compareThen(
	ctx context.Context, page *deliveries.DeliveryPage, detail webhook.DeliveryDetail,
	subscription webhook.Subscription,
) error {
	if len(detail.Attempts) == 0 {
		return nil
	}
	page.VersionThen = detail.Attempts[len(detail.Attempts)-1].SubscriptionVersion
	if page.VersionThen == 0 || page.VersionThen == subscription.Version {
		return nil
	}
	diff, err := c.Webhooks.CompareVersions(ctx, subscription.UID, page.VersionThen,
		subscription.Version)
	page.Changed = diff.Settings()
	return err
}

// forPartner is a text that support can send to a partner as it is. It holds
// nothing that the partner does not have: no secret, no header of theirs.
func forPartner(detail webhook.DeliveryDetail) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Webhook %s for application %s (status %q)\n", detail.Event,
		detail.ApplicationUID, detail.Status)
	fmt.Fprintf(&text, "Delivery %s (header x-drawbridge-delivery)\nSent to %s\n",
		detail.UID, detail.URL)
	for _, attempt := range detail.Attempts {
		answer := fmt.Sprintf("HTTP %d", attempt.HTTPStatus)
		if attempt.HTTPStatus == 0 {
			answer = "no answer: " + attempt.Error
		}
		fmt.Fprintf(&text, "Attempt %d at %s: %s, after %s\n", attempt.Number,
			attempt.StartedAt.UTC().Format(time.RFC3339), answer, ui.Duration(attempt.Duration))
	}
	fmt.Fprintf(&text, "State: %s\n", detail.State)
	if detail.State != webhook.DeliveryDelivered && len(detail.Attempts) > 0 {
		why := webhook.Diagnose(detail.Attempts[len(detail.Attempts)-1])
		text.WriteString(strings.TrimSpace(why.Summary) + "\n")
	}
	return text.String()
}

// beside adds the way to the deliveries before and after this one in the list
// that it was opened from. The browser says which that was; from then on the
// address does.
func (c *Console) beside(ctx echo.Context, page *deliveries.DeliveryPage, of webhook.Delivery) error {
	list, known := openedFrom(ctx)
	if !known {
		return nil
	}
	filter, shown := c.reader(ctx).readFilter(list)
	if len(shown.Faults) > 0 {
		return nil
	}
	newer, older, err := c.Webhooks.Neighbours(ctx.Request().Context(), filter, of)
	if err != nil {
		return err
	}
	query := filterQuery(shown)
	page.ListHref = paths.With(paths.Deliveries, query)
	page.NewerHref, page.OlderHref = besideHref(newer, query), besideHref(older, query)
	return nil
}

func besideHref(uid uuid.UUID, list url.Values) string {
	if uid == uuid.Nil {
		return ""
	}
	return paths.To(paths.Delivery, uid.String()) + "?" + url.Values{"in": {list.Encode()}}.Encode()
}

// openedFrom returns the filter of the list that the reader came from.
func openedFrom(ctx echo.Context) (url.Values, bool) {
	if ctx.QueryParams().Has("in") {
		list, err := url.ParseQuery(ctx.QueryParam("in"))
		return list, err == nil
	}
	from, err := url.Parse(ctx.Request().Referer())
	if err != nil || from.Path != paths.Deliveries {
		return nil, false
	}
	query := from.Query()
	return query, lending.CheckValues(query) == nil
}
