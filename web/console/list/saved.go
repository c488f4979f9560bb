package list

import (
	"context"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

// SaveRoute returns the route that saves a reader's filter under a name, or removes a saved
// one. Saved filters are personal preferences, so they are not in the audit log.
func (e *Engine) SaveRoute() page.Route {
	save := func(ctx echo.Context) (action.Change, error) {
		path := ctx.FormValue("path")
		if !e.saved[path] {
			return action.Change{}, lending.Invalid("path", "there is no list at %.60q", path)
		}
		query, err := url.ParseQuery(ctx.FormValue("filter"))
		if err != nil {
			return action.Change{}, errUnreadable()
		}
		user, views := page.User(ctx), operator.SavedViews{DB: e.Operators.DB}
		outcome := operator.Outcome{Target: paths.With(path, query)}
		return action.Change{
			Do: func(request context.Context, tx *postgres.Tx) (operator.Outcome, error) {
				remove := ctx.FormValue("remove")
				if remove == "" {
					err := views.Save(request, tx, user.UID, operator.SavedView{
						Name: ctx.FormValue("name"), Path: path, Query: query.Encode(),
					})
					return outcome, page.WithLabels(err, map[string]string{"name": "The name"})
				}
				uid, err := uuid.Parse(remove)
				if err != nil {
					return outcome, lending.Invalid("remove", "%.60q is not the id of a view", remove)
				}
				return outcome, views.Delete(request, tx, user.UID, uid)
			},
		}, nil
	}
	return page.Post(paths.SavedViews, "console.savedViews", operator.RoleSupport, e.Post(save))
}

// namedFilters returns the named filters of a list: everybody's, the reader's own, and the
// tail.
func (l lister[R]) namedFilters(ctx echo.Context, v *Values) (*ui.NamedFilters, error) {
	query := v.Query()
	bar := &ui.NamedFilters{Path: l.Path, Query: query.Encode()}
	for _, view := range l.Views {
		bar.Links = append(bar.Links, ui.ViewLink{
			Label: view.Label, Href: l.Path + "?" + view.Query, Current: view.Query == bar.Query,
		})
	}
	saved, err := operator.SavedViews{DB: l.Operators.DB}.List(
		ctx.Request().Context(), page.User(ctx).UID, l.Path)
	if err != nil {
		return nil, err
	}
	for _, view := range saved {
		href := view.Path
		if view.Query != "" {
			href += "?" + view.Query
		}
		bar.Links = append(bar.Links, ui.ViewLink{
			Label: view.Name, Href: href, UID: view.UID.String(), Current: view.Query == bar.Query,
		})
	}
	if l.Live != nil {
		tail := ui.ViewLink{Label: "Tail", Href: v.href("tail", "1")}
		if v.mode == modeTail {
			tail.Href, tail.Current = v.href("", ""), true
		}
		bar.Links = append(bar.Links, tail)
	}
	return bar, nil
}

func errUnreadable() error {
	return lending.Invalid("filter", "the filter cannot be read; open the list and try again")
}
