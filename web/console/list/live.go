package list

import (
	"context"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/ui"
	"drawbridge/web/console/page"
)

// maxNews is the highest count of new rows that wait to be shown.
const maxNews = 100

// Live is how a list is kept up to date.
type Live[R any] struct {
	// Path is where its rows are streamed.
	Path string
	// Place is a row's place in the list.
	Place func(R) postgres.Cursor
}

// mode is how a list takes what comes in.
type mode string

const (
	// modeRead shows the rows that the address names.
	modeRead mode = ""
	// modeNews counts what came in since, and moves nothing.
	modeNews mode = "news"
	// modeTail shows what comes in at once.
	modeTail mode = "tail"
)

func modeOf(query url.Values) mode {
	switch {
	case query.Get("tail") != "":
		return modeTail
	case query.Get("news") != "":
		return modeNews
	}
	return modeRead
}

// live sets the addresses that keep a page up to date. Except in the tail,
// they hold on to the rows that are shown: what is newer is counted, and moves
// nothing.
func (l lister[R]) live(
	ctx context.Context, v *Values, source Source[R], rows []R,
) (*ui.LiveList, error) {
	live, query := &ui.LiveList{}, v.Query()
	place, err := postgres.ParseCursor(v.place)
	if err != nil {
		return nil, err
	}
	if v.mode == modeNews {
		news, err := source.Newer(ctx, place, maxNews)
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
		place.UID = successor(place.UID)
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
	live.StreamURL, live.PollURL = withQuery(l.Live.Path, query), withQuery(l.Path, query)
	return live, nil
}

// successor returns the least identifier above uid, so that a list from there
// begins with uid itself.
func successor(uid uuid.UUID) uuid.UUID {
	for i := len(uid) - 1; i >= 0; i-- {
		uid[i]++
		if uid[i] != 0 {
			break
		}
	}
	return uid
}

// stream sends the rows as they change.
func (l lister[R]) stream(ctx echo.Context) error {
	v := l.read(ctx, ctx.QueryParams())
	if l.Read(v); len(v.Wrong) > 0 {
		return lending.NewError(lending.CodeValidation, "the filter of this page is not right")
	}
	return l.Stream(ctx, func(request context.Context) ([]byte, error) {
		v.Now = l.DB.Now() // a range that ends now moves on
		region, err := l.region(request, v)
		if err != nil {
			return nil, err
		}
		return page.HTML(request, ui.ListRows(region))
	})
}
