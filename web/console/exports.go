package console

import (
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
	"drawbridge/views/ui"
)

// exportBatch is how many rows of a list are read at a time for a file.
const exportBatch = 500

// exported is the filter of the list that is asked for as a file, as the address of
// the list has it, without a place in it.
func exported(ctx echo.Context) (url.Values, error) {
	query, err := url.ParseQuery(ctx.FormValue("filter"))
	if err != nil {
		return nil, lending.Invalid("filter", "the filter cannot be read; open the list and try again")
	}
	query.Del("cursor")
	return query, nil
}

// unlessFaulty refuses a file of a list whose filter is wrong.
func unlessFaulty(faults map[string]string) error {
	if len(faults) == 0 {
		return nil
	}
	return lending.NewError(lending.CodeValidation,
		"The filter cannot be read. Open the list, mend it there and export again.")
}

// byPages reads a list for a file, a page at a time: read returns the page that
// begins at a cursor, and where the next one begins.
func byPages[T any](
	read func(postgres.Cursor) ([]T, postgres.Cursor, error), cells func(T) []string,
) func() ([][]string, error) {
	var from postgres.Cursor
	ended := false
	return func() ([][]string, error) {
		if ended {
			return nil, nil
		}
		page, next, err := read(from)
		from, ended = next, next.IsZero()
		rows := make([][]string, 0, len(page))
		for _, row := range page {
			rows = append(rows, cells(row))
		}
		return rows, err
	}
}

// exportEvents streams every event that matches the filter of the list.
func (c *Console) exportEvents(ctx echo.Context) error {
	query, err := exported(ctx)
	if err != nil {
		return err
	}
	request := ctx.Request().Context()
	filter, shown := readEventFilter(query, ui.ZoneOf(request))
	if err := unlessFaulty(shown.Faults); err != nil {
		return err
	}
	filter.Limit = exportBatch
	return c.sendCSV(ctx, csvFile{
		Name: "events", Action: "event.export", SubjectKind: "event", Filter: eventQuery(shown),
		Columns: []string{
			"event_uid", "occurred_at", "event", "status", "application_id", "partner_uid", "partner",
			"merchant_uid", "merchant", "test", "delivered", "failed", "open", "cancelled", "passed_over",
			"resends",
		},
		Next: byPages(func(from postgres.Cursor) ([]webhook.EventRecord, postgres.Cursor, error) {
			filter.Cursor = from
			page, err := c.Webhooks.Events(request, filter)
			return page.Events, page.Next, err
		}, eventCells),
	})
}

func eventCells(e webhook.EventRecord) []string {
	row := eventRow(e) // which leaves out the sample application of a test event
	return []string{
		row.UID, cellTime(e.OccurredAt), row.Kind, row.Status, row.Application,
		e.PartnerUID.String(), row.Partner, known(value(e.MerchantUID)), row.Merchant,
		strconv.FormatBool(e.Test), strconv.Itoa(e.FanOut.Delivered), strconv.Itoa(e.FanOut.Failed),
		strconv.Itoa(e.FanOut.Open), strconv.Itoa(e.FanOut.Cancelled),
		strconv.Itoa(e.FanOut.PassedOver), strconv.Itoa(e.FanOut.Resends),
	}
}

// exportEmails streams every e-mail that matches the filter of the list.
func (c *Console) exportEmails(ctx echo.Context) error {
	query, err := exported(ctx)
	if err != nil {
		return err
	}
	filter, shown, _ := readEmailFilter(query)
	if err := unlessFaulty(shown.Faults); err != nil {
		return err
	}
	return c.sendCSV(ctx, csvFile{
		Name: "emails", Action: "email.export", SubjectKind: "email", Filter: emailQuery(shown),
		Columns: []string{
			"email_uid", "created_at", "kind", "to", "subject", "state", "reason", "outcome_unknown",
			"attempts", "next_attempt_at", "finished_at", "application_id", "resend_of", "resent_by",
			"resend_reason",
		},
		Next: byPages(func(from postgres.Cursor) ([]email.Email, postgres.Cursor, error) {
			return email.List(ctx.Request().Context(), c.DB, filter, from, exportBatch)
		}, emailCells),
	})
}

func emailCells(e email.Email) []string {
	return []string{
		e.EmailUID.String(), cellTime(e.CreatedAt), string(e.Kind), e.ToAddress, e.Subject,
		string(e.State), e.Reason, strconv.FormatBool(e.OutcomeUnknown), strconv.Itoa(e.Tries()),
		cellTime(value(e.NextAttemptAt)), cellTime(value(e.FinishedAt)), known(e.ApplicationUID.UUID),
		known(e.ResendOf.UUID), e.ResentBy, e.ResendReason,
	}
}
