package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/webhook"
	deliveriesview "drawbridge/views/deliveries"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// delivery shows one delivery.
func (c *Console) delivery(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	page, err := c.deliveryPage(ctx.Request().Context(), uid, mayAct(ctx))
	if err != nil {
		return err
	}
	if isFragment(ctx) {
		return render(ctx, http.StatusOK, deliveriesview.DeliveryRegion(page))
	}
	page.Frame, err = c.Frame(ctx, ui.SectionDeliveries, page.Delivery.Event,
		ui.Crumb{Label: "Deliveries", Href: paths.Deliveries},
		ui.Crumb{Label: page.Delivery.Label()})
	if err != nil {
		return err
	}
	page.Live = true
	page.Notice = c.TakeNotice(ctx)
	page.MayCancel = page.Waits() && mayAct(ctx)
	here := webhook.Delivery{UID: uid, CreatedAt: page.Delivery.Created}
	if err := c.beside(ctx, &page, here); err != nil {
		return err
	}
	return render(ctx, http.StatusOK, deliveriesview.DeliveryDetailPage(page))
}

// deliveryLive streams the page's region as it changes.
func (c *Console) deliveryLive(ctx echo.Context) error {
	uid, err := pathUID(ctx)
	if err != nil {
		return err
	}
	acts := mayAct(ctx)
	return c.Stream(ctx, func(ctx context.Context) ([]byte, error) {
		page, err := c.deliveryPage(ctx, uid, acts)
		if err != nil {
			return nil, err
		}
		return renderHTML(ctx, deliveriesview.DeliveryRegion(page))
	})
}

// mayAct tells whether the reader may act on what needs attention.
func mayAct(ctx echo.Context) bool { return currentUser(ctx).Role.Allows(operator.RoleOperator) }

// deliveryPage loads one delivery with everything that its page says; acts tells
// whether its reader may act on what needs attention.
func (c *Console) deliveryPage(
	ctx context.Context, uid uuid.UUID, acts bool,
) (deliveriesview.DeliveryPage, error) {
	detail, err := c.Webhooks.Delivery(ctx, uid)
	if err != nil {
		return deliveriesview.DeliveryPage{}, err
	}
	subscription, err := c.Webhooks.Subscription(ctx, detail.SubscriptionUID)
	if err != nil {
		return deliveriesview.DeliveryPage{}, err
	}
	hash := sha256.Sum256(detail.Body)
	page := deliveriesview.DeliveryPage{
		Delivery: deliveryRow(detail.Delivery), SubscriptionState: string(subscription.State),
		MayAct:   acts,
		Signed:   subscription.Auth == webhook.AuthHMAC,
		EventUID: detail.EventUID.String(), Occurred: detail.EventAt,
		BodyRemoved: value(detail.BodyRemovedAt),
		Finished:    value(detail.FinishedAt), Body: detail.Body, SHA256: hex.EncodeToString(hash[:]),
		Attempts: ui.AttemptsOf(detail.Attempts), Diagnosis: ui.DiagnosisOf(detail, subscription.State),
		StreamURL: paths.To(paths.DeliveryLive, uid.String()), PollURL: paths.To(paths.Delivery, uid.String()),
	}
	if last := len(detail.Attempts) - 1; last >= 0 && detail.BodyRemovedAt == nil {
		attempt := detail.Attempts[last]
		page.Curl = webhook.Curl(attempt.URL, attempt.RequestHeaders, detail.Body)
	}
	if err := c.surround(ctx, &page, detail, subscription); err != nil {
		return deliveriesview.DeliveryPage{}, err
	}
	if page.Resends, err = c.resendViews(ctx, uid); err != nil {
		return deliveriesview.DeliveryPage{}, err
	}
	if detail.ResendOf != nil {
		page.Origin = &deliveriesview.ResendView{
			UID: detail.ResendOf.String(), By: value(detail.ResentBy),
			Reason: value(detail.ResendReason),
		}
	}
	if subscription.State != webhook.StateDeleted {
		page.Resend, err = c.resendFormOf(ctx, detail, subscription)
	}
	return page, err
}

func (c *Console) resendViews(ctx context.Context, uid uuid.UUID) ([]deliveriesview.ResendView, error) {
	deliveries, err := c.Webhooks.ResendsOf(ctx, uid)
	if err != nil {
		return nil, err
	}
	resends := make([]deliveriesview.ResendView, 0, len(deliveries))
	for _, delivery := range deliveries {
		resends = append(resends, deliveriesview.ResendView{
			UID: delivery.UID.String(), State: string(delivery.State),
			By: value(delivery.ResentBy), Reason: value(delivery.ResendReason),
			Created: delivery.CreatedAt,
		})
	}
	return resends, nil
}
