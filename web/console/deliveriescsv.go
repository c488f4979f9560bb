package console

import (
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook"
)

// exportDeliveries streams every delivery that matches the filter of a list.
func (c *Console) exportDeliveries(ctx echo.Context) error {
	query, err := url.ParseQuery(ctx.FormValue("filter"))
	if err != nil {
		return lending.Invalid("filter", "the filter cannot be read; open the list and try again")
	}
	filter, shown := c.reader(ctx).readFilter(query)
	if len(shown.Faults) > 0 {
		return lending.NewError(lending.CodeValidation,
			"The filter cannot be read. Open the list, mend it there and export again.")
	}
	filter.Limit = webhook.MaxPage
	request, ended := ctx.Request().Context(), false
	return c.sendCSV(ctx, csvFile{
		Name: "deliveries", Action: "delivery.export", SubjectKind: "delivery",
		Filter: filterQuery(shown), Columns: deliveryColumns,
		Next: func() ([][]string, error) {
			if ended {
				return nil, nil
			}
			page, err := c.Webhooks.Deliveries(request, filter)
			filter.Cursor, ended = page.Next, page.Next.IsZero()
			return deliveryCells(page.Deliveries), err
		},
	})
}

// deliveryColumns are the titles of the file; times are in UTC.
var deliveryColumns = []string{
	"delivery_uid", "created_at", "state", "event", "status", "application_id", "partner_uid",
	"partner", "subscription_uid", "url", "event_uid", "event_at", "attempts", "next_attempt_at",
	"last_http_status", "last_error_class", "last_duration_ms", "finished_at", "test",
	"resend_of", "resent_by", "resend_reason",
}

func deliveryCells(deliveries []webhook.Delivery) [][]string {
	rows := make([][]string, 0, len(deliveries))
	for _, d := range deliveries {
		row := deliveryRow(d)
		resendOf := ""
		if d.ResendOf != nil {
			resendOf = d.ResendOf.String()
		}
		rows = append(rows, []string{
			row.UID, cellTime(d.CreatedAt), row.State, row.Event, row.Status, row.Application,
			d.PartnerUID.String(), row.Partner, row.Subscription, row.URL, d.EventUID.String(),
			cellTime(d.EventAt), strconv.Itoa(d.AttemptCount), cellTime(row.NextAttempt),
			cellNumber(int64(row.HTTPStatus)), row.ErrorClass,
			cellNumber(value(d.LastDurationUS) / 1000), cellTime(value(d.FinishedAt)),
			strconv.FormatBool(d.Test), resendOf, value(d.ResentBy), value(d.ResendReason),
		})
	}
	return rows
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
