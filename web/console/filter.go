package console

import (
	"maps"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/web/console/page"
)

// reader is whose address is read, and when: "today" depends on both.
type reader struct {
	now  time.Time
	zone *time.Location
}

func (c *Console) reader(ctx echo.Context) reader {
	zone, _ := c.Zone(ctx)
	return reader{now: c.DB.Now(), zone: zone}
}

// moment reads a time of the reader's zone. It comes back with its zone for the
// address, and without one for the form.
func (who reader) moment(
	faults map[string]string, name string, query url.Values,
) (at time.Time, text, local string) {
	text = query.Get(name)
	at = page.ReadTime(faults, name, text, who.zone)
	if at.IsZero() {
		return at, text, text
	}
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		text = at.In(who.zone).Format(time.RFC3339)
	}
	local = at.In(who.zone).Format("2006-01-02T15:04")
	if at.Second() != 0 {
		local = at.In(who.zone).Format("2006-01-02T15:04:05")
	}
	return at, text, local
}

func readUID(faults map[string]string, name, text string) uuid.UUID {
	return page.ReadUID(faults, name, text)
}

// with returns a copy of the query with one parameter changed, or without it
// when the value is empty.
func with(query url.Values, name, value string) url.Values {
	changed := maps.Clone(query)
	changed.Del(name)
	if value != "" {
		changed.Set(name, value)
	}
	return changed
}
