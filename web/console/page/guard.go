package page

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// Policy lets a page load only from its own origin, and nothing inline.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// maxForm bounds the body of a form, in bytes. Fifty headers of maximum length fit,
// percent-encoded.
const maxForm = 768 << 10

// A form of a user who is not signed in is kept in memory up to smallForm. Larger ones,
// such as those of users whose session has expired, are limited to guestForms at a time.
const (
	smallForm  = 16 << 10
	guestForms = 16
)

var errGuestForms = errors.New("too many large forms of guests at once")

// formBody is the body of a form.
type formBody struct {
	io.ReadCloser

	slots chan struct{}
	// known means that the sender is signed in, taken that the body occupies one of slots.
	known, taken bool
	read         int
}

// Read reads the form and fails if it is large and no slot is free.
func (b *formBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	if b.read += n; b.read > smallForm && !b.known && !b.taken {
		select {
		case b.slots <- struct{}{}:
			b.taken = true
		default:
			return 0, errGuestForms
		}
	}
	return n, err
}

// release frees the slot.
func (b *formBody) release() {
	if b.taken {
		<-b.slots
	}
}

// The context keys under which the guard stores the signed-in user and the session.
const (
	userKey    = "console.user"
	sessionKey = "console.session"
)

// Guard wraps every handler. It sets strict headers and checks the session, the origin of a
// change, the role that the route needs, and whether the user has to complete a step first.
func (s *Site) Guard(needed operator.Role, handler echo.HandlerFunc) echo.HandlerFunc {
	guarded := s.withSession(func(ctx echo.Context) error {
		if err := s.origins.Check(ctx.Request()); err != nil {
			return lending.NewError(lending.CodeForbidden,
				"This request came from another site. Open the console and try again.").WithCause(err)
		}
		if body, ok := ctx.Request().Body.(*formBody); ok {
			body.known = s.Sessions.Exists(ctx.Request().Context(), SessionID)
		}
		if err := readForm(ctx); err != nil {
			return err
		}
		signed, known, err := s.resume(ctx)
		if err != nil {
			return err
		}
		ctx.Set(userKey, signed.User)
		ctx.Set(sessionKey, signed.Session)
		zone, _ := s.Zone(ctx)
		request := ui.WithCurrency(ui.WithZone(ctx.Request().Context(), zone), s.Currency)
		ctx.SetRequest(ctx.Request().WithContext(ui.WithMay(request,
			func(path string) bool { return s.may(signed.Role, path) })))
		if needed == "" {
			return handler(ctx)
		}
		if !known {
			return askToSignIn(ctx)
		}
		return admit(ctx, needed, s.inTurn(handler))
	})
	return func(ctx echo.Context) error {
		s.strictHeaders(ctx.Response().Header())
		// If there is a replica, the answer to a form sets the cookie for as long as the replica
		// may lag behind.
		if most := s.DB.MostLag(); most > 0 && IsSent(ctx) {
			ctx.Response().Before(func() {
				ctx.SetCookie(s.Cookie(changedCookie, "1", most+time.Second))
			})
		}
		request := ctx.Request()
		body := &formBody{
			ReadCloser: http.MaxBytesReader(ctx.Response(), request.Body, maxForm), slots: s.guestForms,
		}
		defer body.release()
		request.Body = body
		return guarded(ctx)
	}
}

// admit runs the handler if the user's role may and the user has no step to complete first.
func admit(ctx echo.Context, needed operator.Role, handler echo.HandlerFunc) error {
	signed := SignedIn(ctx)
	of := ctx.FormValue(userField)
	switch {
	case of != "" && of != signed.User.UID.String() && ctx.Path() != paths.SignOut:
		return lending.NewError(lending.CodeInvalidState, "This page was made for another user, "+
			"who was signed in here before you. Nothing was done. Open it again as %s.", signed.Email)
	case !signed.Role.Allows(needed):
		return lending.NewError(lending.CodeForbidden,
			"Your role, %s, may not do this. Ask somebody with the role %s.", signed.Role, needed)
	}
	step := RequiredStep(signed)
	switch {
	case step == "" || allowedBefore[ctx.Path()]:
		return handler(ctx)
	case IsFragment(ctx) || isStream(ctx.Request()):
		return lending.NewError(lending.CodeForbidden,
			"You have to complete a step before you can use the console. Reload the page.")
	}
	return ctx.Redirect(http.StatusSeeOther, step)
}

// User returns the signed-in user, the zero value on pages for guests.
func User(ctx echo.Context) operator.User {
	user, _ := ctx.Get(userKey).(operator.User)
	return user
}

// Session returns the session of the signed-in user.
func Session(ctx echo.Context) operator.Session {
	session, _ := ctx.Get(sessionKey).(operator.Session)
	return session
}

// SignedIn returns the signed-in user and the session.
func SignedIn(ctx echo.Context) operator.Signed {
	return operator.Signed{User: User(ctx), Session: Session(ctx)}
}

// mayRepeat reports whether a query parameter may have several values: the kinds shown in a
// timeline, and ticked boxes where several are possible. River's own console has others.
func mayRepeat(ctx echo.Context, name string) bool {
	switch ctx.Path() {
	case paths.Pick:
		return name == ctx.QueryParam("field")
	case paths.ClientNew:
		return name == "merchant"
	}
	return name == "show" || strings.HasPrefix(ctx.Request().URL.Path, paths.JobConsole+"/")
}

// readForm parses the form of a change, so that a malformed form changes nothing, and
// refuses an address that gives a parameter twice.
func readForm(ctx echo.Context) error {
	r := ctx.Request()
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		query := r.URL.Query()
		if err := checkValues(query); err != nil {
			return err
		}
		var errs lending.FieldErrors
		for _, name := range slices.Sorted(maps.Keys(query)) {
			if len(query[name]) > 1 && !mayRepeat(ctx, name) {
				errs.Add(name, "%.60q must be given once", name)
			}
		}
		return errs.Err()
	}
	err := r.ParseForm()
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return lending.NewError(lending.CodePayloadTooLarge,
			"The form is too large: at most %d KiB are accepted.", tooLarge.Limit>>10)
	}
	if errors.Is(err, errGuestForms) {
		return lending.NewError(lending.CodePayloadTooLarge,
			"You are signed out, and too many large forms are being sent. Sign in on another tab, then "+
				"go back and send the form again.").WithCause(err)
	}
	if err != nil {
		return lending.NewError(lending.CodeValidation, "The form cannot be read.").WithCause(err)
	}
	return checkValues(r.Form)
}

// checkValues refuses values that are not valid text, also inside the filter of a list,
// which is a query string in one value.
func checkValues(values url.Values) error {
	err := lending.CheckValues(values)
	for _, name := range []string{"filter", "in"} {
		inner, wrong := url.ParseQuery(strings.TrimPrefix(values.Get(name), "?"))
		if err == nil && wrong == nil { // a malformed filter is reported by its reader
			err = lending.CheckValues(inner)
		}
	}
	return err
}

// AllowFrames lets a page embed frames of this origin, which no other page may.
func AllowFrames(ctx echo.Context) {
	ctx.Response().Header().Set("Content-Security-Policy", Policy+"; frame-src 'self'")
}

func (s *Site) strictHeaders(header http.Header) {
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
	// Pages hold borrowers' and partners' data: no shared cache may keep them, nor may the
	// browser after signing out.
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "HX-Request")
	if s.Secure {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// askToSignIn redirects to the sign-in and back afterwards. A script gets a plain 401,
// because it must not put the sign-in page into a part of another page.
func askToSignIn(ctx echo.Context) error {
	request := ctx.Request()
	if IsFragment(ctx) || isStream(request) {
		return lending.NewError(lending.CodeUnauthorized,
			"You are signed out. Sign in again; use another tab if you typed something here.")
	}
	if resubmission(ctx, true) != nil {
		return lending.NewError(lending.CodeUnauthorized,
			"Nothing was saved. Sign in on another tab, then send the form again from here.")
	}
	query := url.Values{"why": {"expired"}}
	if request.Method == http.MethodGet {
		query = url.Values{"next": {request.URL.RequestURI()}}
	}
	return ctx.Redirect(http.StatusSeeOther, paths.SignIn+"?"+query.Encode())
}

// allowedBefore are the pages open to a user who has yet to choose a password or to set up
// a second factor.
var allowedBefore = map[string]bool{
	paths.SignOut: true, paths.Preferences: true, paths.Password: true,
	paths.SecondFactor: true, paths.SecondFactorQR: true, paths.SecondBegin: true,
	paths.Confirm: true,
}

// RequiredStep returns the page of the step that a user has to complete before using the console,
// empty if there is none. Users of the OpenID provider need no step: it is responsible for them.
func RequiredStep(signed operator.Signed) string {
	switch {
	case signed.Method == operator.MethodProvider:
		return ""
	case signed.MustChangePassword:
		return paths.Password
	case signed.LacksSecondFactor():
		return paths.SecondFactor
	}
	return ""
}

// Reauthenticated runs a handler only if the user has re-authenticated recently; otherwise
// it asks for that and nothing is changed.
//
// Forms with typed input are marked data-proof: for them a script asks Here first.
func (s *Site) Reauthenticated(handler echo.HandlerFunc) echo.HandlerFunc {
	return func(ctx echo.Context) error {
		if s.hasProof(ctx) {
			return handler(ctx)
		}
		next := url.Values{"next": {CameFrom(ctx)}}
		return ctx.Redirect(http.StatusSeeOther, paths.Confirm+"?"+next.Encode())
	}
}

func (s *Site) hasProof(ctx echo.Context) bool {
	return s.DB.Now().Sub(Session(ctx).ProvedAt) < operator.ProofLife
}

// Here tells a script that the console is reachable and the user signed in, which the guard
// has checked. With proof=needed it answers 403 unless the user re-authenticated recently.
func (s *Site) Here(ctx echo.Context) error {
	if ctx.QueryParam("proof") == "needed" && !s.hasProof(ctx) {
		return ctx.NoContent(http.StatusForbidden)
	}
	return ctx.NoContent(http.StatusNoContent)
}
