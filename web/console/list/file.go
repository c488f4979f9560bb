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
	// fileBatch is how many rows of a list are read at a time for a file.
	fileBatch = 500
	// csvStall is how long one batch of a file may take to a slow reader.
	csvStall = 30 * time.Second
)

// File is rows as a file to download.
type File[R any] struct {
	// Path is where a list has it.
	Path string
	// Name begins the file's name; the time of the export follows.
	Name string
	// Action and Subject name the export in the audit log, as in "delivery.export" of a
	// "delivery".
	Action, Subject string
	// Columns are the titles, Cells what a row has under them.
	Columns []string
	Cells   func(R) []string
	// ByLink fetches the file by a link with the filter in its address, not by a form.
	ByLink bool
}

// export streams every row that matches the filter of the list.
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

// Matching reads the filter that a form or a file of a list carries, and refuses one
// that is wrong.
func Matching[R any](ctx echo.Context, e *Engine, spec Spec[R], query url.Values) (*Values, error) {
	v := lister[R]{e, spec}.read(ctx, query)
	if spec.Read(v); len(v.Wrong) > 0 {
		return nil, lending.NewError(lending.CodeValidation,
			"The filter cannot be read. Open the list, correct it there and export again.")
	}
	return v, nil
}

// Send streams the rows that a filter leaves, and keeps in the audit log who took what: next
// returns a batch of them, no more than memory may hold at once and none at the end. An error
// before the first row is answered like any other. After it, and when the session
// has ended, the connection breaks off: a file that lacks rows must not look whole.
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
		// Without the final chunk, which a handler that returns would send, the browser
		// reports a failed download.
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
		// The file may take longer than a request; each batch may not. A writer
		// without deadlines is that of a test without a connection.
		_ = controller.SetWriteDeadline(time.Now().Add(csvStall))
		if err := writeBatch(writer, batch); err != nil {
			return err
		}
		if err := controller.Flush(); err != nil {
			return err
		}
		postgres.Renew(ctx.Request().Context()) // for the next batch
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

// CellTime writes a time in UTC, empty for none.
func CellTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// CellNumber writes a number, empty for zero.
func CellNumber(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// CellMoney writes an amount, empty for none.
func CellMoney(amount *lending.Money) string {
	if amount == nil {
		return ""
	}
	return amount.String()
}
