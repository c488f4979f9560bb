package page

import (
	"fmt"
	"net/url"
	"slices"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// partSize is how many items stand in a part of a page at once.
const partSize = 50

// Part picks those of a part's items, newest first, that the page at an address shows: all if
// they are few, else the fifty with the one whose key a parameter of that name gives, or the
// newest. The pager leads to the others, at the same anchor, with all else of the address.
func Part[T any](
	at *url.URL, name, anchor string, all []T, key func(T) string,
) ([]T, ui.PagerProps) {
	query := at.Query()
	index := slices.IndexFunc(all, func(item T) bool { return key(item) == query.Get(name) })
	from := max(index, 0) / partSize * partSize
	to := min(from+partSize, len(all))
	var pager ui.PagerProps
	if len(all) > partSize {
		pager.Summary = fmt.Sprintf("%s to %s of %s from the newest", ui.Number(from+1), ui.Number(to),
			ui.Number(len(all)))
	}
	if to < len(all) {
		query.Set(name, key(all[to]))
		pager.Older = paths.With(at.Path, query) + "#" + anchor
	}
	if from > 0 {
		query.Del(name)
		pager.Newest = paths.With(at.Path, query) + "#" + anchor
	}
	return all[from:to], pager
}
