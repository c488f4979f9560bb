package partners

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/calendar"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/statement"
	view "drawbridge/views/partners"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

var statementsPlace = page.Place{Section: ui.SectionPartners, Title: "Daily statements"}

// maxVersions is how many versions of a statement its page lists.
const maxVersions = postgres.MaxPage

// statements lists the frozen statements.
func (f *Feature) statements() list.Spec[statement.Summary] {
	return list.Spec[statement.Summary]{
		Name: "console.statements", Path: paths.Statements, Role: support, Place: statementsPlace,
		Intro: "What partners get of each business day, frozen within half an hour of its end.",
		One:   "statement", Many: "statements", Order: "Newest first",
		Filters: []list.Filter{
			{Name: "merchant", Label: "Merchant id", Chip: "Merchant "},
			{Name: "date", Label: "Business day", Max: len("2026-11-20"), Placeholder: "2026-11-20"},
		},
		Read: func(v *list.Values) list.Source[statement.Summary] {
			filter := statement.Filter{Date: v.Text("date")}
			if merchant := v.UID("merchant"); merchant != uuid.Nil {
				filter.Merchants = []uuid.UUID{merchant}
			}
			if _, err := calendar.ParseDate(filter.Date); filter.Date != "" && err != nil {
				v.Wrong["date"] = "This is not a day; days look like 2026-11-20."
				filter.Date = ""
			}
			return list.Filtered(filter, f.Statements.List, f.Statements.Count)
		},
		Table: view.StatementTable,
		NoMatch: ui.EmptyProps{
			Title: "No statement matches these filters",
			Text:  "Remove a filter. The statement of a day that still runs is not listed.",
		},
		Empty: ui.EmptyProps{
			Icon: "file-text", Title: "No statements yet",
			Text: "Each merchant gets one for each business day, within half an hour of its end.",
			Href: paths.Docs + "/statements", Action: "Read what is in it",
		},
	}
}

// ownedStatement returns the version of a statement that the address names, by default the
// newest. Error: NOT_FOUND.
func (f *Feature) ownedStatement(ctx echo.Context) (view.StatementDetail, error) {
	uid, err := page.UID(ctx)
	if err != nil {
		return view.StatementDetail{}, err
	}
	version, err := strconv.Atoi(cmp.Or(ctx.QueryParam("version"), "0"))
	date, dateErr := calendar.ParseDate(ctx.Param("date"))
	none := lending.NewError(lending.CodeNotFound, "there is no such statement")
	if err != nil || dateErr != nil {
		return view.StatementDetail{}, none
	}
	request := ctx.Request().Context()
	var detail view.StatementDetail
	detail.Versions, _, err = f.Statements.List(request, statement.Filter{
		Merchants: []uuid.UUID{uid}, Date: date.String(), Versions: true,
	}, postgres.Paging{Limit: maxVersions})
	if err != nil {
		return detail, err
	}
	for _, one := range slices.Backward(detail.Versions) {
		if version == 0 || one.Version == version {
			detail.Summary = one
		}
	}
	if detail.Version == 0 {
		return detail, none
	}
	wanted := statement.Query{
		MerchantUID: uid, Date: date, Version: detail.Version, Format: statement.JSON,
	}
	if detail.JSON, err = f.Statements.Read(request, wanted); err != nil {
		return detail, err
	}
	wanted.Format = statement.CSV
	detail.CSV, err = f.Statements.Read(request, wanted)
	return detail, err
}

// statement shows one version of a statement.
func (f *Feature) statement(ctx echo.Context) error {
	detail, err := f.ownedStatement(ctx)
	if err != nil {
		return err
	}
	others := paths.Where(paths.Statements, "merchant", detail.MerchantUID.String())
	return f.Show(ctx, http.StatusOK,
		statementsPlace.Under(others, "Statement of "+detail.Date()), view.Statement(detail))
}

// statementFile downloads the exact bytes of a statement, or the signature over them. Every
// download is in the audit log before it begins.
func (f *Feature) statementFile(ctx echo.Context) error {
	detail, err := f.ownedStatement(ctx)
	if err != nil {
		return err
	}
	format, file := statement.JSON, detail.JSON
	if ctx.QueryParam("format") == string(statement.CSV) {
		format, file = statement.CSV, detail.CSV
	}
	name := fmt.Sprintf("statement-%s-%d.%s", detail.Date(), detail.Version, format)
	contentType, content := format.ContentType(), file.Content
	if ctx.QueryParam("part") == "signature" {
		name, contentType, content = name+".sig", echo.MIMEOctetStream, file.Signature
	}
	err = f.Record(ctx, operator.Entry{
		Action: "statement.download", SubjectKind: "merchant", Subject: detail.MerchantUID.String(),
		After: map[string]any{"file": name},
	})
	if err != nil {
		return err
	}
	ctx.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+name+`"`)
	return ctx.Blob(http.StatusOK, contentType, content)
}
