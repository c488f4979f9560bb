package page

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the machine may have no zones of its own

	"github.com/labstack/echo/v4"

	"drawbridge/views/ui"
)

const (
	// preferenceLife is how long a browser keeps a preference.
	preferenceLife = 365 * 24 * time.Hour
	// zonePreference names the cookie of the zone, and the field of a form: of the one that sets
	// it, and of one that says in which zone its times are.
	zonePreference = "zone"
	// autoZone begins a zone that the browser told, as opposed to a chosen one.
	autoZone = "auto:"
	// maxZone bounds the name of a zone; the longest has 32 characters.
	maxZone = 64
)

// preferences are the choices of each preference; the first is the default and
// is kept as no cookie at all.
var preferences = map[string][]string{
	"theme":   {"system", "light", "dark"},
	"density": {"comfortable", "compact"},
}

// Preference returns a chosen value, empty for the default.
func (s *Site) Preference(ctx echo.Context, name string) string {
	cookie, err := ctx.Cookie(s.CookieName(name))
	if err != nil || !slices.Contains(preferences[name][1:], cookie.Value) {
		return ""
	}
	return cookie.Value
}

// Prefer is the handler that keeps the preferences that its form names and returns
// to the form's page. Values that do not exist change nothing.
func (s *Site) Prefer(ctx echo.Context) error {
	for name, choices := range preferences {
		value := ctx.FormValue(name)
		if !slices.Contains(choices, value) {
			continue
		}
		cookie := s.Cookie(name, value, preferenceLife) //nolint:gosec // it sets every attribute
		if value == choices[0] {
			cookie.Value, cookie.MaxAge = "", -1
		}
		ctx.SetCookie(cookie)
	}
	zone := ctx.FormValue(zonePreference)
	if _, ok := loadZone(strings.TrimPrefix(zone, autoZone)); ok {
		ctx.SetCookie(s.Cookie(zonePreference, zone, preferenceLife))
	}
	return ctx.Redirect(http.StatusSeeOther, SafeNext(ctx.FormValue("back")))
}

// Zone returns the reader's time zone and how it came to be. Until the browser
// has told its own, it is UTC.
func (s *Site) Zone(ctx echo.Context) (*time.Location, ui.Zone) {
	cookie, err := ctx.Cookie(s.CookieName(zonePreference))
	if err != nil {
		return time.UTC, ui.Zone{Auto: true}
	}
	name, auto := strings.CutPrefix(cookie.Value, autoZone)
	location, ok := loadZone(name)
	if !ok {
		return time.UTC, ui.Zone{Auto: true}
	}
	return location, ui.Zone{Name: name, Auto: auto}
}

// ZoneField is the hidden field by which a form says in which zone its times are.
func ZoneField(zone *time.Location) ui.HiddenField {
	return ui.HiddenField{Name: zonePreference, Value: zone.String()}
}

// FormZone is the zone that a form said its times are in when it was shown, since when the reader
// may have chosen another; the reader's for one that says nothing.
func FormZone(ctx echo.Context) *time.Location {
	if zone, ok := loadZone(ctx.FormValue(zonePreference)); ok {
		return zone
	}
	return ui.ZoneOf(ctx.Request().Context())
}

// noZone are the files beside the zones of the IANA database that Go loads and browsers do not
// know, and "Local", which would be the server's.
var noZone = regexp.MustCompile(`^(Factory|Local|localtime|posixrules|(posix|right)/.*)?$`)

// loadZone finds a zone of the IANA database.
func loadZone(name string) (*time.Location, bool) {
	if noZone.MatchString(name) || len(name) > maxZone {
		return nil, false
	}
	location, err := time.LoadLocation(name)
	return location, err == nil
}
