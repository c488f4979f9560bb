package faults

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// visitor is a user who is signed in to the console, without a browser.
type visitor struct {
	t      *testing.T
	client *http.Client
	base   string
}

// visit signs the demo's admin in to a server that serves the console, and tries again if the
// server of a busy machine answers that it is unavailable.
func visit(t *testing.T, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, client: &http.Client{Jar: jar}, base: base}
	t.Cleanup(v.client.CloseIdleConnections)
	var answer *http.Response
	waittest.Within(t, time.Minute, "a sign-in is answered", func() bool {
		answer, err = v.client.PostForm(base+paths.SignIn,
			url.Values{"email": {e2etest.DemoAdmin}, "password": {e2etest.DemoPassword}})
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode != http.StatusServiceUnavailable
	})
	if answer.Request.URL.Path != paths.Home {
		t.Fatalf("signing in led to %s with %d", answer.Request.URL, answer.StatusCode)
	}
	return v
}

// get returns a file of the console.
func (v *visitor) get(path string) []byte {
	v.t.Helper()
	answer, err := v.client.Get(v.base + path)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK ||
		answer.Request.URL.Path == paths.SignIn {
		v.t.Fatalf("%s leads to %s with %d: %v", path, answer.Request.URL, answer.StatusCode, err)
	}
	return body
}

// read returns the text of a page's main part, with white space folded.
func (v *visitor) read(path string) string {
	v.t.Helper()
	page, err := goquery.NewDocumentFromReader(strings.NewReader(string(v.get(path))))
	if err != nil {
		v.t.Fatal(err)
	}
	return strings.Join(strings.Fields(page.Find("main").Text()), " ")
}

// says waits until a page contains each of the texts: on a busy machine a list may give
// its count up.
func (v *visitor) says(path string, texts ...string) {
	v.t.Helper()
	var page string
	defer func() {
		if v.t.Failed() {
			v.t.Logf("%s says: %s", path, page)
		}
	}()
	waittest.Within(v.t, time.Minute, fmt.Sprintf("%s says %q", path, texts), func() bool {
		page = v.read(path)
		return !slices.ContainsFunc(texts, func(text string) bool {
			return !strings.Contains(page, text)
		})
	})
}

// at is the path of a page about one thing.
func at(pattern, uid string) string { return strings.Replace(pattern, ":uid", uid, 1) }

// checkConsole compares what the console says about the load's deliveries with what was
// found, in the totals and on the pages of two that did not arrive at once.
func checkConsole(w *e2etest.Harness, found faultTally) {
	w.T.Helper()
	v := visit(w.T, w.Serve("--roles", "console").URL)
	for state, count := range map[string]int{"delivered": found.delivered, "failed": found.failed} {
		sum := ui.Number(count) + " deliveries"
		switch {
		case count == 0:
			continue // the list shows an explanation instead
		case count == 1:
			sum = "1 delivery"
		case count > 10_000:
			sum = "10,000+ deliveries"
		}
		v.says(paths.Deliveries+"?event=task.created&state="+state, sum)
	}
	for text, query := range map[string]string{
		"3 attempts of at most 3": `
			SELECT delivery_uid FROM deliveries WHERE event = 'task.created' AND state = 'failed'`,
		"Outcome unknown": `
			SELECT delivery_uid FROM attempts WHERE error_class = 'unknown'`,
	} {
		var uids []string
		if err := w.Open(w.T).SelectContext(w.T.Context(), &uids, query+` LIMIT 1`); err != nil {
			w.T.Fatal(err)
		}
		for _, uid := range uids {
			v.says(at(paths.Delivery, uid), text)
		}
	}
}
