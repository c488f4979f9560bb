package service

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
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
)

func checkSigned(t *testing.T, request e2etest.RawRequest, secret string) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(request.Body)
	signature, lower := request.Value("x-hmac-signature")
	if !lower || signature != hex.EncodeToString(mac.Sum(nil)) {
		t.Errorf("the signature is %q", signature)
	}
	if request.Line != "POST /hook HTTP/1.1" {
		t.Errorf("the request line is %q", request.Line)
	}
	seen := map[string]bool{}
	for _, line := range request.Header {
		name, _, _ := strings.Cut(line, ":")
		if name != strings.ToLower(name) || seen[name] {
			t.Errorf("the header %q is not lower case, or came twice", name)
		}
		seen[name] = true
	}
}

func TestDrawReachesThePartner(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "204 No Content")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	s := w.Serve()
	// The roots were read at the start, not when they are first needed.
	_, others := e2etest.SelfSigned(t)
	if err := os.Rename(others, e.CAFile); err != nil {
		t.Fatal(err)
	}
	subscription := w.Subscribe(data, e.URL, "--auth", "hmac")
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	request := e.Next(t)
	checkSigned(t, request, *subscription.Secret)
	var body map[string]any
	if err := json.Unmarshal(request.Body, &body); err != nil {
		t.Fatal(err)
	}
	if len(body) != 3 || body["status"] != "FUNDING_REQUESTED" ||
		body["application_id"] != data.Loans[0].UID.String() {
		t.Errorf("the body is %s", request.Body)
	}
	uid, _ := request.Value("x-drawbridge-delivery")
	w.WaitForState(uid, "delivered")
	var resent struct {
		Resent []string `json:"resent"`
	}
	w.JSON(&resent, "delivery", "resend", uid, "--reason", "partner asked")
	if got := w.Audited(t, "delivery", uid); got != "resend" {
		t.Errorf("the audit log says %q of the delivery", got)
	}
	again := e.Next(t)
	if !bytes.Equal(again.Body, request.Body) {
		t.Errorf("the re-send's body is %s, the first was %s", again.Body, request.Body)
	}
	checkSigned(t, again, *subscription.Secret)
	if got, _ := again.Value("x-drawbridge-delivery"); got != resent.Resent[0] {
		t.Errorf("the re-send arrived as %s, the command said %v", got, resent.Resent)
	}
	if status := s.Stop(); status != 0 {
		t.Errorf("the service ended with %d", status)
	}
}

func TestThreeAttemptsAndNoMore(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "503 Service Unavailable")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	s := w.Serve()
	w.Subscribe(data, e.URL)
	e2etest.RequestDraw(t, s.URL, data, "first_regular")
	var first e2etest.RawRequest
	for number := 1; number <= 3; number++ {
		request := e.Next(t)
		if number == 1 {
			first = request
		}
		if got, _ := request.Value("x-drawbridge-attempt"); got != strconv.Itoa(number) ||
			!bytes.Equal(request.Body, first.Body) {
			t.Errorf("attempt %d came as %s with %s", number, got, request.Body)
		}
	}
	uid, _ := first.Value("x-drawbridge-delivery")
	detail := w.WaitForState(uid, "failed")
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
	case request := <-e.Requests:
		t.Errorf("a fourth attempt came: %v", request.Header)
	case <-time.After(time.Second):
	}
}

func TestKilledBetweenCommitAndDelivery(t *testing.T) {
	t.Parallel()
	w, e := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = e.CAFile
	data := w.DemoData()
	w.Subscribe(data, e.URL)
	// Without the worker's role the draw commits and nothing is sent.
	s := w.Serve("--roles", "api")
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	s.Kill()
	if len(e.Requests) > 0 {
		t.Fatal("the event was sent before the crash")
	}
	w.Serve("--roles", "worker")
	if request := e.Next(t); !bytes.Contains(request.Body, []byte("FUNDING_REQUESTED")) {
		t.Errorf("after the restart came %s", request.Body)
	}
}

func TestStopFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	// If the tests run under nohup, the program would inherit that SIGHUP is ignored. A signal that
	// is caught here is not ignored in the child.
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangUps) })
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(end.String(), func(t *testing.T) {
			t.Parallel()
			stopInFlight(t, end)
		})
	}
}

func stopInFlight(t *testing.T, end syscall.Signal) {
	t.Helper()
	w := e2etest.New(t)
	data := w.DemoData()
	s := w.Serve()
	uploading, upload := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		s.URL+"/api/v2/loan/"+data.Loans[5].UID.String()+"/request-draw", uploading)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("x-service-client-id", data.Partners[0].Clients[0].ID)
	request.Header.Set("x-service-client-secret", data.Partners[0].Clients[0].Secret)
	request.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	// The body is sent once the handler reads it: then the request is in flight.
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
	go func() { stopped <- s.StopBy(end) }()
	// The listener closes first; the request in flight goes on.
	for {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
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
		t.Errorf("the service ended with %d and logged %s", status, s.Logged())
	}
}

func TestSlowClientsAreCutOff(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	s := w.Serve("--roles", "api")
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
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
			s := e2etest.New(t).Serve("--roles", role)
			for path, holds := range map[string]string{
				"/healthz": "ok", "/readyz": "ready", "/metrics": "go_goroutines",
			} {
				response, err := http.Get(s.URL + path)
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

func (s *mailSession) Reset() {}

func (s *mailSession) Logout() error { return nil }

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
	w, m := e2etest.New(t), newMailServer(t)
	w.Env["DRAWBRIDGE_SMTP_URL"] = "smtp://" + m.address
	data := w.DemoData()
	s := w.Serve()
	// The demo loans were accepted when they were made; each sends one welcome e-mail, and
	// the one that left Approved also a stipulation e-mail.
	for range len(data.Loans) + 1 {
		text := waittest.Receive(t, "a welcome mail", m.mails)
		message, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		to, err := message.Header.AddressList("To")
		if err != nil || to[0].Address != "bea@borrower.example" {
			t.Errorf("a mail went to %v, %v", to, err)
		}
	}
	body := fmt.Sprintf(`{"thrive_application_uid":%q,"selected_product_uid":%q}`,
		data.Applications[0].UID, data.Products[0].UID)
	for range 3 {
		status := e2etest.Call(t, data, http.MethodPut, s.URL+"/api/v2/application/accept-offer", body)
		if status != http.StatusOK {
			t.Fatalf("accept-offer answered %d", status)
		}
	}
	waittest.Receive(t, "the welcome mail", m.mails)
	select {
	case text := <-m.mails:
		t.Errorf("a second mail arrived: %s", text)
	case <-time.After(time.Second):
	}
}
