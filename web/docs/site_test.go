package docs

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"go.yaml.in/yaml/v3"

	"drawbridge/internal/lending"
	"drawbridge/static"
)

const testBase = "https://lender.example/api"

// serve serves the documentation as the server mounts it.
func serve(t *testing.T, site *Site) *httptest.Server {
	t.Helper()
	router := echo.New()
	for _, route := range site.Routes() {
		router.GET(route.Path, route.Handler).Name = route.Name
	}
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server
}

// common is rendered once for all tests at testBase. A trailing slash of the configured
// address must be removed.
var common = New(Options{BaseURL: func() string { return testBase + "/" }})

func site(t *testing.T) *httptest.Server {
	t.Helper()
	return serve(t, common)
}

func get(t *testing.T, address string) *http.Response {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func page(t *testing.T, server *httptest.Server, path string) *goquery.Document {
	t.Helper()
	response := get(t, server.URL+path)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s answered %d", path, response.StatusCode)
	}
	document, err := goquery.NewDocumentFromReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// Every link, asset and anchor on any page exists.
func TestNoLinkIsDead(t *testing.T) {
	t.Parallel()
	server := site(t)
	visited := map[string]*goquery.Document{}
	targets := map[string]string{} // address -> the page that names it
	for waiting := []string{Prefix}; len(waiting) > 0; waiting = waiting[1:] {
		path := waiting[0]
		if visited[path] != nil {
			continue
		}
		document := page(t, server, path)
		visited[path] = document
		document.Find("[href],[src]").Each(func(_ int, node *goquery.Selection) {
			address := node.AttrOr("href", node.AttrOr("src", ""))
			if strings.HasPrefix(address, "#") {
				address = path + address
			}
			targets[address] = path
			if plain, _, _ := strings.Cut(address, "#"); isPage(plain) {
				waiting = append(waiting, plain)
			}
		})
	}
	if len(visited) != len(pages) {
		t.Errorf("links reach %d pages, the menu has %d", len(visited), len(pages))
	}
	for address, from := range targets {
		checkTarget(t, server, visited, address, from)
	}
}

func isPage(path string) bool {
	for _, link := range pages {
		if link.Href == path {
			return true
		}
	}
	return false
}

func checkTarget(
	t *testing.T, server *httptest.Server, visited map[string]*goquery.Document,
	address, from string,
) {
	t.Helper()
	if address == static.URL(static.Font) {
		return // the server has it whether or not it serves the documentation
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.IsAbs() || !strings.HasPrefix(parsed.Path, Prefix) {
		t.Errorf("%s leads outside: %q", from, address)
		return
	}
	document := visited[parsed.Path]
	if document == nil {
		if status := get(t, server.URL+parsed.Path).StatusCode; status != http.StatusOK {
			t.Errorf("%s: %s answers %d", from, address, status)
		}
		return
	}
	if parsed.Fragment != "" {
		found := document.Find("[id]").FilterFunction(func(_ int, node *goquery.Selection) bool {
			return node.AttrOr("id", "") == parsed.Fragment
		})
		if found.Length() != 1 {
			t.Errorf("%s: %s names %d elements", from, address, found.Length())
		}
	}
}

// The pages work under a policy that allows only this origin and nothing inline.
func TestPagesKeepThePolicy(t *testing.T) {
	t.Parallel()
	server := site(t)
	for _, link := range pages {
		response := get(t, server.URL+link.Href)
		policy := response.Header.Get("Content-Security-Policy")
		for _, word := range []string{"unsafe", "http:", "https:", "*"} {
			if policy == "" || strings.Contains(policy, word) {
				t.Errorf("%s: policy %q", link.Href, policy)
			}
		}
		document, err := goquery.NewDocumentFromReader(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if n := document.Find("script:not([src]),style,[style],[onclick],base").Length(); n > 0 {
			t.Errorf("%s has %d inline scripts or styles", link.Href, n)
		}
		if n := document.Find("h1").Length(); n != 1 {
			t.Errorf("%s has %d first headings", link.Href, n)
		}
		current := document.Find(`.pages > li > a[aria-current="page"]`)
		if current.Text() != link.Label {
			t.Errorf("%s marks %q as the current page", link.Href, current.Text())
		}
	}
}

func TestEveryCodeHasCauseAndCure(t *testing.T) {
	t.Parallel()
	document := page(t, site(t), Prefix+"/errors")
	for _, code := range lending.Codes() {
		section := document.Find("#" + string(code))
		if section.Length() != 1 {
			t.Errorf("%s is not explained", code)
			continue
		}
		answers := section.Find("dd")
		for i, what := range []string{"cause", "cure"} {
			if len(strings.TrimSpace(answers.Eq(i).Text())) < 20 {
				t.Errorf("%s has no %s", code, what)
			}
		}
	}
	if n := document.Find("section.error").Length(); n != len(lending.Codes()) {
		t.Errorf("%d codes are explained, there are %d", n, len(lending.Codes()))
	}
}

// For each refusal that an operation lists, an example is shown, and no others.
func TestEveryListedRefusalHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	document := page(t, site(t), Prefix+"/reference")
	document.Find("section.operation").Each(func(_ int, operation *goquery.Selection) {
		name := operation.AttrOr("id", "")
		listed := map[string]bool{}
		operation.Find("[aria-label=Errors] code").Each(func(_ int, code *goquery.Selection) {
			listed[code.Text()] = true
		})
		shown := map[string]bool{}
		operation.Find(".operation-code code").Each(func(_ int, code *goquery.Selection) {
			var answer struct {
				Result struct{ Error struct{ Code string } }
			}
			if json.Unmarshal([]byte(code.Text()), &answer) == nil {
				shown[answer.Result.Error.Code] = true
			}
		})
		delete(shown, "") // the successes
		for code := range shown {
			if !listed[code] {
				t.Errorf("%s shows %s and does not list it", name, code)
			}
		}
		for code := range listed {
			if !shown[code] {
				t.Errorf("%s lists %s and does not show it", name, code)
			}
		}
	})
}

func TestTheWebhookGuideShowsEveryEvent(t *testing.T) {
	t.Parallel()
	document := page(t, site(t), Prefix+"/webhooks")
	kinds := lending.AllEventKinds()
	if n := document.Find("section.event").Length(); n != len(kinds) {
		t.Errorf("%d events, want %d", n, len(kinds))
	}
	if heading := document.Find("#the-eleven-kinds-of-events"); heading.Length() != 1 ||
		len(kinds) != 11 {
		t.Errorf("the heading of %d kinds says eleven", len(kinds))
	}
	if lead := document.Find("main").Text(); !strings.Contains(lead, "Eleven kinds of events") {
		t.Error("the lead names another number of kinds")
	}
	document.Find("section.event").Each(func(_ int, event *goquery.Selection) {
		samples := event.Find(".samples code")
		if samples.Length() == 0 {
			t.Errorf("%s has no sample", event.AttrOr("id", ""))
		}
		samples.Each(func(_ int, sample *goquery.Selection) {
			var body struct{ Status, Timestamp string }
			if err := json.Unmarshal([]byte(sample.Text()), &body); err != nil || body.Status == "" {
				t.Errorf("%s: the sample is no event: %v", event.AttrOr("id", ""), err)
			}
		})
	})
	languages := document.Find("[data-language]")
	if languages.Length() != len(sampleLanguages) {
		t.Errorf("%d languages, want %d", languages.Length(), len(sampleLanguages))
	}
	// The signature of the shown delivery is valid.
	vectors, err := Vectors()
	if err != nil {
		t.Fatal(err)
	}
	shown := document.Find("figure.code code").First().Text()
	if !strings.Contains(shown, vectors[0].Body) ||
		!strings.Contains(shown, vectors[0].Signatures[0]) {
		t.Errorf("the delivery shown is not the first vector:\n%s", shown)
	}
}

func TestTheDocumentNamesTheConfiguredServer(t *testing.T) {
	t.Parallel()
	server := site(t)
	var fromJSON, fromYAML map[string]any
	asJSON := get(t, server.URL+"/docs/openapi.json").Body
	if err := json.NewDecoder(asJSON).Decode(&fromJSON); err != nil {
		t.Fatal(err)
	}
	asYAML := get(t, server.URL+"/docs/openapi.yaml").Body
	if err := yaml.NewDecoder(asYAML).Decode(&fromYAML); err != nil {
		t.Fatal(err)
	}
	servers := fromJSON["servers"].([]any)
	if got := servers[0].(map[string]any)["url"]; got != testBase {
		t.Errorf("server %v, want %s", got, testBase)
	}
	// Both through JSON, so that numbers have one type.
	again, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}
	var normal map[string]any
	if err := json.Unmarshal(again, &normal); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromJSON, normal); diff != "" {
		t.Errorf("the two forms differ: %s", diff)
	}
	for _, path := range []string{"", "/quickstart", "/requests", "/reference"} {
		text := page(t, server, Prefix+path).Find("main").Text()
		if strings.Contains(text, ExampleBaseURL) || !strings.Contains(text, testBase) {
			t.Errorf("%s does not name the configured server", path)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	server := site(t)
	style := page(t, server, Prefix).Find(`link[rel="stylesheet"]`).AttrOr("href", "")
	cases := []struct {
		path, contentType, cache string
		status                   int
	}{
		{"/docs", "text/html; charset=utf-8", "no-cache", 200},
		{"/docs/openapi.yaml", "application/yaml", "no-cache", 200},
		{"/docs/openapi.json", "application/json", "no-cache", 200},
		{"/docs/collection.json", "application/json", "no-cache", 200},
		{"/docs/egress.json", "application/json", "no-cache", 200},
		{"/llms.txt", "text/plain; charset=utf-8", "no-cache", 200},
		{"/docs/overview.md", "text/markdown; charset=utf-8", "no-cache", 200},
		{"/docs/lender/reference.md", "text/markdown; charset=utf-8", "no-cache", 200},
		{"/docs/schemas/task.created.json", "application/schema+json", "no-cache", 200},
		{"/docs/samples/vectors.json", "application/json", "no-cache", 200},
		{"/docs/samples/python/verify.py", "text/plain; charset=utf-8", "no-cache", 200},
		{style, "text/css; charset=utf-8", "public, max-age=31536000, immutable", 200},
		{"/docs/schemas/nothing.json", "", "", 404},
		{"/docs/samples/../openapi.yaml", "", "", 404},
		{"/docs/samples/", "", "", 404},
		{"/docs/assets/docs.css", "", "", 404},
	}
	for _, test := range cases {
		response := get(t, server.URL+test.path)
		if response.StatusCode != test.status {
			t.Errorf("%s answered %d, want %d", test.path, response.StatusCode, test.status)
			continue
		}
		if test.status != http.StatusOK {
			continue
		}
		if got := response.Header.Get("Content-Type"); got != test.contentType {
			t.Errorf("%s is %q, want %q", test.path, got, test.contentType)
		}
		if got := response.Header.Get("Cache-Control"); got != test.cache {
			t.Errorf("%s: Cache-Control %q, want %q", test.path, got, test.cache)
		}
		request, _ := http.NewRequest(http.MethodGet, server.URL+test.path, http.NoBody)
		request.Header.Set("If-None-Match", response.Header.Get("ETag"))
		again, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = again.Body.Close(); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s answered %d to its own ETag, want 304", test.path, again.StatusCode)
		}
	}
}

// Every encoding that a browser may request contains the same bytes.
func TestCompression(t *testing.T) {
	t.Parallel()
	server := site(t)
	cases := []struct {
		accept string
		zipped bool
	}{
		{"gzip, deflate, br", true},
		{"br;q=1.0, gzip;q=0.8", true},
		{"identity", false},
		{"gzip;q=0", false},
	}
	plain := body(t, server.URL+"/docs/reference", "identity")
	for _, test := range cases {
		received := body(t, server.URL+"/docs/reference", test.accept)
		if !test.zipped {
			if !bytes.Equal(received, plain) {
				t.Errorf("%q: not the plain page", test.accept)
			}
			continue
		}
		if len(received) > len(plain)/5 || len(received) > 60<<10 {
			t.Errorf("%q: %d bytes of %d", test.accept, len(received), len(plain))
		}
		reader, err := gzip.NewReader(bytes.NewReader(received))
		if err != nil {
			t.Fatal(err)
		}
		unzipped, err := io.ReadAll(reader)
		if err != nil || !bytes.Equal(unzipped, plain) {
			t.Errorf("%q: unzips to something else: %v", test.accept, err)
		}
	}
}

// body returns what a client that accepts an encoding receives over the wire.
func body(t *testing.T, address, accept string) []byte {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	// Setting the header explicitly keeps the client from decompressing.
	request.Header.Set("Accept-Encoding", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	received, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return received
}

// TestSettings checks the settings that the pages mention: production says where the sandbox is,
// the timeout of endpoints is stated, and the networks that webhooks come from are published.
func TestSettings(t *testing.T) {
	t.Parallel()
	networks := []netip.Prefix{
		netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/64"),
	}
	notes := map[string]string{
		development: "If this server has a mail server, the borrower is mailed for real",
		"sandbox":   "no borrower is mailed and no money moves",
		production:  "sandbox operations answer 404 and borrowers are mailed for real",
	}
	for _, test := range []struct {
		site                *Site
		environment, egress string
		currency            string
		within, retryAfter  string
	}{
		{common, development, `{"addresses":[]}`, "USD", "30 seconds", "attempt later, up to an hour."},
		{
			New(Options{
				Environment: "sandbox", Currency: "CAD",
				Webhooks: &Timing{Timeout: 90 * time.Second, RetryAfterMax: 2 * time.Hour},
			}), "sandbox", `{"addresses":[]}`,
			"CAD", "90 seconds", "attempt later, up to 2 hours.",
		},
		{
			New(Options{
				Environment: production, Egress: networks, Currency: "EUR",
				Webhooks: &Timing{Timeout: 5 * time.Second},
			}), production,
			`{"addresses":["203.0.113.0/24","2001:db8::/64"]}`, "EUR",
			"5 seconds", "Drawbridge ignores your `Retry-After`.",
		},
	} {
		server := serve(t, test.site)
		shown := page(t, server, Prefix+"/quickstart")
		text := shown.Find("main").Text()
		for environment, note := range notes {
			if strings.Contains(text, note) != (test.environment == environment) ||
				shown.Find(".environment").Text() != test.environment {
				t.Errorf("%s: the page of %s says %q",
					test.environment, shown.Find(".environment").Text(), text)
			}
		}
		for path, sentence := range map[string]string{
			"/requests.md":  "All amounts are in one currency: `%s`.",
			"/openapi.yaml": "Every amount is in `%s`.", "/openapi.json": "Every amount is in `%s`.",
			"/lender/openapi.yaml": "Every amount is in `%s`.",
			"/lender/openapi.json": "Every amount is in `%s`.",
		} {
			want := fmt.Sprintf(sentence, test.currency)
			if got := string(body(t, server.URL+Prefix+path, "")); !strings.Contains(got, want) {
				t.Errorf("%s: %s does not say %q", test.environment, path, want)
			}
		}
		webhooks := string(body(t, server.URL+Prefix+"/webhooks.md", ""))
		live := string(body(t, server.URL+Prefix+"/going-live.md", ""))
		if !strings.Contains(webhooks, "299 within "+test.within+" to") ||
			!strings.Contains(webhooks, test.retryAfter) ||
			!strings.Contains(live, "2xx status within "+test.within+".") {
			t.Errorf("%s: the pages do not say %q and %q",
				test.environment, test.within, test.retryAfter)
		}
		if note := notes[production]; strings.Contains(live, note) != (test.environment == production) {
			t.Errorf("%s: to go live says %s", test.environment, live)
		}
		got := strings.TrimSpace(string(body(t, server.URL+"/docs/egress.json", "")))
		if got != test.egress {
			t.Errorf("%s published %s; want %s", test.environment, got, test.egress)
		}
	}
}

// TestMistypedAddresses requests, as a browser and as a program, existing pages with a
// trailing slash, and pages that do not exist.
func TestMistypedAddresses(t *testing.T) {
	t.Parallel()
	server := site(t)
	for _, path := range []string{"/", "/quickstart/", "/lender/reference/", "/openapi.yaml/"} {
		found := get(t, server.URL+Prefix+path)
		plain := Prefix + strings.TrimSuffix(path, "/")
		if found.StatusCode != http.StatusOK || found.Request.URL.Path != plain {
			t.Errorf("%s led to %s, which answers %d", path, found.Request.URL, found.StatusCode)
		}
	}
	for path, overview := range map[string]string{
		"/webhook": Prefix, "/schemas/none.json": Prefix, "/samples/none/": Prefix,
		"/lender/referenc": lenderPrefix,
	} {
		for accept, contentType := range map[string]string{
			"text/html,application/xhtml+xml,*/*;q=0.8": "text/html; charset=utf-8",
			"*/*": "application/json", "application/json": "application/json",
		} {
			request, err := http.NewRequest(http.MethodGet, server.URL+Prefix+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Accept", accept)
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			shown, err := goquery.NewDocumentFromReader(answer.Body)
			_ = answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusNotFound ||
				answer.Header.Get("Content-Type") != contentType {
				t.Errorf("%s for %s: %d %v", path, accept, answer.StatusCode, answer.Header)
			}
			links := shown.Find(`main a[href="` + overview + `"]`).Length()
			if (links == 1) != strings.HasPrefix(contentType, "text/html") {
				t.Errorf("%s for %s has %d links to the overview", path, accept, links)
			}
		}
	}
}

func TestRoutesHaveTheirOwnNames(t *testing.T) {
	t.Parallel()
	names, paths := map[string]bool{}, map[string]bool{}
	for _, route := range New(Options{}).Routes() {
		if names[route.Name] || paths[route.Path] {
			t.Errorf("%s %s is there twice", route.Name, route.Path)
		}
		names[route.Name], paths[route.Path] = true, true
		if !strings.HasPrefix(route.Path, Prefix) && route.Path != "/llms.txt" {
			t.Errorf("%s is outside %s", route.Path, Prefix)
		}
	}
}

// Every page that /llms.txt lists exists as Markdown, with the page's content and nothing
// of its frame.
func TestPagesAsMarkdown(t *testing.T) {
	t.Parallel()
	server := site(t)
	listed := string(body(t, server.URL+"/llms.txt", ""))
	for _, spec := range slices.Concat(pages, lenderPages) {
		if !strings.Contains(listed, "(https://lender.example"+spec.markdown()+")") {
			t.Errorf("/llms.txt lacks %s", spec.markdown())
		}
		text := string(body(t, server.URL+spec.markdown(), ""))
		if !strings.HasPrefix(text, "# "+spec.title+"\n") || strings.Contains(text, "Skip to") ||
			strings.Contains(text, "<div") || strings.Contains(text, "lender.example#") {
			t.Errorf("%s begins %.300q", spec.markdown(), text)
		}
	}
	for path, wants := range map[string][]string{
		Prefix + "/reference.md":  {"/v2/loan/{loanApplicationUid}/request-draw", "```"},
		Prefix + "/quickstart.md": {"create-run-decision", "```", "\n## Set your credentials\n"},
		Prefix + "/errors.md":     {"DRAW_PENDING"},
		Prefix + "/webhooks.md":   {"x-drawbridge-sequence", "](https://lender.example/docs/samples/"},
	} {
		text := string(body(t, server.URL+path, ""))
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
}

// The search finds sections with all words in any case, needs no script, and reports no match.
func TestSearch(t *testing.T) {
	t.Parallel()
	server := site(t)
	form := page(t, server, Prefix).Find(`form[role="search"]`)
	if form.AttrOr("action", "") != Prefix+"/search" || form.Find(`input[name="q"]`).Length() != 1 {
		t.Fatal("no form leads to the search")
	}
	for query, want := range map[string]string{
		"draw_pending":                       "/docs/errors#",
		"Recoveries":                         "/docs/reference#",
		"request-draw upload":                "/docs/",
		"pagination":                         "/docs/",
		"timezone":                           "/docs/requests#values",
		"refund":                             "/docs/",
		"dedupe":                             "/docs/webhooks#",
		"SDK":                                "/docs#to-download",
		"ip address":                         "/docs/webhooks#",
		"loanApplicationUid":                 "/docs/reference#",
		"work list disburse&of=lender":       "/docs/lender",
		"funding scope payments 203.0.113.0": "",
		"flood Xyzzy":                        "",
		"":                                   "",
	} {
		asked := strings.ReplaceAll(url.QueryEscape(query), "%26of%3D", "&of=")
		found := page(t, server, Prefix+"/search?q="+asked)
		var links []string
		for _, link := range found.Find("main .hits a").EachIter() {
			links = append(links, link.AttrOr("href", ""))
		}
		if (len(links) > 0) != (want != "") || want != "" &&
			!slices.ContainsFunc(links, func(to string) bool { return strings.HasPrefix(to, want) }) {
			t.Errorf("%q finds %v, want %q among them", query, links, want)
		}
		for _, link := range links {
			path, id, _ := strings.Cut(link, "#")
			if id != "" && page(t, server, path).Find(`[id="`+id+`"]`).Length() != 1 {
				t.Errorf("%q leads to %s, where nothing is", query, link)
			}
		}
		query, _, _ = strings.Cut(query, "&")
		if query != "" && found.Find(`input[name="q"]`).AttrOr("value", "") != query {
			t.Errorf("%q is not in the field any more", query)
		}
	}
	bad := `<script>alert(1)</script>` + strings.Repeat("ä", 300)
	hostile := page(t, server, Prefix+"/search?q="+url.QueryEscape(bad))
	if hostile.Find("main script").Length() != 0 {
		t.Error("what was searched for runs")
	}
}
