package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
)

// preferenceLife is how long a browser keeps a preference.
const preferenceLife = 365 * 24 * time.Hour

// preferences are the choices of each preference; the first is the default and
// is kept as no cookie at all.
var preferences = map[string][]string{
	"theme":   {"system", "light", "dark"},
	"density": {"comfortable", "compact"},
}

// preference returns a chosen value, empty for the default.
func (c *Console) preference(ctx echo.Context, name string) string {
	cookie, err := ctx.Cookie(c.cookieName(name))
	if err != nil || !slices.Contains(preferences[name][1:], cookie.Value) {
		return ""
	}
	return cookie.Value
}

// prefer keeps the preferences that the form names and returns to its page.
// Values that do not exist change nothing.
func (c *Console) prefer(ctx echo.Context) error {
	for name, choices := range preferences {
		value := ctx.FormValue(name)
		if !slices.Contains(choices, value) {
			continue
		}
		cookie := c.preferenceCookie(name, value) //nolint:gosec // it sets every attribute
		if value == choices[0] {
			cookie.Value, cookie.MaxAge = "", -1
		}
		ctx.SetCookie(cookie)
	}
	c.preferZone(ctx)
	return ctx.Redirect(http.StatusSeeOther, safeNext(ctx.FormValue("back")))
}
