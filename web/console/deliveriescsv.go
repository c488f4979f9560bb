package console

import (
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// exportDeliveries streams every delivery that matches the filter of a list.
func (c *Console) exportDeliveries(ctx echo.Context) error {
	query, err := exported(ctx)
	if err != nil {
		return err
	}
	filter, shown := c.reader(ctx).readFilter(query)
	if err := unlessFaulty(shown.Faults); err != nil {
		return err
	}
	filter.Limit = exportBatch
	return c.sendCSV(ctx, csvFile{
		Name: "deliveries", Action: "delivery.export", SubjectKind: "delivery",
		Filter: filterQuery(shown), Columns: deliveryColumns,
		Next: byPages(func(from postgres.Cursor) ([]webhook.Delivery, postgres.Cursor, error) {
			filter.Cursor = from
			page, err := c.Webhooks.Deliveries(ctx.Request().Context(), filter)
			return page.Deliveries, page.Next, err
		}, deliveryCells),
	})
}

// deliveryColumns are the titles of the file; times are in UTC.
var deliveryColumns = []string{
	"delivery_uid", "created_at", "state", "event", "status", "application_id", "partner_uid",
	"partner", "subscription_uid", "url", "event_uid", "event_at", "attempts", "next_attempt_at",
	"last_http_status", "last_error_class", "last_duration_ms", "finished_at", "test",
	"resend_of", "resent_by", "resend_reason",
}

func deliveryCells(d webhook.Delivery) []string {
	row := deliveryRow(d)
	return []string{
		row.UID, cellTime(d.CreatedAt), row.State, row.Event, row.Status, row.Application,
		d.PartnerUID.String(), row.Partner, row.Subscription, row.URL, d.EventUID.String(),
		cellTime(d.EventAt), strconv.Itoa(d.AttemptCount), cellTime(row.NextAttempt),
		cellNumber(int64(row.HTTPStatus)), row.ErrorClass,
		cellNumber(value(d.LastDurationUS) / 1000), cellTime(value(d.FinishedAt)),
		strconv.FormatBool(d.Test), known(value(d.ResendOf)), value(d.ResentBy),
		value(d.ResendReason),
	}
}

// cellTime writes a time in UTC, empty for none.
func cellTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// cellNumber writes a number, empty for zero.
func cellNumber(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
