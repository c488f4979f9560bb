package api

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// defaultLimit is the page size of a list unless the request sets one.
const defaultLimit = 100

// query reads the parameters of a list and collects everything that is wrong with them, so
// that one answer names it all. Unknown parameters are ignored.
type query struct {
	values url.Values
	errs   lending.FieldErrors
}

// readQuery parses the query of a request; a malformed one has no values and that error.
func readQuery(c echo.Context) *query {
	values, err := parseQuery(c.Request().URL.RawQuery)
	read := &query{values: values}
	read.errs.Merge(err)
	return read
}

// parseQuery splits a query. Error: VALIDATION_ERROR naming the parameter that is malformed.
func parseQuery(raw string) (url.Values, error) {
	values := make(url.Values)
	for pair := range strings.SplitSeq(raw, "&") {
		one, err := url.ParseQuery(pair)
		if err != nil {
			name, _, _ := strings.Cut(pair, "=")
			return nil, lending.Invalid(name, "%q is malformed; percent-encode its value", name)
		}
		for name, given := range one {
			values[name] = append(values[name], given...)
		}
	}
	return values, nil
}

// one returns the value of a parameter that may be given once. It returns false if the
// parameter is absent or cannot be right.
func (q *query) one(name string) (string, bool) {
	given := q.values[name]
	switch {
	case len(given) == 0:
		return "", false
	case len(given) > 1:
		q.errs.Add(name, "%q must be given once", name)
		return "", false
	case strings.TrimSpace(given[0]) == "":
		q.errs.Add(name, "%q must not be empty; leave it out instead", name)
		return "", false
	}
	return given[0], true
}

// given reads a parameter with a parser of package lending, the zero value if it is absent.
func given[T any](q *query, name string, parse func(string) (T, error)) (value T) {
	text, ok := q.one(name)
	if !ok {
		return value
	}
	value, err := parse(text)
	q.errs.Merge(err)
	return value
}

// text reads a line of text, nil if it is absent.
func (q *query) text(name string, limit int) *string {
	given, ok := q.one(name)
	if !ok {
		return nil
	}
	given = q.errs.Text(name, given, limit)
	return &given
}

// number reads a whole number from least to most.
func (q *query) number(name string, least, most, fallback int) int {
	given, ok := q.one(name)
	if !ok {
		return fallback
	}
	number, err := strconv.Atoi(given)
	if err != nil || number < least || number > most {
		q.errs.Add(name, "%q must be a whole number from %d to %d", name, least, most)
		return fallback
	}
	return number
}

// limit reads how many entries a page may hold.
func (q *query) limit() int { return q.number("limit", 1, postgres.MaxPage, defaultLimit) }

// moment reads a time, the zero time if it is absent.
func (q *query) moment(name string) time.Time {
	given, ok := q.one(name)
	if !ok {
		return time.Time{}
	}
	return readTime(&q.errs, name, given, " (write + as %2B)")
}

// readTime parses a time; the hint ends the message about a malformed one.
func readTime(errs *lending.FieldErrors, name, text, hint string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		errs.Add(name, "%q must be a date and time with a zone, such as 2026-11-21T09:30:00Z%s",
			name, hint)
		return time.Time{}
	}
	at, ok := postgres.Storable(at)
	if !ok {
		errs.Add(name, "%q must be after 0001-01-01T00:00:00Z and before 10000-01-01T00:00:00Z",
			name)
	}
	return at
}

// page reads which page of a list is requested.
func (q *query) page(list string) postgres.Paging {
	return postgres.Paging{Limit: q.limit(), From: q.cursor(list)}
}

// cursor reads where the page of a list begins, as cursorOf wrote it for the same
// list.
func (q *query) cursor(list string) postgres.Cursor {
	given, ok := q.one("cursor")
	if !ok {
		return postgres.Cursor{}
	}
	place, ours := strings.CutPrefix(given, list+".")
	if ours && place != "" {
		cursor, err := postgres.ParseCursor(place)
		if err == nil {
			return cursor
		}
	}
	q.errs.Add("cursor", `"cursor" must be a next_cursor of this list; leave it out to start`+
		" from the beginning")
	return postgres.Cursor{}
}

// cursorOf returns the cursor of the next page of a list, nil on the last one. It contains
// the list's name, so that no other list accepts it.
func cursorOf(list string, next postgres.Cursor) *string {
	if next.IsZero() {
		return nil
	}
	return new(list + "." + next.String())
}
