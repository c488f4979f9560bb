// Package list is the one list of the console. A Spec describes a list: its filters, tabs,
// columns, order, file and saved views. The engine reads the filter from the address and
// writes it back, counts the rows for a limited time, pages by keyset, streams the file,
// and keeps a live list up to date.
package list

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/action"
	"drawbridge/web/console/page"
)

const (
	// PageSize is how many rows a page of a list has.
	PageSize = 50
	// loadTimeout bounds the queries of a list that has an Unavailable text.
	loadTimeout = 5 * time.Second
)

// Spec is a list of rows of one type.
type Spec[R any] struct {
	// Name is the list's route, Path its path, Role the lowest role that may read it.
	Name, Path string
	Role       operator.Role
	Place      page.Place
	// Intro says in a sentence what is listed; IntroOf is used if the sentence needs a query.
	Intro   string
	IntroOf func(ctx context.Context) (string, error)
	// One and Many name the rows: "delivery", "deliveries".
	One, Many string
	// Order says how it is sorted: "Newest first".
	Order string
	// SummaryBelow puts the count under the table, beside the order.
	SummaryBelow bool
	// Tabs switch between the values of one filter that has tabs instead of a field.
	Tabs Tabs
	// Filters are the other filters, in the order of the form. Search keeps their form open.
	Filters []Filter
	Search  bool
	// Read reads the filter, and returns the source of the rows that match it.
	Read func(v *Values) Source[R]
	// CheckPlace reports whether a text is a position in this list; nil means keyset cursors.
	CheckPlace func(text string) bool
	// Table returns the table of the given rows.
	Table func(rows []R) ui.TableProps[R]
	// Empty is shown if the list is empty, NoMatch if nothing matches the filter. EmptyBody,
	// unless nil, is shown instead of Empty.
	Empty, NoMatch ui.EmptyProps
	EmptyBody      templ.Component
	// Unavailable is the text shown if the rows could not be loaded in time. If it is empty,
	// the list answers with the error.
	Unavailable string
	// Buttons are shown beside the title.
	Buttons templ.Component
	// File is the list's download, nil for none.
	File *File[R]
	// Saved lets readers save filters under a name; Views are the names that everybody has.
	Saved bool
	Views []View
	// PickAction is where the form with the selected rows is sent, PickButtons are its
	// buttons. Both are empty if rows cannot be selected.
	PickAction  string
	PickButtons templ.Component
	// Live keeps the list up to date; nil for a list that does not change on screen.
	Live *Live[R]
}

// Tabs are the values of a filter that is shown as tabs instead of a field.
type Tabs struct {
	Name string
	// Options start with the one that has no value.
	Options []ui.Option
	// Default, if set, is the value that the tab without a value stands for: the tabs are then
	// separate lists, and do not count as a filter.
	Default string
}

// View is a filter with a name, for everybody.
type View struct{ Label, Query string }

// Source reads the rows that match a filter.
type Source[R any] struct {
	// Load returns up to limit rows from a position on, and the position of the next page,
	// empty on the last one.
	Load func(ctx context.Context, from string, limit int) (rows []R, next string, err error)
	// Count counts the rows up to a limit; nil if they are not counted.
	Count func(ctx context.Context, limit int) (int, error)
	// Newer counts, up to a page's limit, the rows before a position; only for live lists.
	Newer func(ctx context.Context, page postgres.Paging) (int, error)
}

// Keyset returns a Source's Load for rows that are sorted by time and identifier.
func Keyset[R any](
	load func(context.Context, postgres.Paging) ([]R, postgres.Cursor, error),
) func(context.Context, string, int) ([]R, string, error) {
	return func(ctx context.Context, from string, limit int) ([]R, string, error) {
		place, err := postgres.ParseCursor(from)
		if err != nil {
			return nil, "", err
		}
		rows, next, err := load(ctx, postgres.Paging{From: place, Limit: limit})
		return rows, next.String(), err
	}
}

// Filtered returns the source of the rows that match a filter: load gets it with the
// requested page.
func Filtered[F, R any](
	filter F,
	load func(context.Context, F, postgres.Paging) ([]R, postgres.Cursor, error),
	count func(context.Context, F, int) (int, error),
) Source[R] {
	return Source[R]{
		Load: Keyset(func(ctx context.Context, page postgres.Paging) ([]R, postgres.Cursor, error) {
			return load(ctx, filter, page)
		}),
		Count: func(ctx context.Context, limit int) (int, error) { return count(ctx, filter, limit) },
	}
}

// Engine serves lists.
type Engine struct {
	*action.Engine
	// CountTimeout is how long a list waits for its count; zero means 50 ms.
	CountTimeout time.Duration
	// Things finds the options of pickers.
	Things *search.Service
	// saved are the paths of the lists whose filters can be saved.
	saved map[string]bool
}

// Routes returns the routes of a list: its pages, its file, its live region.
func Routes[R any](e *Engine, spec Spec[R]) []page.Route {
	l := lister[R]{e, spec}
	routes := []page.Route{page.Get(spec.Path, spec.Name, spec.Role, e.MayLag(l.show))}
	if spec.File != nil {
		route := page.Post
		if spec.File.ByLink {
			route = page.Get
		}
		routes = append(routes, route(spec.File.Path, spec.Name+".csv", spec.Role, e.MayLag(l.export)))
	}
	if spec.Live != nil {
		routes = append(routes,
			page.Get(spec.Live.Path, spec.Name+".live", spec.Role, e.MayLag(l.stream)))
	}
	if spec.Saved {
		if e.saved == nil {
			e.saved = map[string]bool{}
		}
		e.saved[spec.Path] = true
	}
	return routes
}

// lister serves one list.
type lister[R any] struct {
	*Engine
	Spec[R]
}

// show answers with one page of the list.
func (l lister[R]) show(ctx echo.Context) error {
	v := l.read(ctx, ctx.QueryParams())
	l.Read(v)
	// Redirect if a time got its zone here: without it the address means another time to others.
	zoned := v.asked.Get("since") != v.texts["since"] || v.asked.Get("until") != v.texts["until"]
	if l.Live != nil && !page.IsFragment(ctx) && len(v.Wrong) == 0 && zoned {
		query := maps.Clone(v.asked)
		maps.DeleteFunc(query, func(name string, _ []string) bool {
			return strings.TrimSpace(v.asked.Get(name)) == ""
		})
		for _, name := range []string{"since", "until"} {
			if query.Has(name) {
				query.Set(name, v.texts[name])
			}
		}
		return ctx.Redirect(http.StatusSeeOther, paths.With(l.Path, query))
	}
	status := http.StatusOK
	region, err := l.region(ctx.Request().Context(), v)
	switch {
	case err != nil && (l.Unavailable == "" || ctx.Request().Context().Err() != nil):
		return err
	case err != nil:
		slog.ErrorContext(ctx.Request().Context(), "loading a list", "list", l.Many, "error", err)
		region.Unavailable = &ui.EmptyProps{
			Icon: "cloud-off", Title: "The " + l.Many + " could not be loaded", Text: l.Unavailable,
			Href: ctx.Request().URL.RequestURI(), Action: "Try again",
		}
		status = http.StatusServiceUnavailable
	case len(v.Wrong) > 0:
		status = http.StatusBadRequest
	}
	if page.IsFragment(ctx) {
		return page.Render(ctx, status, ui.ListRows(region))
	}
	props, err := l.pageProps(ctx, v, region)
	if err != nil {
		return err
	}
	place := l.Place
	place.Live = region.Live != nil
	return l.Show(ctx, status, place, ui.List(props))
}

// pageProps adds to the rows the rest of the page: filters, tabs, buttons and views.
func (l lister[R]) pageProps(
	ctx echo.Context, v *Values, region ui.ListRegion,
) (props ui.ListProps, err error) {
	request := ctx.Request().Context()
	props = ui.ListProps{
		Path: l.Path, Intro: l.Intro, Buttons: l.Buttons, Search: l.Search,
		Tabs: v.tabs(l.Tabs), Region: region,
	}
	switch {
	case l.File == nil:
	case l.File.ByLink:
		props.Buttons = ui.ButtonsWith(
			ui.DownloadLink(paths.With(l.File.Path, v.Query())), l.Buttons)
	default:
		props.Buttons = ui.ButtonsWith(ui.ExportButton(l.File.Path, v.Query().Encode()), l.Buttons)
	}
	if region.Unavailable != nil {
		return props, nil // the options of the filters come from the database, too
	}
	if l.IntroOf != nil {
		if props.Intro, err = l.IntroOf(request); err != nil {
			return props, err
		}
	}
	if v.texts[l.Tabs.Name] != "" {
		props.Hidden = append(props.Hidden,
			ui.HiddenField{Name: l.Tabs.Name, Value: v.texts[l.Tabs.Name]})
	}
	if slices.ContainsFunc(l.Filters, func(f Filter) bool { return f.Kind == Time }) {
		props.Hidden = append(props.Hidden, page.ZoneField(v.Zone))
	}
	for _, filter := range l.Filters {
		if err := v.addFilter(request, filter, &props); err != nil {
			return props, err
		}
	}
	if l.Saved {
		props.Views, err = l.namedFilters(ctx, v)
	}
	return props, err
}

// region loads one page of rows.
func (l lister[R]) region(ctx context.Context, v *Values) (ui.ListRegion, error) {
	region := ui.ListRegion{Path: l.Path, Order: l.Order}
	region.Empty, region.EmptyBody = l.empty(v)
	source := l.Read(v)
	if len(v.Wrong) > 0 {
		region.Wrong = v.wrongFilters(l.Tabs, l.Filters)
		return region, nil
	}
	if l.Unavailable != "" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, loadTimeout)
		defer cancel()
	}
	count := l.startCount(ctx, source.Count)
	rows, next, err := source.Load(ctx, v.place, PageSize)
	if err != nil {
		return region, err
	}
	if source.Count != nil {
		all, err := count.with(len(rows), v.place == "" && next == "")
		if err != nil {
			return region, err
		}
		region.Summary = all.in(l.One, l.Many)
		if l.SummaryBelow {
			region.Summary, region.Order = "", region.Summary
			if l.Order != "" {
				region.Order += ", " + l.Order
			}
		}
	}
	region.Rows, region.Table = len(rows), ui.Table(l.Table(rows))
	if next != "" {
		region.Older = v.href("cursor", next)
	}
	if v.place != "" && v.mode == modeRead {
		region.Newest = v.href("", "")
	}
	if l.PickAction != "" {
		region.Pick = &ui.Pick{
			Action: l.PickAction, Filter: v.Query().Encode(), Buttons: l.PickButtons,
		}
	}
	if l.Live != nil {
		region.Live, err = l.live(ctx, v, source, rows)
	}
	return region, err
}

// empty returns what is shown instead of rows: that nothing matches the filter, or that
// there is nothing at all.
func (l lister[R]) empty(v *Values) (ui.EmptyProps, templ.Component) {
	narrowed := len(v.texts)
	if l.Tabs.Default != "" && v.texts[l.Tabs.Name] != "" {
		narrowed-- // such a tab is a separate list
	}
	if narrowed == 0 {
		return l.Empty, l.EmptyBody
	}
	none := l.NoMatch
	if none.Icon == "" {
		none.Icon = "search-x"
	}
	if none.Href == "" {
		none.Href, none.Action = l.Path, "Clear all filters"
	}
	return none, nil
}
