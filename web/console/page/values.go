package page

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// localLayouts are the accepted layouts of a time without a zone, which is then in the
// reader's zone. The first is what browsers send.
var localLayouts = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", time.DateOnly, time.RFC3339}

// ReadTime reads a time of a form or an address, in the reader's zone unless it names
// another; the zero time if it is empty. Errors go into wrong under name.
func ReadTime(wrong map[string]string, name, text string, zone *time.Location) time.Time {
	if text == "" {
		return time.Time{}
	}
	for _, layout := range localLayouts {
		at, err := time.ParseInLocation(layout, text, zone)
		if err != nil {
			continue
		}
		if layout != time.RFC3339 {
			local := instants(layout, text, zone)
			switch {
			case len(local) == 0:
				wrong[name] = "The clocks of " + zone.String() + " skip this time; choose another."
				return time.Time{}
			case len(local) > 1 && layout != time.DateOnly:
				wrong[name] = "The clocks of " + zone.String() + " show this time twice; choose another, " +
					"or UTC as your time zone."
				return time.Time{}
			}
			at = local[0]
		}
		at, ok := postgres.Storable(at)
		if !ok {
			wrong[name] = "This must be after 0001-01-01T00:00 and before 10000-01-01T00:00 in UTC."
			return time.Time{}
		}
		return at
	}
	wrong[name] = "This is not a time; write it as 2026-11-21T09:30."
	return time.Time{}
}

// instants returns the instants at which a clock in the zone shows the text, or the start of
// its day: none if the clock is set forward over it, two if it is set back.
func instants(layout, text string, zone *time.Location) (found []time.Time) {
	shown, _ := time.Parse(layout, text)
	for _, beside := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := shown.Add(beside).In(zone).Zone()
		at := shown.Add(-time.Duration(offset) * time.Second).In(zone)
		if at.Format(layout) == shown.Format(layout) && !slices.ContainsFunc(found, at.Equal) {
			found = append(found, at)
		}
	}
	return found
}

// ReadUID reads an identifier, the nil UUID if it is empty. Errors go into wrong under name.
func ReadUID(wrong map[string]string, name, text string) uuid.UUID {
	if text == "" {
		return uuid.Nil
	}
	uid, err := uuid.Parse(text)
	if err != nil || len(text) != 36 || uid == uuid.Nil {
		wrong[name] = "This is not an id; ids look like 0199a6b2-7c1e-7d35-9a44-3f0c51b8e6d2."
		return uuid.Nil
	}
	return uid
}

// Ticked returns the identifiers of the rows that were ticked in a list, at most `most`. A
// refusal calls the rows many and one of them one. Error: VALIDATION_ERROR.
func Ticked(ctx echo.Context, field string, most int, many, one string) ([]uuid.UUID, error) {
	//nolint:forbidigo // a form that was received, not a client's call
	ticked := ctx.Request().PostForm[field]
	if len(ticked) > most {
		return nil, lending.Invalid(field, "Select at most %d %s in the list.", most, many)
	}
	uids := make([]uuid.UUID, 0, len(ticked))
	for _, text := range ticked {
		uid, err := uuid.Parse(text)
		if err != nil {
			return nil, lending.Invalid(field, "%.60q is not the id of %s", text, one)
		}
		uids = append(uids, uid)
	}
	return uids, nil
}
