package console

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"drawbridge/internal/webhook"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// undelivered points to the newest delivery of an application that used up its
// attempts, which is what most questions about an application are about; nil
// when there is none or a re-send of it has arrived.
func (c *Console) undelivered(ctx context.Context, application uuid.UUID) (*ui.Notice, error) {
	first := false
	page, err := c.Webhooks.Deliveries(ctx, webhook.DeliveryFilter{
		ApplicationUID: application, State: webhook.DeliveryFailed, Resend: &first, Limit: 1,
	})
	if err != nil || len(page.Deliveries) == 0 {
		return nil, err
	}
	failed := page.Deliveries[0]
	resends, err := c.Webhooks.ResendsOf(ctx, failed.UID)
	if err != nil || slices.ContainsFunc(resends, func(d webhook.Delivery) bool {
		return d.State == webhook.DeliveryDelivered
	}) {
		return nil, err
	}
	return &ui.Notice{
		Tone: ui.Warn, Title: "A webhook of this application did not arrive",
		Text: fmt.Sprintf("“%s” used up its attempts at %s.", failed.Event.Title(),
			ui.HostOf(failed.URL)),
		Href: paths.To(paths.Delivery, failed.UID.String()), Action: "See why",
	}, nil
}
