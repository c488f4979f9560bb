package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/web"
)

// TestRouteTableIsComplete checks every route: it says who may call it, routes of partners
// and the console answer nobody else, and the public routes are exactly those listed here.
func TestRouteTableIsComplete(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	public := map[string]bool{
		"health": true, "ready": true, "metrics": true,
		"health.head": true, "ready.head": true, "metrics.head": true,
		"static": true, "static.head": true,
	}
	table := web.Table(web.Options{
		API: s.API, BasePath: apptest.BasePath, Metrics: http.NotFoundHandler(),
	})
	names := map[string]bool{}
	for _, route := range table {
		if names[route.Method+route.Path] {
			t.Errorf("%s %s stands twice", route.Method, route.Path)
		}
		names[route.Method+route.Path] = true
		switch route.Access {
		case web.AccessPartner, web.AccessLender:
			path := strings.TrimPrefix(route.Path, apptest.BasePath)
			answer := s.Do(apptest.Call{Method: route.Method, Path: path, Anonymous: true})
			if answer.Code() != "UNAUTHORIZED" {
				t.Errorf("%s %s answered a stranger %s", route.Method, route.Path, answer.Raw)
			}
		case web.AccessAnyone:
			if !public[route.Name] {
				t.Errorf("%s %s is open to anyone", route.Method, route.Path)
			}
		case web.AccessGuest, web.AccessSupport, web.AccessOperator, web.AccessAdmin:
		default:
			t.Errorf("%s %s has the access level %q", route.Method, route.Path, route.Access)
		}
	}
	if len(table) < 20 {
		t.Errorf("the table has only %d routes", len(table))
	}
}

// TestAllowNamesWhatAnswers calls every path with methods that it does not have: the Allow
// header lists exactly the operations of the path.
func TestAllowNamesWhatAnswers(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := s.NewSystem("everything", partner.Scopes()...)
	methods := map[string][]string{}
	lenders := map[string]bool{}
	for _, route := range s.API.Routes() {
		for _, path := range []string{route.Path, route.Alias} {
			if path != "" {
				methods[path] = append(methods[path], route.Method)
				lenders[path] = route.IsLender()
			}
		}
	}
	for path, known := range methods {
		slices.Sort(known)
		as := s.Home
		if lenders[path] {
			as = system
		}
		for _, method := range []string{
			http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch,
			http.MethodOptions,
		} {
			if slices.Contains(known, method) {
				continue
			}
			answer := s.Do(apptest.Call{
				Method: method, As: &as, Path: strings.NewReplacer(
					":uid", uuid.NewString(), ":id", "7", ":date", quietDay).Replace(path),
			})
			if answer.Code() != "METHOD_NOT_ALLOWED" ||
				answer.Header.Get("Allow") != strings.Join(known, ", ") {
				t.Errorf("%s %s answered %s, Allow %q, want %q", method, path, answer.Raw,
					answer.Header.Get("Allow"), known)
			}
		}
	}
}

// fetch sends a request outside the API, and returns the answer with its body.
func fetch(
	t *testing.T, server *httptest.Server, method, path string, change func(*http.Request),
) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// serve starts the server with everything that the program serves.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	options, err := apptest.On(t, pgtest.New(t), "DRAWBRIDGE_ROLES", "api,console").WebOptions()
	if err != nil {
		t.Fatal(err)
	}
	options.Metrics = http.NotFoundHandler()
	server := httptest.NewUnstartedServer(nil)
	server.Config = web.NewServer(web.New(options))
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// TestOptionsOfTheServer sends OPTIONS *, which net/http would answer by itself.
func TestOptionsOfTheServer(t *testing.T) {
	t.Parallel()
	response, body := fetch(t, serve(t), http.MethodOptions, "/", func(r *http.Request) {
		r.URL.Opaque = "*"
	})
	if response.StatusCode != http.StatusNotFound || response.Header.Get("X-Request-Id") == "" ||
		!strings.Contains(body, `"NOT_FOUND"`) {
		t.Errorf("answered %d, %v: %s", response.StatusCode, response.Header, body)
	}
}

// TestFilesAnswerHead sends HEAD for pages and files that need no sign-in.
func TestFilesAnswerHead(t *testing.T) {
	t.Parallel()
	server := serve(t)
	for _, path := range []string{
		"/docs", "/docs/search?q=draw", "/docs/openapi.yaml", "/docs/keys.json", "/llms.txt",
		"/static/img/mark.svg",
	} {
		plain := func(r *http.Request) { r.Header.Set("Accept-Encoding", "identity") }
		want, whole := fetch(t, server, http.MethodGet, path, plain)
		got, body := fetch(t, server, http.MethodHead, path, plain)
		if want.StatusCode != http.StatusOK || got.StatusCode != http.StatusOK || whole == "" ||
			body != "" || got.Header.Get("Content-Type") != want.Header.Get("Content-Type") ||
			got.Header.Get("Etag") != want.Header.Get("Etag") {
			t.Errorf("%s: HEAD answered %d, %v; GET %d, %v", path, got.StatusCode, got.Header,
				want.StatusCode, want.Header)
		}
		refused, _ := fetch(t, server, http.MethodPost, path, nil)
		if refused.StatusCode != http.StatusMethodNotAllowed ||
			refused.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s answered %d, Allow %q", path, refused.StatusCode,
				refused.Header.Get("Allow"))
		}
	}
	page, _ := fetch(t, server, http.MethodHead, "/console/sign-in", nil)
	if page.StatusCode < http.StatusBadRequest {
		t.Errorf("HEAD of the console answered %d", page.StatusCode)
	}
}

// TestProductionHasNoFaults checks the wiring: nothing in production makes deliveries fail,
// plays scenarios or has routes for them. Only a sandbox withholds mails to borrowers
// although it has a mail server, and only development receives webhooks itself.
func TestProductionHasNoFaults(t *testing.T) {
	t.Parallel()
	for environment, wanted := range map[string]bool{
		"production": false, "sandbox": true, "development": true,
	} {
		s := apptest.On(t, pgtest.New(t), "DRAWBRIDGE_ENV", environment, "DRAWBRIDGE_ROLES", "api",
			"DRAWBRIDGE_PUBLIC_URL", "https://drawbridge.example",
			"DRAWBRIDGE_SECRETS_KEY", secret.GenerateKey(),
			"DRAWBRIDGE_SMTP_URL", "smtps://user:secret@mail.example.com:465")
		options, err := s.WebOptions()
		if err != nil {
			t.Fatal(err)
		}
		if has := s.Webhooks.Deliveries.Faults != nil; has != wanted || options.API.Sandbox != wanted {
			t.Errorf("%s: faults %v, sandbox %v", environment, has, options.API.Sandbox)
		}
		mailSender, err := s.NewMailSender()
		if err != nil {
			t.Fatal(err)
		}
		if mailSender.SMTP == nil || mailSender.Captures != (environment == "sandbox") {
			t.Errorf("%s: captures mails %v", environment, mailSender.Captures)
		}
		if receives := s.Receiver != nil; receives != (environment == "development") ||
			(options.Receiver != nil) != receives {
			t.Errorf("%s: a sample receiver %v", environment, receives)
		}
	}
}

// TestEgressNetworksOfTheSettings reads the configured networks that webhooks come from.
func TestEgressNetworksOfTheSettings(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t, "DRAWBRIDGE_EGRESS_CIDRS", "203.0.113.7/32, 2001:db8::/64")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		strings.TrimSuffix(s.URL, apptest.BasePath)+"/docs/egress.json", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	const want = `{"addresses":["203.0.113.7/32","2001:db8::/64"]}`
	got, err := io.ReadAll(response.Body)
	if err != nil || strings.TrimSpace(string(got)) != want {
		t.Errorf("published are %s, %v; want %s", got, err, want)
	}
}

// TestProductionHasNoSandbox checks that production has no sandbox routes.
func TestProductionHasNoSandbox(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	s.API.Sandbox = false
	for _, route := range web.Table(web.Options{API: s.API, Metrics: http.NotFoundHandler()}) {
		if strings.Contains(route.Path, "sandbox") {
			t.Errorf("production serves %s", route.Path)
		}
	}
	e := web.New(web.Options{API: s.API, BasePath: "/api", Metrics: http.NotFoundHandler()})
	for _, route := range e.Routes() {
		if strings.Contains(route.Path, "sandbox") {
			t.Errorf("production registers %s", route.Path)
		}
	}
}
