package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/PuerkitoBio/goquery"
	"github.com/lib/pq"

	"drawbridge/views/paths"
)

// injector sends payloads through everything that is open to partners, borrowers, endpoints
// and mail servers: API requests, uploads, responses, forms.
type injector struct {
	*crawler
	payloads []string
	// lines are the payloads of one line of text, the only ones that the API and the forms
	// accept.
	lines []string
	admin *http.Client
	turn  int
}

// applicants is how many applications contain payloads; they fill a page of a list.
const applicants = 40

// inject sends the payloads and waits until the service has processed all of them.
func (r *crawler) inject(payloads []string) {
	r.T.Helper()
	s := &injector{crawler: r, payloads: payloads}
	s.lines = slices.DeleteFunc(slices.Clone(payloads), func(text string) bool {
		return strings.ContainsFunc(text, unicode.IsControl)
	})
	if len(s.lines) < 60 {
		r.T.Fatalf("there are only %d payloads", len(s.lines))
	}
	s.mailsTo(hostileMailServer(r.T, s.lines))
	s.admin = r.person(r.data.Users[2])
	s.applies()
	s.refused()
	s.calls()
	s.uploads()
	s.names()
	for _, url := range []string{hostileEndpoint(r.T, payloads), impostor(r.T, s.lines)} {
		s.subscribes(url)
	}
	s.happens()
	s.arrives()
	s.plants()
}

// next returns the lines in turn.
func (s *injector) next() string {
	s.turn++
	return s.lines[s.turn%len(s.lines)]
}

// mailsTo restarts the service with another mail server.
func (s *injector) mailsTo(server string) {
	s.T.Helper()
	if status := s.server.Stop(); status != 0 {
		s.T.Errorf("the service ended with %d", status)
	}
	s.Env["DRAWBRIDGE_SMTP_URL"] = server
	s.server = s.Serve()
}

// ask makes an API request as a partner.
func (s *injector) ask(method, path string, body []byte, header http.Header) (int, map[string]any) {
	s.T.Helper()
	request, err := http.NewRequestWithContext(s.T.Context(), method, s.server.URL+path,
		bytes.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	client := s.data.Partners[0].Clients[0]
	request.Header = header
	request.Header.Set("x-service-client-id", client.ID)
	request.Header.Set("x-service-client-secret", client.Secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.T.Fatal(err)
	}
	defer response.Body.Close()
	var envelope struct {
		Result struct{ Data map[string]any }
	}
	_ = json.NewDecoder(response.Body).Decode(&envelope) // not every response has data
	return response.StatusCode, envelope.Result.Data
}

// sends makes an API request with a JSON body, which must be accepted.
func (s *injector) sends(method, path string, body any) map[string]any {
	s.T.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.T.Fatal(err)
	}
	status, data := s.ask(method, "/api/v2"+path, text, http.Header{
		"Content-Type": {"application/json"},
	})
	if status >= http.StatusBadRequest {
		s.T.Fatalf("%s with %s answered %d", path, text, status)
	}
	return data
}

// application is an application with a payload in every field.
func (s *injector) application(i int) map[string]any {
	say := func(place, most int) string { return cut(s.lines[(i+place)%len(s.lines)], most) }
	return map[string]any{
		"requested_amount": "25000.00", "external_reference": say(20, 200),
		"borrower": map[string]any{
			"first_name": say(0, 100), "last_name": say(applicants, 100), "phone": say(30, 100),
			"email": fmt.Sprintf(`"%d<script>ran()</script>"@borrower.example`, i),
		},
		"project": map[string]any{
			"name": say(10, 200), "description": say(50, 500), "address": say(60, 200),
		},
	}
}

// applies sends applications, takes some as far as their welcome e-mail, and gives each of
// those a task.
func (s *injector) applies() {
	s.T.Helper()
	for i := range applicants {
		made := s.sends(http.MethodPost, "/application", s.application(i))
		if i%6 != 0 {
			continue
		}
		uid := fmt.Sprint(made["thrive_application_uid"])
		s.sends(http.MethodPut, "/application/accept-offer", map[string]any{
			"thrive_application_uid": uid, "selected_product_uid": s.data.Products[0].UID,
		})
		s.sends(http.MethodPost, "/sandbox/application/"+uid+"/task",
			map[string]any{"title": s.next()})
	}
}

// refused fails the test if the API accepts a text of several lines.
func (s *injector) refused() {
	s.T.Helper()
	for _, payload := range s.payloads {
		if slices.Contains(s.lines, payload) {
			continue
		}
		body := s.application(0)
		body["external_reference"] = payload
		text, err := json.Marshal(body)
		if err != nil {
			s.T.Fatal(err)
		}
		status, _ := s.ask(http.MethodPost, "/api/v2/application", text,
			http.Header{"Content-Type": {"application/json"}})
		if status != http.StatusBadRequest {
			s.T.Errorf("a reference of %q answered %d", payload, status)
		}
	}
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// calls leaves payloads in the request log, by requests without credentials, of which a few from
// each address are logged.
func (s *injector) calls() {
	s.T.Helper()
	for i, payload := range s.lines {
		request, err := http.NewRequestWithContext(s.T.Context(), http.MethodGet,
			s.server.URL+"/api/v2/loan/"+url.PathEscape(payload), http.NoBody)
		if err != nil {
			s.T.Fatal(err)
		}
		request.Header = http.Header{
			"User-Agent": {payload}, "Idempotency-Key": {payload}, "X-Request-Id": {payload},
			"X-Forwarded-For": {payload}, "X-Service-Client-Id": {payload},
		}
		own := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i))}}
		transport := &http.Transport{DialContext: own.DialContext, DisableKeepAlives: true}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			s.T.Fatal(err)
		}
		_ = response.Body.Close()
	}
}

// uploads sends certificates with payloads in file names and metadata.
func (s *injector) uploads() {
	s.T.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	metadata, err := json.Marshal(map[string]string{s.next(): s.next(), "note": s.next()})
	if err != nil {
		s.T.Fatal(err)
	}
	part(s.T, form, `form-data; name="metadata"`, string(metadata))
	for _, name := range []string{
		`<img id=intruder src=x onerror=ran()>`, `"><script>ran()<`, "\u202egnp.exe", `=cmd|' C'!A0`,
	} {
		part(s.T, form, fmt.Sprintf(`form-data; name="files"; filename="%s.pdf"`,
			strings.ReplaceAll(name, `"`, `\"`)),
			"%PDF-1.4\n1 0 obj\n<</A (<script>ran()</script>)>>\nendobj\n%%EOF\n")
	}
	if err := form.Close(); err != nil {
		s.T.Fatal(err)
	}
	status, _ := s.ask(http.MethodPost,
		"/api/v2/loan/"+s.data.Loans[0].UID.String()+"/completion-cert-upload", body.Bytes(),
		http.Header{"Content-Type": {form.FormDataContentType()}})
	if status >= http.StatusBadRequest {
		s.T.Errorf("the upload of certificates answered %d", status)
	}
}

func part(t *testing.T, form *multipart.Writer, disposition, content string) {
	t.Helper()
	kind := "application/json"
	if strings.Contains(disposition, "filename") {
		kind = "application/pdf"
	}
	w, err := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {disposition}, "Content-Type": {kind},
	})
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// names gives partners and merchants payloads as names, by the forms.
func (s *injector) names() {
	s.T.Helper()
	partner := paths.Partners + "/" + s.data.Partners[0].UID.String()
	for range 3 {
		s.submits(paths.PartnerNew, url.Values{"name": {cut(s.next(), 150)}})
		s.submits(partner+"/merchants/new", url.Values{"name": {cut(s.next(), 150)}})
	}
	s.submits(partner+"/rename", url.Values{"name": {`<script>ran()</script><b id=intruder>`}})
	s.submits(s.fill(paths.MerchantRename),
		url.Values{"name": {`"><img id=intruder onerror=ran()>`}})
}

// submits opens, fills and sends a form of the console as an admin.
func (s *injector) submits(path string, typed url.Values) {
	s.T.Helper()
	page := s.page(s.admin.Get(s.server.URL + path))
	form := page.Find("main form[method=post]").First()
	values := url.Values{}
	for _, field := range form.Find("input[type=hidden]").EachIter() {
		values.Add(field.AttrOr("name", ""), field.AttrOr("value", ""))
	}
	for name := range typed {
		values[name] = typed[name]
	}
	s.page(s.admin.PostForm(s.server.URL+form.AttrOr("action", path), values))
}

// page reads a response, which must be a page.
func (s *injector) page(answer *http.Response, err error) *goquery.Document {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := goquery.NewDocumentFromReader(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.T.Fatalf("%s answers %s, %v: %.500s", answer.Request.URL, answer.Status, err,
			page.Find("main").Text())
	}
	return page
}

// subscribes adds a subscription by the form, with payloads in its address, its header values
// and the reason, and requests a probe of it.
func (s *injector) subscribes(address string) {
	s.T.Helper()
	form := url.Values{
		"partner": {s.data.Partners[0].UID.String()}, "url": {address + "/hook?" + s.query()},
		"auth": {"hmac"}, "secret_mode": {"generate"}, "reason": {s.next()},
	}
	for i := range 12 {
		form.Add("header_key", fmt.Sprint(i+1))
		form.Add("header_name", fmt.Sprintf("x-said-%d", i))
		form.Add("header_value", ascii(s.next()))
	}
	s.submits(paths.SubscriptionNew, form)
	uid := s.find(`SELECT subscription_uid FROM subscriptions ORDER BY created_at DESC LIMIT 1`)
	var made struct{}
	s.JSON(&made, "subscription", "update", uid, "--reason", s.next(),
		"--header", "x-said-0: "+ascii(s.next()))
	s.Run("", "subscription", "probe", uid)
	s.JSON(&made, "subscription", "test", uid)
}

// query is a query string with the payloads that addresses may contain.
func (s *injector) query() string {
	said := []string{`<b/id=intruder>`}
	for range 8 {
		said = append(said, strings.NewReplacer(" ", "/", "#", "", `\`, "").Replace(ascii(s.next())))
	}
	return strings.Join(said, "&")
}

// ascii removes characters that an address or a header cannot contain.
func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
}

// happens causes events that are sent to the endpoints.
func (s *injector) happens() {
	s.T.Helper()
	application := "/sandbox/application/" + s.data.Loans[0].UID.String()
	for range 3 {
		s.sends(http.MethodPost, application+"/task", map[string]any{"title": s.next()})
	}
	for _, status := range []string{"Pend Clearance", "Approved"} {
		s.sends(http.MethodPost, application+"/status", map[string]any{"status": status})
	}
}

// arrives waits until all payloads of the other side are stored.
func (s *injector) arrives() {
	s.T.Helper()
	s.await(`SELECT count(*) >= 9 FROM attempts
		WHERE position('intruder'::bytea IN response_body) > 0`)
	s.await(`SELECT count(DISTINCT headers::text) >= 4 FROM attempts,
		jsonb_path_query(response_headers, '$[*]') AS headers WHERE headers::text ~ 'ran\(\)'`)
	s.await(`SELECT count(*) > 0 FROM attempts
		WHERE url LIKE 'https://127.0.0.1%' AND error LIKE '%<script>%'`)
	s.await(`SELECT count(*) > 0 FROM probes
		WHERE location || error || certificate_issuer ~ 'ran\(\)'`)
	s.await(`SELECT count(*) > 2 FROM email_attempts WHERE reply ~ '[<{=]'`)
	s.await(`SELECT count(*) > 40 FROM api_requests WHERE user_agent LIKE '%<%'`)
	s.await(`SELECT count(*) > 2 FROM certificate_files WHERE name ~ '[<=]'`)
	var in int
	err := s.db.Get(&in, `SELECT count(*) FROM unnest($1::text[]) AS line WHERE EXISTS (
		SELECT FROM applications WHERE left(line, 100) IN (borrower_first_name, borrower_last_name)
		                            OR line = project_name)`, pq.Array(s.lines))
	if err != nil || in < 60 {
		s.T.Errorf("%d payloads came in by the API, %v", in, err)
	}
}

// noEntry are texts that only the service itself writes and no outsider can choose today.
// Statements plant payloads there, so that they are known to be inert if outsiders can choose
// them one day. $1 holds the payloads.
var noEntry = map[string]string{
	"what an event says: ids, numbers and states": `
		UPDATE events SET body = convert_to(jsonb_build_object(%[1]s, %[1]s)::text, 'UTF8')`,
	"what the sender notes of an attempt": `
		UPDATE attempts SET note = %s, address = %[1]s, protocol = %[1]s`,
	"who asked, when the proxy is not trusted": `
		UPDATE api_requests SET address = %s, request_id = %[1]s WHERE user_agent LIKE '%%<%%'`,
	"the mail server's name, which is configured": `UPDATE email_attempts SET server = %s`,
	"who drew, a client's id":                     `UPDATE disbursements SET requested_by = %s`,
	"what the watch says of a subscription":       `UPDATE attention_items SET detail = %s`,
	"who did what": `
		INSERT INTO audit_log (at, actor, address, action, subject_kind, subject, reason)
		SELECT now(), line, line, line, 'partner', line, line FROM unnest($1::text[]) AS line`,
}

// plants puts payloads into those texts.
func (s *injector) plants() {
	s.T.Helper()
	const one = `($1::text[])[1 + floor(random() * cardinality($1::text[]))::int]`
	for what, statement := range noEntry {
		if strings.Contains(statement, "%") {
			statement = fmt.Sprintf(statement, one)
		}
		if _, err := s.db.Exec(statement, pq.Array(s.lines)); err != nil {
			s.T.Fatalf("planting %s: %v", what, err)
		}
	}
}
