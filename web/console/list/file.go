package list

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/sheet"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

const (
	// fileBatch is how many rows are loaded at a time for a file.
	fileBatch = 500
	// csvStall is how long a slow reader may take for one batch of a file.
	csvStall = 30 * time.Second
)

// File describes the download of a list's rows.
type File[R any] struct {
	// Path is the path of the download.
	Path string
	// Name is the prefix of the file's name; the time of the export follows.
	Name string
	// Action and Subject are the export's action and subject kind in the audit log, for
	// example "delivery.export" and "delivery".
	Action, Subject string
	// Columns are the column titles, Cells returns a row's cells.
	Columns []string
	Cells   func(R) []string
	// ByLink offers the download as a link with the filter in its address, not as a form.
	ByLink bool
}

// export streams all rows that match the filter of the list.
func (l lister[R]) export(ctx echo.Context) error {
	query := ctx.QueryParams()
	if !l.File.ByLink {
		var err error
		if query, err = url.ParseQuery(ctx.FormValue("filter")); err != nil {
			return errUnreadable()
		}
	}
	query.Del("cursor")
	v, err := Matching(ctx, l.Engine, l.Spec, query)
	if err != nil {
		return err
	}
	source := l.Read(v)
	place, ended := "", false
	return l.File.Send(ctx, l.Engine.Engine, v.Query(), func() ([]R, error) {
		if ended {
			return nil, nil
		}
		rows, next, err := source.Load(ctx.Request().Context(), place, fileBatch)
		place, ended = next, next == ""
		return rows, err
	})
}

// Matching reads the filter of a list from the query that a form or a file carries. Error:
// VALIDATION_ERROR for a wrong filter.
func Matching[R any](ctx echo.Context, e *Engine, spec Spec[R], query url.Values) (*Values, error) {
	v := lister[R]{e, spec}.read(ctx, query)
	if spec.Read(v); len(v.Wrong) > 0 {
		return nil, lending.NewError(lending.CodeValidation,
			"The filter cannot be read. Open the list, correct it there and export again.")
	}
	return v, nil
}

// Send streams the rows of a filter, and writes to the audit log who downloaded what. next
// returns the next batch, limited to what memory can hold, and none at the end. An error
// before the first row is answered normally. After it, or if the session has ended, the
// connection is aborted: a file that lacks rows must not look complete.
func (f File[R]) Send(
	ctx echo.Context, engine *action.Engine, filter url.Values, next func() ([]R, error),
) error {
	batch := func() ([][]string, error) {
		rows, err := next()
		cells := make([][]string, 0, len(rows))
		for _, row := range rows {
			cells = append(cells, f.Cells(row))
		}
		return cells, err
	}
	first, err := batch()
	if err != nil {
		return err
	}
	err = engine.Record(ctx, operator.Entry{
		Action: f.Action, SubjectKind: f.Subject, Subject: "csv",
		After: map[string]any{"filter": filter.Encode(), "columns": f.Columns},
	})
	if err != nil {
		return err
	}
	header := ctx.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8; header=present")
	header.Set(echo.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="%s-%s.csv"`,
		f.Name, engine.DB.Now().UTC().Format("20060102T150405Z")))
	ctx.Response().WriteHeader(http.StatusOK)
	first = append([][]string{f.Columns}, first...)
	if err := streamCSV(ctx, engine.Site, first, batch); err != nil {
		if request := ctx.Request().Context(); request.Err() == nil {
			slog.WarnContext(request, "sending a file", "route", ctx.Path(), "error", err)
		}
		// Abort without the final chunk, which a returning handler would send, so that the
		// browser reports a failed download.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func streamCSV(
	ctx echo.Context, site *page.Site, batch [][]string, next func() ([][]string, error),
) error {
	checked := site.DB.Now()
	controller := http.NewResponseController(ctx.Response())
	writer := csv.NewWriter(ctx.Response())
	for len(batch) > 0 {
		// The file as a whole may take longer than a request; each batch may not. A writer that
		// supports no deadlines belongs to a test without a connection.
		_ = controller.SetWriteDeadline(time.Now().Add(csvStall))
		if err := writeBatch(writer, batch); err != nil {
			return err
		}
		if err := controller.Flush(); err != nil {
			return err
		}
		postgres.Renew(ctx.Request().Context()) // a new time limit for the next batch
		var err error
		if batch, err = next(); err != nil {
			return err
		}
		if now := site.DB.Now(); now.Sub(checked) > page.SessionCheck {
			checked = now
			if known, err := site.StillSignedIn(ctx); !known || err != nil {
				return cmp.Or(err, errSignedOut)
			}
		}
	}
	return nil
}

var errSignedOut = errors.New("the session of who takes the file has ended")

func writeBatch(writer *csv.Writer, rows [][]string) error {
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = sheet.Inert(cell)
		}
		if err := writer.Write(cells); err != nil {
			return err
		}
	}
	writer.Flush()
	return writer.Error()
}

// CellTime formats a time in UTC, empty for the zero time.
func CellTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// CellNumber formats a number, empty for zero.
func CellNumber(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// CellMoney formats an amount, empty for nil.
func CellMoney(amount *lending.Money) string {
	if amount == nil {
		return ""
	}
	return amount.String()
}
