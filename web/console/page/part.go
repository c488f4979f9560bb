package page

import (
	"fmt"
	"net/url"
	"slices"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// partSize is how many items one page of a part shows.
const partSize = 50

// Part selects the items, newest first, that a page shows: all of them if they are few, otherwise
// the block of fifty that contains the item whose key the named parameter gives, or the newest. The
// pager links to the other blocks at the same anchor and keeps the rest of the address.
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
