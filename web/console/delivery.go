package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
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
	if isFragment(ctx.Request()) {
		return render(ctx, http.StatusOK, deliveriesview.DeliveryRegion(page))
	}
	page.Frame, err = c.frame(ctx, ui.SectionDeliveries, page.Delivery.Event,
		ui.Crumb{Label: "Deliveries", Href: paths.Deliveries},
		ui.Crumb{Label: page.Delivery.Label()})
	if err != nil {
		return err
	}
	page.Live = true
	page.Notice = c.takeNotice(ctx)
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
	return c.stream(ctx, func(ctx context.Context) ([]byte, error) {
		page, err := c.deliveryPage(ctx, uid, acts)
		if err != nil {
			return nil, err
		}
		return renderHTML(ctx, deliveriesview.DeliveryRegion(page))
	})
}

// pathUID reads the id in the path. One that cannot be an id names nothing.
func pathUID(ctx echo.Context) (uuid.UUID, error) {
	text := ctx.Param("uid")
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, lending.NewError(lending.CodeNotFound,
			"%s", noSuch(ctx.Request().URL.Path))
	}
	return uid, nil
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
		Attempts: attemptViews(detail), Diagnosis: diagnosis(detail, subscription.State),
		StreamURL: paths.To(paths.DeliveryLive, uid.String()),
		PollURL:   paths.To(paths.Delivery, uid.String()),
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

func (c *Console) resendViews(
	ctx context.Context, uid uuid.UUID,
) ([]deliveriesview.ResendView, error) {
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

// attemptViews opens the last attempt when it is what the reader came for.
func attemptViews(detail webhook.DeliveryDetail) []ui.AttemptView {
	attempts := make([]ui.AttemptView, 0, len(detail.Attempts))
	for i, record := range detail.Attempts {
		attempts = append(attempts, ui.AttemptView{
			Number: record.Number, Started: record.StartedAt,
			HTTPStatus: record.HTTPStatus, ErrorClass: string(record.ErrorClass),
			Error: sentence(record.Error), Note: sentence(record.Note),
			Address: record.Address, Travelled: travelled(record), URL: record.URL,
			Version: record.SubscriptionVersion,
			Phases: ui.Phases{
				DNS: record.DNS, Connect: record.Connect, TLS: record.TLS,
				FirstByte: record.FirstByte, Total: record.Duration,
			},
			RequestHeaders:  headerViews(record.RequestHeaders),
			ResponseHeaders: headerViews(record.ResponseHeaders),
			ResponseBody:    record.ResponseBody,
			Expanded:        record.ErrorClass != "" && i == len(detail.Attempts)-1,
		})
	}
	return attempts
}

// travelled says how an attempt's request went: over which protocol, on a new
// connection or one that was open, under which certificate.
func travelled(record webhook.AttemptRecord) string {
	var parts []string
	for _, part := range []string{record.Protocol, record.TLSVersion} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if record.Reused != nil {
		parts = append(parts, map[bool]string{
			true: "on an open connection", false: "on a new connection",
		}[*record.Reused])
	}
	if at := value(record.CertificateExpires); !at.IsZero() {
		parts = append(parts, "certificate until "+at.UTC().Format("2006-01-02"))
	}
	return strings.Join(parts, ", ")
}

func headerViews(headers []webhook.Header) []ui.HeaderView {
	shown := make([]ui.HeaderView, 0, len(headers))
	for _, header := range headers {
		shown = append(shown, ui.HeaderView{
			Name: header.Name, Value: header.Value, Masked: webhook.IsMasked(header.Value),
		})
	}
	return shown
}

// diagnosis explains a delivery's state in plain words.
func diagnosis(detail webhook.DeliveryDetail, subscription webhook.State) ui.Diagnosis {
	last := webhook.AttemptRecord{}
	if len(detail.Attempts) > 0 {
		last = detail.Attempts[len(detail.Attempts)-1]
	}
	why := webhook.Diagnose(last)
	owner := string(why.Owner)
	switch {
	case detail.State == webhook.DeliveryDelivered:
		return ui.Diagnosis{Tone: ui.Good, Title: "The partner has received it", Text: sentence(
			fmt.Sprintf("the endpoint answered %d to attempt %d", last.HTTPStatus, last.Number))}
	case detail.State == webhook.DeliveryCancelled:
		return ui.Diagnosis{
			Tone: ui.Mute, Title: "It was cancelled and will not be sent",
			Text: "Its subscription was deleted, or an operator cancelled it, before it went out.",
		}
	case subscription == webhook.StatePaused:
		return ui.Diagnosis{
			Tone: ui.Mute, Title: "It waits: the subscription is paused",
			Text: "It goes out when the subscription is resumed.",
		}
	case detail.Parked:
		return ui.Diagnosis{
			Tone: ui.Bad, Title: "It waits: nothing can be sent to its subscription",
			Text: "The subscription's secret or headers do not open; its page says what to do.",
		}
	case detail.State == webhook.DeliveryFailed:
		return ui.Diagnosis{
			Tone: ui.Bad, Title: "All attempts are used up",
			Text: why.Summary, Owner: owner, Next: strings.TrimSpace(why.Next),
		}
	case detail.State == webhook.DeliveryRetrying:
		return ui.Diagnosis{
			Tone: ui.Warn, Title: "It failed and will be tried again by itself",
			Text: why.Summary, Owner: owner, Next: strings.TrimSpace(why.Next),
		}
	}
	return ui.Diagnosis{}
}
