package page

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/a-h/templ"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"drawbridge/internal/compress"
	"drawbridge/views/ui"
)

// Place is a page's place in the navigation.
type Place struct {
	Section ui.Section
	// Title is the page's heading.
	Title string
	// Above are the breadcrumbs above the page, from the list down; Here is the page's own
	// breadcrumb, Title if empty.
	Above []ui.Crumb
	Here  string
	// Live means that the page updates itself.
	Live bool
	// Query fills the search box.
	Query string
}

// Under returns a place in the same section below this one, whose page is at href.
func (p Place) Under(href, title string) Place {
	step := ui.Crumb{Label: p.here(), Href: href}
	return Place{Section: p.Section, Title: title, Above: append(slices.Clone(p.Above), step)}
}

func (p Place) here() string {
	if p.Here != "" {
		return p.Here
	}
	return p.Title
}

// Show answers with a page in its frame, including the notice of the last change.
func (s *Site) Show(ctx echo.Context, status int, place Place, body templ.Component) error {
	frame, err := s.frameOf(ctx, place)
	if err != nil {
		return err
	}
	if text := s.Sessions.PopString(ctx.Request().Context(), sessionNotice); text != "" {
		frame.Notice = &ui.Notice{Tone: ui.Good, Title: text}
	}
	return Render(ctx, status, ui.Framed(frame, body))
}

// frameOf returns the frame of a page for the signed-in user.
func (s *Site) frameOf(ctx echo.Context, place Place) (ui.Frame, error) {
	failing, alerts, err := s.Badges(ctx.Request().Context())
	if err != nil {
		return ui.Frame{}, err
	}
	frame := s.plainFrame(ctx, place)
	frame.Failing, frame.Alerts = failing, alerts
	return frame, nil
}

// plainFrame returns a frame without the counts, which need the database.
func (s *Site) plainFrame(ctx echo.Context, place Place) ui.Frame {
	_, zone := s.Zone(ctx)
	return ui.Frame{
		Zone: zone, Title: place.Title, Section: place.Section,
		Crumbs: append(slices.Clone(place.Above), ui.Crumb{Label: place.here()}),
		User:   User(ctx),

		Environment: s.Environment, Version: s.Version, Development: s.Development,
		Theme: s.Preference(ctx, "theme"), Density: s.Preference(ctx, "density"),
		Path: ctx.Request().URL.RequestURI(), Live: place.Live, Query: place.Query,
	}
}

// zipFrom is the size from which a page is worth compressing, in bytes.
const zipFrom = 4 << 10

// Render writes a whole page or a fragment. The component is rendered completely before
// anything is sent, so that an error, including that of a cancelled context, can still be
// answered.
//
// The HTML is compressed if the browser accepts that. Answers to forms are never compressed:
// they may show a new secret, about which the compressed length could reveal something.
func Render(ctx echo.Context, status int, component templ.Component) error {
	request, header := ctx.Request(), ctx.Response().Header()
	html, err := HTML(context.WithoutCancel(request.Context()), component)
	if err != nil {
		return err
	}
	html = minify(withTokens(ctx, html))
	header.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if request.Method == http.MethodGet && len(html) >= zipFrom && compress.Accepted(request) {
		if zipped := compress.Gzip(html); zipped != nil {
			header.Set(echo.HeaderContentEncoding, "gzip")
			html = zipped
		}
	}
	return ctx.HTMLBlob(status, html)
}

// HTML renders a component.
func HTML(ctx context.Context, component templ.Component) ([]byte, error) {
	var html bytes.Buffer
	if err := component.Render(ctx, &html); err != nil {
		return nil, fmt.Errorf("rendering a page: %w", err)
	}
	return html.Bytes(), nil
}

// TokenField is the hidden field that identifies a rendered form, so that a form that is
// sent twice acts once.
const TokenField = "token"

// userField is the hidden field with the UID of the user for whom a form was made.
const userField = "form_user"

// postForm matches the start tag of a POST form as templates write it: quoted attribute
// values contain no angle bracket.
var postForm = regexp.MustCompile(`<form\b[^>]*\smethod="post"[^>]*>`)

// withTokens adds to every form of a page a new token and the user it was made for. This is
// done when the page is sent, so that no form lacks them, and so that an unchanged live
// region still renders the same bytes.
//
// A form that is sent again keeps its own.
func withTokens(ctx echo.Context, html []byte) []byte {
	user := ""
	if signed := User(ctx); signed.UID != uuid.Nil {
		user = `<input type="hidden" name="` + userField + `" value="` + signed.UID.String() + `"/>`
	}
	return postForm.ReplaceAllFunc(html, func(start []byte) []byte {
		if bytes.Contains(start, []byte(" data-again")) {
			return start
		}
		return append(slices.Clip(start),
			`<input type="hidden" name="`+TokenField+`" value="`+uuid.NewString()+`"/>`+user...)
	})
}
