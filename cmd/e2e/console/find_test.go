package console

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"drawbridge/cmd/e2e/e2etest"
)

// mostActs is how many keys and clicks it may take from a pasted id to the explanation of
// what happened to its webhook.
const mostActs = 3

// A partner says "we got no webhook for this loan": it takes three interactions by keyboard
// and mouse from the pasted id to the explanation, and then to a re-send that is shown to
// arrive.
func TestFromALoanToItsExplanation(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "503 Service Unavailable")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	s := w.Serve()
	w.Subscribe(data, e.URL)
	e2etest.RequestDraw(t, s.URL, data, "first_regular")
	first := e.Next(t)
	uid, _ := first.Value("x-drawbridge-delivery")
	w.WaitForState(uid, "failed")
	e.Answers("200 OK")
	var payload struct {
		Loan string `json:"application_id"`
	}
	if err := json.Unmarshal(first.Body, &payload); err != nil {
		t.Fatal(err)
	}
	support := &userInput{T: t, browser: newBrowser(t)}
	do(t, support.browser, chromedp.EmulateViewport(wide, 900))
	signIn(t, support.browser, s.URL, data.Users[1])
	support.loaded()

	support.key("/") // one: opens the search
	do(t, support.browser, chromedp.WaitVisible(chromedp.CSS(`#palette-q:focus`)))
	support.paste(payload.Loan)
	// Two: opens the application. Three: opens the delivery.
	support.key(kb.Enter)
	support.click(fmt.Sprintf(`main a[href="/console/deliveries/%s"]`, uid))
	support.reads("All attempts are used up")
	support.reads("Likely owner: partner")
	if support.acts > mostActs {
		t.Errorf("the explanation took %d interactions beside the paste, want at most %d",
			support.acts, mostActs)
	}

	support.click(`[data-open=resend]`)
	support.click(`dialog #reason`)
	support.types("endpoint is back")
	support.click(`dialog .dialog-form button[type=submit]`)
	// The same page shows that it arrives.
	do(t, support.browser, chromedp.WaitVisible(chromedp.Search(
		`//section[@aria-labelledby="resends-title"]//*[text()="Delivered"]`)))
}

// The first page that a user opens is small, including all its files.
func TestPageWeight(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	run := w.Command("seed", "--deliveries", "2000", "--attempts", "3000", "--partners", "20")
	if output, err := run.CombinedOutput(); err != nil {
		t.Fatalf("seeding: %v: %s", err, output)
	}
	s := w.Serve()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	user := data.Users[1]
	answer, err := client.PostForm(s.URL+"/console/sign-in",
		url.Values{"email": {user.Email}, "password": {user.Password}})
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	page, total := weigh(t, client, s.URL+"/console/deliveries")
	if strings.Count(page, `id=d-`) != 50 {
		t.Fatalf("the page shows %d rows, want 50", strings.Count(page, `id=d-`))
	}
	if cold := total + weighFiles(t, client, s.URL, page); cold > mostCold || total > mostWarm {
		t.Errorf("the page weighs %d bytes, with its files %d", total, cold)
	}
}

// The largest transfer size of a page, in bytes: warm, for a browser that has the console's files
// in its cache, and cold, including all files.
const mostWarm, mostCold = 20_000, 120_000

// staticFile matches the address of a static file of a page.
var staticFile = regexp.MustCompile(`(?:href|src)="?(/static/[^"#>\s]+)`)

// weighFiles sums up the transfer sizes of a page's files.
func weighFiles(t *testing.T, client *http.Client, server, page string) (total int) {
	t.Helper()
	parts := map[string]int{}
	for _, match := range staticFile.FindAllStringSubmatch(page, -1) {
		if _, known := parts[match[1]]; !known {
			_, parts[match[1]] = weigh(t, client, server+match[1])
			total += parts[match[1]]
		}
	}
	if len(parts) < 4 {
		t.Errorf("the page has only the files %v", parts)
	}
	return total
}

// pagesAreLight checks the transfer sizes of pages of the console.
func (r *crawler) pagesAreLight(paths []string) {
	r.T.Helper()
	client, files := r.person(r.data.Users[2]), 0
	for _, path := range paths {
		if !strings.HasPrefix(path, "/console") {
			continue
		}
		page, warm := weigh(r.T, client, r.server.URL+path)
		if files == 0 {
			files = weighFiles(r.T, client, r.server.URL, page)
		}
		if warm > mostWarm || warm+files > mostCold {
			r.T.Errorf("%s weighs %d bytes, with its files %d", path, warm, warm+files)
		}
	}
}

// weigh gets a file as a browser does, and returns it with its size on the wire.
func weigh(t *testing.T, client *http.Client, address string) (string, int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		t.Fatalf("%s: %s, %v", address, response.Status, err)
	}
	if response.Header.Get("Content-Encoding") != "gzip" {
		return string(raw), len(raw)
	}
	reader, err := gzip.NewReader(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), len(raw)
}
