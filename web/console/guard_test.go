package console_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
	"drawbridge/web/console"
)

// parameter matches a part of a route's path that a request must fill in.
var parameter = regexp.MustCompile(`:[a-z]+|\*$`)

// fill replaces the parameters of a route's path by ids.
func fill(path string) string { return parameter.ReplaceAllString(path, uuid.NewString()) }

// TestLargeFormsOfGuestsAreBounded starts large forms without ending them, which anybody
// can do without signing in. Small forms, and forms of signed-in users, must still succeed.
func TestLargeFormsOfGuestsAreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, path := r.asOperator(), paths.PartnerNew
	large := url.Values{"name": {"Sunvolt"}, "more": {strings.Repeat("a", 30<<10)}}
	var slow []net.Conn
	start := func() {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
		r.must(err)
		slow = append(slow, conn)
		_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nhost: x\r\n"+
			"content-type: application/x-www-form-urlencoded\r\ncontent-length: 500000\r\n\r\n"+
			large.Encode())
		r.must(err)
	}
	for range 16 {
		start()
	}
	waittest.Until(t, "a large form of a guest is refused", func() bool {
		if r.stranger().post(path, large).Status == http.StatusRequestEntityTooLarge {
			return true
		}
		start() // one of the others was refused while this form was read
		return false
	})
	r.stranger().post(path, url.Values{"name": {"Sunvolt"}}).wantStatus(t, http.StatusUnauthorized)
	b.post(path, large).wantStatus(t, http.StatusSeeOther)
	for _, conn := range slow {
		r.must(conn.Close())
	}
	waittest.Until(t, "a large form of a guest is read", func() bool {
		return r.stranger().post(path, large).Status == http.StatusUnauthorized
	})
}

func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	seen := map[string]bool{}
	for _, route := range r.Console.Routes() {
		if seen[route.Name] || route.Name == "" {
			t.Errorf("%s %s has no name of its own: %q", route.Method, route.Path, route.Name)
		}
		seen[route.Name] = true
		if !strings.HasPrefix(route.Path, console.Prefix) {
			t.Errorf("%s lies outside %s", route.Path, console.Prefix)
		}
		if route.Role == "" {
			if !strings.HasPrefix(route.Path, paths.SignIn) {
				t.Errorf("%s %s is open to guests", route.Method, route.Path)
			}
			continue
		}
		if !operator.RoleAdmin.Allows(route.Role) {
			t.Errorf("%s %s needs the role %q, which nobody has", route.Method, route.Path, route.Role)
		}
		b := r.stranger()
		answer := b.send(route.Method, fill(route.Path), nil)
		switch {
		case strings.HasSuffix(route.Path, "/live"):
			if answer.Status != http.StatusUnauthorized {
				t.Errorf("%s answers a stranger %d, want 401", route.Path, answer.Status)
			}
		case answer.Status != http.StatusSeeOther ||
			!strings.HasPrefix(answer.Location, paths.SignIn):
			t.Errorf("%s %s answers a stranger %d to %q", route.Method, route.Path, answer.Status,
				answer.Location)
		}
		got := b.fragment().send(route.Method, fill(route.Path), nil).Status
		if got != http.StatusUnauthorized {
			t.Errorf("%s %s answers a stranger's script %d, want 401", route.Method, route.Path, got)
		}
	}
}

func TestEveryChangeChecksItsOrigin(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin() // who lacks no role, so that nothing but the origin refuses
	before := pgtest.Dump(t, r.DB, "sessions", "users")
	changes := 0
	for _, route := range r.Console.Routes() {
		if route.Method == http.MethodGet {
			continue
		}
		changes++
		for _, header := range []http.Header{
			{"Sec-Fetch-Site": {"cross-site"}},
			{"Sec-Fetch-Site": {"same-site"}},
			{"Origin": {"https://planted.example"}},
			{"Origin": {"null"}},
		} {
			b.header = header
			got := b.send(route.Method, fill(route.Path), url.Values{})
			if got.Status != http.StatusForbidden ||
				!strings.Contains(got.text("body"), "This request came from another site.") {
				t.Errorf("%s %s with %v answers %d %.100q, want 403 for the origin",
					route.Method, route.Path, header, got.Status, got.text("main"))
			}
		}
	}
	if changes == 0 {
		t.Fatal("no route changes anything")
	}
	if changed := pgtest.Dump(t, r.DB, "sessions", "users").Differs(before); len(changed) > 0 {
		t.Errorf("refused changes changed %v", changed)
	}
	b.header = http.Header{"Origin": {r.URL}}
	b.post(paths.SignOut, nil).wantStatus(t, http.StatusSeeOther)
}

func TestEveryAnswerIsStrict(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	for _, path := range []string{
		paths.Home, paths.Deliveries, paths.Subscriptions, "/console/nothing",
		paths.To(paths.Delivery, uuid.NewString()), paths.Where(paths.Deliveries, "since", "yesterday"),
	} {
		header := b.get(path).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "Cache-Control": "no-store",
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if !strings.HasPrefix(header.Get(name), want) {
				t.Errorf("%s: %s = %q, want %q", path, name, header.Get(name), want)
			}
		}
		if policy := header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy allows what is unsafe: %s", path, policy)
		}
	}
}

func TestFormsAreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	form := url.Values{"theme": {"dark"}, "filler": {strings.Repeat("x", 1<<20)}}
	b.post(paths.Preferences, form).wantStatus(t, http.StatusRequestEntityTooLarge)
	if theme, _ := b.get(paths.Home).find("html").Attr("data-theme"); theme != "" {
		t.Error("a form of a megabyte was read")
	}
}

func TestErrorPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	for path, want := range map[string]string{
		"/console/nothing":                          "there is nothing at this path",
		paths.To(paths.Delivery, uuid.Nil.String()): "no delivery has the id 00000000-",
		paths.To(paths.Delivery, "17"):              "there is no such delivery. the link may be cut off",
	} {
		page := b.get(path).wantStatus(t, http.StatusNotFound)
		if text := page.text("main"); !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
			t.Errorf("%s says %q, want %q", path, text, want)
		}
		part := b.fragment().get(path).wantStatus(t, http.StatusNotFound)
		if part.find("html head title").Length() != 0 || part.find("[role=alert]").Length() != 1 {
			t.Errorf("%s answers a script with %.200q, want a notice", path, part.Raw)
		}
	}
}

// A refusal keeps signed-in users within the console, with a link back and without words of
// the API.
func TestErrorPagesStayInTheConsole(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	application := paths.To(paths.Application, r.application.String())
	for _, test := range []struct{ path, back, label, says string }{
		{
			application + "/change/document?to=x", application, "Back to the application",
			"Choose what to record: sent or signed.",
		},
		{paths.To(paths.Delivery, "none"), paths.Deliveries, "All deliveries", "no such delivery"},
		{paths.To(paths.Merchant, "none"), paths.Partners, "All partners", "no such merchant"},
		{paths.To(paths.Client, "gone"), paths.Partners, "All partners", `no client "gone"`},
		{"/console/nothing", "", "", "There is nothing at this path"},
		{paths.PersonNew, "", "", "Your role, operator, may not do this"},
	} {
		page := b.get(test.path)
		if page.Status < 400 || page.find("nav.rail").Length() != 1 {
			t.Errorf("%s answers %d outside of the console", test.path, page.Status)
		}
		says := page.text(".fault-page")
		if !strings.Contains(says, test.says) || strings.Contains(says, "DOCUMENT_") {
			t.Errorf("%s says %q, want %q", test.path, says, test.says)
		}
		if test.back == "" {
			continue
		}
		back := page.find(".fault-page a[href='" + test.back + "']")
		if back.Text() != test.label {
			t.Errorf("%s leads back by %q, want %q to %s", test.path, back.Text(), test.label, test.back)
		}
	}
	if r.stranger().get("/console/nothing").find("nav.rail").Length() != 0 {
		t.Error("who is not signed in gets the console's frame")
	}
}

func TestPreferences(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	back := b.post(paths.Preferences, url.Values{
		"theme": {"dark"}, "density": {"compact"}, "back": {"/console/deliveries?state=failed"},
	}).wantStatus(t, http.StatusSeeOther)
	if back.Location != "/console/deliveries?state=failed" {
		t.Errorf("back to %q", back.Location)
	}
	root := b.get(back.Location).find("html")
	theme, _ := root.Attr("data-theme")
	density, _ := root.Attr("data-density")
	if theme != "dark" || density != "compact" {
		t.Errorf("theme %q, density %q", theme, density)
	}
	b.post(paths.Preferences, url.Values{"theme": {"planted"}})
	if theme, _ := b.get(paths.Home).find("html").Attr("data-theme"); theme != "dark" {
		t.Errorf("a theme that does not exist changed the theme to %q", theme)
	}
	b.post(paths.Preferences, url.Values{"theme": {"system"}})
	if theme, set := b.get(paths.Home).find("html").Attr("data-theme"); set {
		t.Errorf("the system's theme is %q", theme)
	}
}
