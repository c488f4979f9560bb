package list

import (
	"context"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// maxNews is the highest count of new rows waiting to be shown.
const maxNews = 100

// Live describes how a list is kept up to date.
type Live[R any] struct {
	// Path is the path of the stream of its rows.
	Path string
	// Place returns a row's position in the list.
	Place func(R) postgres.Cursor
}

// mode says how a list treats new rows.
type mode string

const (
	// modeRead shows the rows at the position in the address.
	modeRead mode = ""
	// modeNews counts the new rows and keeps the shown rows in place.
	modeNews mode = "news"
	// modeTail shows new rows at once.
	modeTail mode = "tail"
)

// live sets the addresses from which a page is updated. Except in the tail, they are fixed
// to the rows that are shown: newer rows are counted and move nothing.
func (l lister[R]) live(
	ctx context.Context, v *Values, source Source[R], rows []R,
) (*ui.LiveList, error) {
	live, query := &ui.LiveList{}, v.Query()
	place, err := postgres.ParseCursor(v.place)
	if err != nil {
		return nil, err
	}
	if v.mode == modeNews {
		news, err := source.Newer(ctx, postgres.Paging{From: place, Limit: maxNews})
		if err != nil {
			return nil, err
		}
		live.NewsHref = v.href("", "")
		switch {
		case news >= maxNews:
			live.News = "99+ new " + l.Many
		case news > 0:
			live.News = ui.Plural(news, "new "+l.One, "new "+l.Many)
		}
	}
	first := place.IsZero() || v.mode == modeNews
	if first && place.IsZero() && len(rows) > 0 {
		place = l.Live.Place(rows[0])
		// Increment the identifier: a list from the next higher one starts with the row itself.
		for i := len(place.UID) - 1; i >= 0; i-- {
			if place.UID[i]++; place.UID[i] != 0 {
				break
			}
		}
	}
	switch {
	case v.mode == modeTail:
		query.Set("tail", "1")
	case !place.IsZero():
		query.Set("cursor", place.String())
		if first {
			query.Set("news", "1")
		}
	}
	live.StreamURL, live.PollURL = paths.With(l.Live.Path, query), paths.With(l.Path, query)
	return live, nil
}

// stream sends the rows as they change.
func (l lister[R]) stream(ctx echo.Context) error {
	v := l.read(ctx, ctx.QueryParams())
	if l.Read(v); len(v.Wrong) > 0 {
		return lending.NewError(lending.CodeValidation, "the filter of this page is invalid")
	}
	return l.Stream(ctx, func(request context.Context) ([]byte, error) {
		v.Now = l.DB.Now() // move a range that ends now
		region, err := l.region(request, v)
		if err != nil {
			return nil, err
		}
		return page.HTML(request, ui.ListRows(region))
	})
}
