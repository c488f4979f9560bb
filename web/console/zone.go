package console

import (
	"net/http"
	"strings"
	"time"
	_ "time/tzdata" // the machine may have no zones of its own

	"github.com/labstack/echo/v4"

	"drawbridge/views/ui"
)

const (
	// zonePreference names the cookie and the form field of the zone.
	zonePreference = "zone"
	// autoZone begins a zone that the browser told, as opposed to a chosen one.
	autoZone = "auto:"
	// maxZone bounds the name of a zone; the longest has 32 characters.
	maxZone = 64
)

// zone returns the reader's time zone and how it came to be. Until the browser
// has told its own, it is UTC.
func (c *Console) zone(ctx echo.Context) (*time.Location, ui.Zone) {
	cookie, err := ctx.Cookie(c.cookieName(zonePreference))
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

// loadZone finds a zone of the IANA database. "Local", which would be the
// server's, is none.
func loadZone(name string) (*time.Location, bool) {
	if name == "" || name == "Local" || len(name) > maxZone {
		return nil, false
	}
	location, err := time.LoadLocation(name)
	return location, err == nil
}

// withZone lets the pages of a request show times in the reader's zone.
func (c *Console) withZone(ctx echo.Context) {
	location, _ := c.zone(ctx)
	request := ctx.Request()
	ctx.SetRequest(request.WithContext(ui.WithZone(request.Context(), location)))
}

// preferZone keeps the zone that the form names; one that does not exist
// changes nothing.
func (c *Console) preferZone(ctx echo.Context) {
	value := ctx.FormValue(zonePreference)
	if _, ok := loadZone(strings.TrimPrefix(value, autoZone)); !ok {
		return
	}
	ctx.SetCookie(c.preferenceCookie(zonePreference, value))
}

// preferenceCookie keeps a preference in the browser.
func (c *Console) preferenceCookie(name, value string) *http.Cookie {
	//nolint:gosec // Secure wherever TLS is: over plain http browsers would drop the cookie
	return &http.Cookie{
		Name: c.cookieName(name), Value: value, Path: "/", Secure: c.secure,
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(preferenceLife.Seconds()),
	}
}
