package console

import (
	"context"
	"encoding/csv"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// csvStall is how long one batch of a file may take to a slow reader.
const csvStall = 30 * time.Second

// csvFile is a list as a file to download.
type csvFile struct {
	// Name begins the file's name; the time of the export follows.
	Name string
	// Action and SubjectKind name the export in the audit log, as in
	// "delivery.export" of a "delivery".
	Action, SubjectKind string
	// Filter is what narrowed the list.
	Filter url.Values
	// Columns are the titles.
	Columns []string
	// Next returns the next batch of rows, none at the end. It must not return
	// more rows than memory may hold at once.
	Next func() ([][]string, error)
}

// sendCSV streams a file, batch by batch, and keeps in the audit log who took
// what. An error before the first row is answered like any other. After it the
// connection breaks off: a file that lacks rows must not look whole.
func (c *Console) sendCSV(ctx echo.Context, file csvFile) error {
	rows, err := file.Next()
	if err != nil {
		return err
	}
	if err := c.auditCSV(ctx, file); err != nil {
		return err
	}
	header := ctx.Response().Header()
	header.Set(echo.HeaderContentType, "text/csv; charset=utf-8; header=present")
	header.Set(echo.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="%s-%s.csv"`,
		file.Name, c.DB.Now().UTC().Format("20060102T150405Z")))
	ctx.Response().WriteHeader(http.StatusOK)
	if err := streamCSV(ctx, file, rows); err != nil {
		abortCSV(ctx, err)
	}
	return nil
}

func streamCSV(ctx echo.Context, file csvFile, rows [][]string) error {
	controller := http.NewResponseController(ctx.Response())
	writer := csv.NewWriter(ctx.Response())
	batch := append([][]string{file.Columns}, rows...)
	for len(batch) > 0 {
		// The file may take longer than a request; each batch may not. A writer
		// without deadlines is that of a test without a connection.
		_ = controller.SetReadDeadline(time.Time{})
		_ = controller.SetWriteDeadline(time.Now().Add(csvStall))
		if err := writeBatch(writer, batch); err != nil {
			return err
		}
		if err := controller.Flush(); err != nil {
			return err
		}
		postgres.Renew(ctx.Request().Context()) // for the next batch
		var err error
		if batch, err = file.Next(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Console) auditCSV(ctx echo.Context, file csvFile) error {
	user := currentUser(ctx)
	return c.inTx(ctx, func(request context.Context, tx *postgres.Tx) error {
		return c.Operators.Audit(request, tx, operator.Entry{
			Actor: user.Email, Address: ctx.RealIP(), Action: file.Action,
			SubjectKind: file.SubjectKind, Subject: "csv",
			After: map[string]any{"filter": file.Filter.Encode(), "columns": file.Columns},
		})
	})
}

func writeBatch(writer *csv.Writer, rows [][]string) error {
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = inert(cell)
		}
		if err := writer.Write(cells); err != nil {
			return err
		}
	}
	writer.Flush()
	return writer.Error()
}

// abortCSV ends a response that has begun. Without the final chunk, which a
// handler that returns would send, the browser reports a failed download.
func abortCSV(ctx echo.Context, err error) {
	request := ctx.Request().Context()
	if request.Err() == nil {
		slog.WarnContext(request, "sending a file", "route", ctx.Path(), "error", err)
	}
	panic(http.ErrAbortHandler)
}

// plainNumber is what spreadsheets take for a number, whatever its sign.
var plainNumber = regexp.MustCompile(`^[+-]?\d+(\.\d+)?$`)

// laterFormula is what begins like a formula behind what ends a cell for a
// spreadsheet that parts cells by semicolons or tabs: it takes the quotes around
// the cell for text then, and a line break for the end of the row.
var laterFormula = regexp.MustCompile(
	"([;\\t\\r\\n])([ \\x{00A0}\\x{3000}\\x{FEFF}\\x{200B}\\v\\f\"']*[=+\\-@|%＝＋－＠])")

// inert keeps a spreadsheet from taking text for a formula: what begins like
// one, spaces left aside, gets an apostrophe before it, as spreadsheets
// themselves write text. NUL, which ends a file for some, is left out.
func inert(cell string) string {
	cell = strings.ReplaceAll(strings.ToValidUTF8(cell, "\uFFFD"), "\x00", "")
	cell = laterFormula.ReplaceAllString(cell, "$1'$2")
	start := strings.TrimLeft(cell, " \u00A0\u3000\uFEFF\u200B\n\v\f\"'")
	if start == "" || plainNumber.MatchString(cell) {
		return cell
	}
	first, _ := utf8.DecodeRuneInString(start)
	if strings.ContainsRune("=+-@\t\r|%＝＋－＠", first) {
		return "'" + cell
	}
	return cell
}
