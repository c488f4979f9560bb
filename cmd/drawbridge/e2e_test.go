package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// subscribe lets the first demo partner's events go to the endpoint.
func (w *world) subscribe(data demoJSON, e *endpoint, flags ...string) subscriptionJSON {
	w.t.Helper()
	var made subscriptionJSON
	w.json(&made, append([]string{
		"subscription", "create", "--partner", data.Partners[0].UID.String(),
		"--url", e.url, "--event", "all",
	}, flags...)...)
	return made
}

// draw requests a draw on the demo loan of a stage and returns the status.
func draw(t *testing.T, base string, data demoJSON, stage string) int {
	t.Helper()
	at := slices.IndexFunc(data.Loans, func(l demoLoan) bool { return l.Stage == stage })
	if at < 0 {
		t.Fatalf("the demo data has no loan %s", stage)
	}
	path := "/api/v2/loan/" + data.Loans[at].UID.String() + "/request-draw"
	return call(t, data, http.MethodPost, base+path, "")
}

// call sends a request with the first demo client's credentials and returns the
// status of the answer.
func call(t *testing.T, data demoJSON, method, url, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	client := data.Partners[0].Clients[0]
	request.Header.Set("x-service-client-id", client.ID)
	request.Header.Set("x-service-client-secret", client.Secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func checkSigned(t *testing.T, request wire, secret string) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(request.body)
	signature, lower := request.value("x-hmac-signature")
	if !lower || signature != hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("the signature is %q", signature)
	}
	if request.line != "POST /hook HTTP/1.1" {
		t.Errorf("the request line is %q", request.line)
	}
	seen := map[string]bool{}
	for _, line := range request.header {
		name, _, _ := strings.Cut(line, ":")
		if name != strings.ToLower(name) || seen[name] {
			t.Errorf("the header %q is not lower case, or came twice", name)
		}
		seen[name] = true
	}
}

func TestDrawReachesThePartner(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "204 No Content")
	w.vars["SSL_CERT_FILE"] = e.caFile
	data := w.demoData()
	s := w.serve()
	subscription := w.subscribe(data, e, "--auth", "hmac")
	if status := draw(t, s.url, data, "first_regular"); status != http.StatusOK {
		t.Fatalf("the draw answered %d", status)
	}
	request := e.next(t)
	checkSigned(t, request, *subscription.Secret)
	var body map[string]any
	if err := json.Unmarshal(request.body, &body); err != nil {
		t.Fatal(err)
	}
	if len(body) != 3 || body["status"] != "FUNDING_REQUESTED" ||
		body["application_id"] != data.Loans[0].UID.String() {
		t.Errorf("the body is %s", request.body)
	}
	uid, _ := request.value("x-drawbridge-delivery")
	w.waitForState(uid, "delivered")
	var resent struct {
		Resent []string `json:"resent"`
	}
	w.json(&resent, "delivery", "resend", uid, "--reason", "partner asked")
	if got := w.audited(t, "delivery", uid); got != "resend" {
		t.Errorf("the audit log says %q of the delivery", got)
	}
	again := e.next(t)
	if !bytes.Equal(again.body, request.body) {
		t.Errorf("the re-send's body is %s, the first was %s", again.body, request.body)
	}
	checkSigned(t, again, *subscription.Secret)
	if got, _ := again.value("x-drawbridge-delivery"); got != resent.Resent[0] {
		t.Errorf("the re-send arrived as %s, the command said %v", got, resent.Resent)
	}
	if status := s.stop(); status != 0 {
		t.Errorf("the service ended with %d", status)
	}
}

// waitForState polls the delivery until its state is the wanted one.
func (w *world) waitForState(uid, state string) detailJSON {
	w.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var detail detailJSON
		w.json(&detail, "delivery", "show", uid)
		if string(detail.State) == state {
			return detail
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("delivery %s is %s, not %s", uid, detail.State, state)
		}
	}
}

func TestThreeAttemptsAndNoMore(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "503 Service Unavailable")
	w.vars["SSL_CERT_FILE"] = e.caFile
	data := w.demoData()
	s := w.serve()
	w.subscribe(data, e)
	draw(t, s.url, data, "first_regular")
	var first wire
	for number := 1; number <= 3; number++ {
		request := e.next(t)
		if number == 1 {
			first = request
		}
		if got, _ := request.value("x-drawbridge-attempt"); got != strconv.Itoa(number) ||
			!bytes.Equal(request.body, first.body) {
			t.Errorf("attempt %d came as %s with %s", number, got, request.body)
		}
	}
	uid, _ := first.value("x-drawbridge-delivery")
	detail := w.waitForState(uid, "failed")
	if len(detail.Attempts) != 3 || detail.AttemptCount != 3 {
		t.Errorf("the log holds %d attempts", len(detail.Attempts))
	}
	for _, attempt := range detail.Attempts {
		if attempt.HTTPStatus == nil || *attempt.HTTPStatus != 503 ||
			attempt.ErrorClass == nil || *attempt.ErrorClass != "http_5xx" {
			t.Errorf("attempt %+v", attempt)
		}
	}
	select {
	case request := <-e.requests:
		t.Errorf("a fourth attempt came: %v", request.header)
	case <-time.After(time.Second):
	}
}

func TestKilledBetweenCommitAndDelivery(t *testing.T) {
	t.Parallel()
	w, e := newWorld(t), newEndpoint(t, "200 OK")
	w.vars["SSL_CERT_FILE"] = e.caFile
	data := w.demoData()
	w.subscribe(data, e)
	// Without the worker's role the draw commits and nothing is sent.
	s := w.serve("--roles", "api")
	if status := draw(t, s.url, data, "first_regular"); status != http.StatusOK {
		t.Fatalf("the draw answered %d", status)
	}
	s.kill()
	if len(e.requests) > 0 {
		t.Fatal("the event was sent before the crash")
	}
	w.serve("--roles", "worker")
	if request := e.next(t); !bytes.Contains(request.body, []byte("FUNDING_REQUESTED")) {
		t.Errorf("after the restart came %s", request.body)
	}
}

func TestStopFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.demoData()
	s := w.serve()
	uploading, upload := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		s.url+"/api/v2/loan/"+data.Loans[5].UID.String()+"/request-draw", uploading)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-service-client-id", data.Partners[0].Clients[0].ID)
	request.Header.Set("x-service-client-secret", data.Partners[0].Clients[0].Secret)
	request.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	// The body is sent once the handler asks for it: then it is in flight.
	request.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: 30 * time.Second}
	defer transport.CloseIdleConnections()
	answered := make(chan int, 1)
	go func() {
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			answered <- 0
			return
		}
		defer response.Body.Close()
		answered <- response.StatusCode
	}()
	const begun = "--b\r\ncontent-disposition: form-data; name=metadata\r\n\r\n"
	if _, err := io.WriteString(upload, begun); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan int, 1)
	go func() { stopped <- s.stop() }()
	// The listener closes first; the request under way goes on.
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	if _, err := io.WriteString(upload, `{"projectName":"x"}`+"\r\n--b--\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = upload.Close()
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the request in flight was answered %d", status)
	}
	if status := <-stopped; status != 0 {
		t.Errorf("the service ended with %d and logged %s", status, s.logged())
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.serve("--roles", "api")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: "); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(25 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("a head that never ended was not cut off: %v", err)
	}
}

func TestHealthReadinessAndMetricsOfEveryRole(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"api", "console", "worker"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newWorld(t).serve("--roles", role)
			for path, holds := range map[string]string{
				"/healthz": "ok", "/readyz": "ready", "/metrics": "go_goroutines",
			} {
				response, err := http.Get(s.url + path)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if err != nil || response.StatusCode != http.StatusOK ||
					!strings.Contains(string(body), holds) {
					t.Errorf("%s answered %d %s", path, response.StatusCode, body)
				}
			}
		})
	}
}

// mailServer is a real SMTP server on a socket that keeps what it accepts.
type mailServer struct {
	address string
	mails   chan string
}

type mailSession struct{ mails chan string }

func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s *mailSession) Reset()                               {}
func (s *mailSession) Logout() error                        { return nil }

// Data keeps a message.
func (s *mailSession) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	s.mails <- string(text)
	return err
}

func newMailServer(t *testing.T) *mailServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mailServer{address: listener.Addr().String(), mails: make(chan string, 100)}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &mailSession{m.mails}, nil
	}))
	server.Domain = "mail.example"
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return m
}

func TestAcceptOfferWelcomesTheBorrower(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newMailServer(t)
	w.vars["DRAWBRIDGE_SMTP_URL"] = "smtp://" + m.address
	data := w.demoData()
	s := w.serve()
	// The demo loans were accepted while they were made; each welcomes once, and
	// the one that left Approved asks for a stipulation too.
	for range len(data.Loans) + 1 {
		select {
		case text := <-m.mails:
			message, err := mail.ReadMessage(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			to, err := message.Header.AddressList("To")
			if err != nil || to[0].Address != "bea@borrower.example" {
				t.Errorf("a mail went to %v, %v", to, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("a welcome mail is missing; the service logged %s", s.logged())
		}
	}
	body := fmt.Sprintf(`{"thrive_application_uid":%q,"selected_product_uid":%q}`,
		data.Applications[0].UID, data.Products[0].UID)
	for range 3 {
		status := call(t, data, http.MethodPut, s.url+"/api/v2/application/accept-offer", body)
		if status != http.StatusOK {
			t.Fatalf("accept-offer answered %d", status)
		}
	}
	select {
	case <-m.mails:
	case <-time.After(time.Minute):
		t.Fatal("no welcome mail arrived")
	}
	select {
	case text := <-m.mails:
		t.Errorf("a second mail arrived: %s", text)
	case <-time.After(time.Second):
	}
}
