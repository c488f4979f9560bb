package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// savedLists are the lists whose filters can be saved.
var savedLists = []string{
	paths.Deliveries, paths.Applications, paths.Emails, paths.Subscriptions,
	paths.Events, paths.Requests, paths.Audit,
}

// viewsBar are the reader's own views of a list under a filter.
func (c *Console) viewsBar(
	ctx echo.Context, path string, filter url.Values,
) (ui.NamedFilters, error) {
	bar := ui.NamedFilters{Path: path, Query: filter.Encode()}
	saved, err := c.Operators.SavedViews(ctx.Request().Context(), currentUser(ctx).UID, path)
	for _, view := range saved {
		bar.Links = append(bar.Links, ui.ViewLink{
			Label: view.Name, Href: listHref(view.Path, view.Query), UID: view.UID.String(),
			Current: view.Query == bar.Query,
		})
	}
	return bar, err
}

func listHref(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// saveView keeps a list's filter under a name, or removes one that is kept. It
// is the reader's own preference, which no audit log is about.
func (c *Console) saveView(ctx echo.Context) error {
	user := currentUser(ctx)
	path, err := savedList(ctx.FormValue("path"))
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(ctx.FormValue("filter"))
	if err != nil {
		return lending.Invalid("filter", "the filter cannot be read; open the list and try again")
	}
	target := listHref(path, query.Encode())
	_, err = c.act(ctx, func(request context.Context, tx *postgres.Tx) (string, error) {
		if remove := ctx.FormValue("remove"); remove != "" {
			uid, err := uuid.Parse(remove)
			if err != nil {
				return "", lending.Invalid("remove", "%.60q is no id of a view", remove)
			}
			return target, c.Operators.DeleteView(request, tx, user.UID, uid)
		}
		return target, c.Operators.SaveView(request, tx, user.UID, operator.SavedView{
			Name: ctx.FormValue("name"), Path: path, Query: query.Encode(),
		})
	})
	if err != nil {
		return err
	}
	return ctx.Redirect(http.StatusSeeOther, target)
}

// savedList returns the path of a list whose filters can be saved.
func savedList(path string) (string, error) {
	for _, list := range savedLists {
		if path == list {
			return list, nil
		}
	}
	return "", lending.Invalid("path", "there is no list at %.60q", path)
}
