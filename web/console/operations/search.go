package operations

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/views/operations"
	"drawbridge/web/console/page"
)

// search leads to the one thing that the text names, or lists what it may be.
// Under htmx it answers the list alone, which the palette shows while typing.
func (f *Feature) search(ctx echo.Context) error {
	sought := strings.TrimSpace(ctx.QueryParam("q"))
	hits, err := f.Search.Find(ctx.Request().Context(), sought)
	if err != nil {
		return err
	}
	if page.IsFragment(ctx) {
		pages := operations.PagesNamed(sought, string(page.User(ctx).Role))
		return page.Render(ctx, http.StatusOK, operations.Hits(sought, hits, pages))
	}
	if len(hits) == 1 {
		return ctx.Redirect(http.StatusSeeOther, operations.HitHref(hits[0]))
	}
	return f.Show(ctx, http.StatusOK, page.Place{Title: "Search", Query: sought},
		operations.Search(sought, hits))
}
