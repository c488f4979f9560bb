package console

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/web/console/list"
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

	query, err := exported(ctx)
	if err != nil {
		return err
	}
	}
}

// exportApplications streams every application that matches the filter of the list.
func (c *Console) exportApplications(ctx echo.Context) error {
	query, err := exported(ctx)
	if err != nil {
		return err
	}
	filter, shown := readApplicationFilter(query)
	if err := unlessFaulty(shown.Faults); err != nil {
		return err
	}
	filter.Limit = exportBatch
	return c.sendCSV(ctx, csvFile{
		Name: "applications", Action: "application.export", SubjectKind: "application",
		Filter: applicationQuery(shown),
		Columns: []string{
			"application_id", "created_at", "status", "external_reference", "borrower",
			"borrower_email", "partner_uid", "partner", "merchant_uid", "merchant", "requested_amount",
			"loan_amount", "drawn_amount",
		},
		Next: byPages(func(from postgres.Cursor) ([]application.Summary, postgres.Cursor, error) {
			filter.Cursor = from
			page, err := c.Applications.List(ctx.Request().Context(), filter)
			return page.Applications, page.Next, err
		}, applicationCells),
	})
}

func applicationCells(s application.Summary) []string {
	return []string{
		s.UID.String(), cellTime(s.CreatedAt), string(s.Status), value(s.Reference),
		strings.TrimSpace(s.FirstName + " " + s.LastName), s.Email, s.PartnerUID.String(),
		s.PartnerName, s.MerchantUID.String(), s.MerchantName, s.RequestedAmount.String(),
		list.CellMoney(s.LoanAmount), list.CellMoney(s.Drawn),
	}
}
