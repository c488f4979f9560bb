package docs

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/compress"
	"drawbridge/internal/statement"
	docsview "drawbridge/views/docs"
)

// Policy is the content security policy of the documentation: everything comes from this
// server, and nothing is inline.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

// Route is one address of the documentation, for the server's route table. All
// are GET, public and free of side effects.
type Route struct {
	// Path is absolute, in Echo's notation.
	Path string
	// Name is unique in the server, for example "docs.reference".
	Name    string
	Handler echo.HandlerFunc
}

// Routes lists every address.
func (s *Site) Routes() []Route {
	var routes []Route
	for _, page := range slices.Concat(pages, lenderPages) {
		name := strings.ReplaceAll(strings.TrimPrefix(page.Href, "/"), "/", ".")
		routes = append(routes, Route{page.Href, name, s.answer},
			Route{page.markdown(), name + ".markdown", s.answer})
	}
	return append(routes,
		Route{"/llms.txt", "docs.llms", s.answer},
		Route{Prefix + "/search", "docs.search", s.search},
		Route{Prefix + "/openapi.yaml", "docs.openapi.yaml", s.answer},
		Route{Prefix + "/openapi.json", "docs.openapi.json", s.answer},
		Route{lenderPrefix + "/openapi.yaml", "docs.lender.openapi.yaml", s.answer},
		Route{lenderPrefix + "/openapi.json", "docs.lender.openapi.json", s.answer},
		Route{Prefix + "/egress.json", "docs.egress", s.answer},
		Route{Prefix + "/keys.json", "docs.keys", s.answerKeys},
		Route{Prefix + "/collection.json", "docs.collection", s.answer},
		Route{Prefix + "/schemas/:name", "docs.schema", s.answer},
		Route{Prefix + "/samples/*", "docs.sample", s.answer},
		Route{Prefix + "/assets/:name", "docs.asset", s.answer},
		Route{Prefix + "/*", "docs.elsewhere", s.answer},
	)
}

// missing redirects an address with extra trailing slashes to its page. For any other
// unknown address, browsers get a page, and programs echo.ErrNotFound.
func (s *Site) missing(c echo.Context, lib *library) error {
	address := c.Request().URL.Path
	if plain := strings.TrimRight(address, "/"); plain != address {
		if _, ok := lib.files[strings.TrimPrefix(plain, Prefix)]; ok {
			return c.Redirect(http.StatusPermanentRedirect, plain)
		}
	}
	c.Response().Header().Add("Vary", "Accept")
	if !strings.Contains(c.Request().Header.Get("Accept"), "text/html") {
		return echo.ErrNotFound
	}
	menu := pages
	if strings.HasPrefix(address, lenderPrefix+"/") {
		menu = lenderPages
	}
	frame := lib.frame(pageSpec{
		Link: docsview.Link{Href: Prefix + "/*"}, title: "Page not found",
		lead: "The documentation has no page at this address.",
	}, menu)
	guarded(c, "text/html; charset=utf-8")
	c.Response().WriteHeader(http.StatusNotFound)
	return docsview.Guide(frame, "Choose a page from the menu, search, or start at the [overview]("+
		menu[0].Href+").").Render(c.Request().Context(), c.Response())
}

// answer writes the file of the request's path.
func (s *Site) answer(c echo.Context) error {
	lib, err := s.build()
	if err != nil {
		return err
	}
	found, ok := lib.files[strings.TrimPrefix(c.Request().URL.Path, Prefix)]
	if !ok {
		return s.missing(c, lib)
	}
	headers := guarded(c, found.contentType)
	headers.Set("Vary", "Accept-Encoding")
	if found.lasting {
		headers.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if found.download != "" {
		headers.Set("Content-Disposition", `attachment; filename="`+found.download+`"`)
	}
	body, etag := found.body, found.etag
	if compress.Accepted(c.Request()) {
		if zipped := found.zipped(); zipped != nil {
			// The gzip form is a different entity and needs its own tag.
			body, etag = zipped, found.etag+"-gzip"
			headers.Set("Content-Encoding", "gzip")
		}
	}
	headers.Set("ETag", `"`+etag+`"`)
	// ServeContent answers HEAD, ranges and If-None-Match.
	http.ServeContent(slim{c.Response()}, c.Request(), "", time.Time{}, bytes.NewReader(body))
	return nil
}

// answerKeys publishes the current keys that verify statements.
func (s *Site) answerKeys(c echo.Context) error {
	keys := []statement.Key{}
	if s.keys != nil {
		var err error
		if keys, err = s.keys(c.Request().Context()); err != nil {
			return err
		}
	}
	guarded(c, echo.MIMEApplicationJSON)
	return c.JSON(http.StatusOK, map[string][]statement.Key{"keys": keys})
}

// guarded sets the headers of every answer, and returns them.
func guarded(c echo.Context, contentType string) http.Header {
	headers := c.Response().Header()
	headers.Set("Content-Type", contentType)
	headers.Set("Content-Security-Policy", Policy)
	headers.Set("X-Content-Type-Options", "nosniff")
	headers.Set("Referrer-Policy", "same-origin")
	headers.Set("Cache-Control", "no-cache")
	return headers
}

// search answers with the passages about the words of q, from the partners' pages or the lender's.
func (s *Site) search(c echo.Context) error {
	lib, err := s.build()
	if err != nil {
		return err
	}
	query := strings.ToValidUTF8(c.QueryParam("q"), "")
	if len(query) > maxQuery {
		query = strings.ToValidUTF8(query[:maxQuery], "")
	}
	of := pages
	if c.QueryParam("of") == "lender" {
		of = lenderPages
	}
	frame := lib.frame(pageSpec{Link: docsview.Link{Href: Prefix + "/search"}, title: "Search"}, of)
	frame.Query = query
	guarded(c, "text/html; charset=utf-8")
	return docsview.Search(frame, lib.search(query, of)).Render(c.Request().Context(), c.Response())
}

// slim writes an answer without copying it, or through a small buffer: the buffers of
// thousands of clients that do not read would add up.
type slim struct{ *echo.Response }

// ReadFrom implements io.ReaderFrom for io.Copy.
func (s slim) ReadFrom(source io.Reader) (int64, error) {
	if part, ok := source.(*io.LimitedReader); ok {
		if whole, ok := part.R.(*bytes.Reader); ok && int64(whole.Len()) <= part.N {
			return whole.WriteTo(s.Response)
		}
	}
	// Hide the other methods, so that io.CopyBuffer uses the buffer.
	return io.CopyBuffer(struct{ io.Writer }{s.Response}, struct{ io.Reader }{source},
		make([]byte, 4<<10))
}
