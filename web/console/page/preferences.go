package page

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the machine may have no zone files

	"github.com/labstack/echo/v4"

	"drawbridge/views/ui"
)

const (
	// preferenceLife is how long a browser keeps a preference.
	preferenceLife = 365 * 24 * time.Hour
	// zonePreference is the name of the zone's cookie and of two form fields: the one that
	// sets the zone, and the one that says in which zone a form's times are.
	zonePreference = "zone"
	// autoZone is the prefix of a zone that the browser reported rather than the user chose.
	autoZone = "auto:"
	// maxZone bounds the name of a zone; the longest has 32 characters.
	maxZone = 64
)

// preferences are the choices of each preference. The first is the default and is stored as
// no cookie.
var preferences = map[string][]string{
	"theme":   {"system", "light", "dark"},
	"density": {"comfortable", "compact"},
}

// Preference returns the chosen value, empty for the default.
func (s *Site) Preference(ctx echo.Context, name string) string {
	cookie, err := ctx.Cookie(s.CookieName(name))
	if err != nil || !slices.Contains(preferences[name][1:], cookie.Value) {
		return ""
	}
	return cookie.Value
}

// SavePreferences is the handler that stores the preferences that its form names and returns to the
// form's page. Unknown values are ignored.
func (s *Site) SavePreferences(ctx echo.Context) error {
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

// Zone returns the reader's time zone and how it was determined. It is UTC until the
// browser has reported its own.
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

// ZoneField is the hidden field that says in which zone a form's times are.
func ZoneField(zone *time.Location) ui.HiddenField {
	return ui.HiddenField{Name: zonePreference, Value: zone.String()}
}

// FormZone returns the zone of a form's times, which the form recorded when it was shown:
// the reader may have chosen another since. Without such a field it is the reader's zone.
func FormZone(ctx echo.Context) *time.Location {
	if zone, ok := loadZone(ctx.FormValue(zonePreference)); ok {
		return zone
	}
	return ui.ZoneOf(ctx.Request().Context())
}

// noZone matches the names that Go can load but that are no zones of the IANA database,
// which browsers do not accept, and "Local", which would be the server's zone.
var noZone = regexp.MustCompile(`^(Factory|Local|localtime|posixrules|(posix|right)/.*)?$`)

// loadZone loads a zone of the IANA database.
func loadZone(name string) (*time.Location, bool) {
	if noZone.MatchString(name) || len(name) > maxZone {
		return nil, false
	}
	location, err := time.LoadLocation(name)
	return location, err == nil
}
