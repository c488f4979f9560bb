package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/views/paths"
)

// policy lets a page load from its own origin only, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// maxForm bounds the body of a form, in bytes: fifty headers of the greatest
// length fit, percent-encoded.
const maxForm = 768 << 10

// userKey is where the guard leaves the signed-in user for the handler.
const userKey = "console.user"

// guard stands before every handler: strict headers, the session, the origin of
// a change, and the role that the route needs.
func (c *Console) guard(needed operator.Role, handler echo.HandlerFunc) echo.HandlerFunc {
	guarded := c.withSession(func(ctx echo.Context) error {
		if err := c.origins.Check(ctx.Request()); err != nil {
			return lending.NewError(lending.CodeForbidden,
				"This came from another site. Open the console and try again.").WithCause(err)
		}
		if err := readForm(ctx.Request()); err != nil {
			return err
		}
		signed, signedIn, err := c.resume(ctx)
		if err != nil {
			return err
		}
		user := signed.User
		ctx.Set(userKey, user)
		c.withZone(ctx)
		ctx.Set(sessionKey, signed.Session)
		switch {
		case needed == "":
			return handler(ctx)
		case !signedIn:
			return askToSignIn(ctx)
		case !user.Role.Allows(needed):
			return lending.NewError(lending.CodeForbidden,
				"Your role, %s, may not do this. Ask somebody with the role %s.", user.Role, needed)
		}
		if path := owed(signed); path != "" && !beforeOpening[ctx.Path()] {
			return askForOwed(ctx, path)
		}
		return c.once(ctx, handler)
	})
	return func(ctx echo.Context) error {
		c.strictHeaders(ctx.Response().Header())
		request := ctx.Request()
		request.Body = http.MaxBytesReader(ctx.Response(), request.Body, maxForm)
		return guarded(ctx)
	}
}

// mayRepeat are the parameters of an address that stand for several values; the
// queue library's own console has others.
var mayRepeat = map[string]bool{"show": true}

// checkQuery refuses an address that says one thing twice, or what is no text.
func checkQuery(address *url.URL) error {
	query := address.Query()
	if err := checkValues(query); err != nil {
		return err
	}
	var faults lending.Faults
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) > 1 && !mayRepeat[name] &&
			!strings.HasPrefix(address.Path, paths.JobConsole+"/") {
			faults.Add(name, "%.60q must be given once", name)
		}
	}
	return faults.Err()
}

// readForm reads the form of a change, so that one that cannot be read changes
// nothing.
func readForm(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return checkQuery(r.URL)
	}
	err := r.ParseForm()
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return lending.NewError(lending.CodePayloadTooLarge,
			"The form is too large: at most %d KiB are taken.", tooLarge.Limit>>10)
	}
	if err != nil {
		return lending.NewError(lending.CodeValidation, "The form cannot be read.").WithCause(err)
	}
	return checkValues(r.Form)
}

// checkValues refuses what is no text, also in the filter of a list that stands in
// a value of its own.
func checkValues(values url.Values) error {
	err := lending.CheckValues(values)
	for _, name := range []string{"filter", "in"} {
		inner, wrong := url.ParseQuery(strings.TrimPrefix(values.Get(name), "?"))
		if err == nil && wrong == nil { // who reads the filter tells what is wrong with it
			err = lending.CheckValues(inner)
		}
	}
	return err
}

func (c *Console) strictHeaders(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
	// Pages hold borrowers' and partners' data: no cache on the way keeps them,
	// nor does the browser after signing out.
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "HX-Request")
	if c.secure {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// askToSignIn leads a person to the sign-in and back. A script gets a plain 401:
// it must not put the sign-in page into a part of another page.
func askToSignIn(ctx echo.Context) error {
	request := ctx.Request()
	if isFragment(request) || isStream(request) {
		return lending.NewError(lending.CodeUnauthorized,
			"You are signed out. Reload the page to sign in again.")
	}
	query := url.Values{"why": {"expired"}}
	if request.Method == http.MethodGet {
		query = url.Values{"next": {request.URL.RequestURI()}}
	}
	return ctx.Redirect(http.StatusSeeOther, paths.SignIn+"?"+query.Encode())
}

// currentUser is who is signed in; the zero user on pages for guests.
func currentUser(ctx echo.Context) operator.User {
	user, _ := ctx.Get(userKey).(operator.User)
	return user
}

// signedIn is who is signed in and by which session.
func signedIn(ctx echo.Context) operator.Signed {
	return operator.Signed{User: currentUser(ctx), Session: currentSession(ctx)}
}

// isFragment tells whether htmx asks for a part of a page.
func isFragment(r *http.Request) bool {
	return r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-Boosted") == ""
}
