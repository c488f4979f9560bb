package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"drawbridge/web/docs"
)

const settled = `{"application_id":"a","status":"FUNDING_SETTLED","timestamp":"t1"}`

func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// standard are the Standard Webhooks headers for a body sent at a given time.
func standard(secret, body string, at time.Time, more ...string) map[string]string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("evt." + stamp + "." + body))
	signature := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return map[string]string{
		"webhook-id": "evt", "webhook-timestamp": stamp,
		"webhook-signature": strings.Join(append(more, signature), " "),
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, secret, token, method, body string
		header                            map[string]string
		status                            int
		printed                           string
		standard                          bool
	}{
		{
			name: "by Standard Webhooks", standard: true, secret: "s", body: settled, status: 204,
			header: standard("s", settled, time.Now()), printed: "FUNDING_SETTLED",
		},
		{
			name: "by Standard Webhooks in an overlap", standard: true, secret: "s", body: settled,
			header: standard("s", settled, time.Now(), "v1,bmV3"), status: 204,
			printed: "FUNDING_SETTLED",
		},
		{
			name: "by Standard Webhooks, another body", standard: true, secret: "s",
			body: settled + " ", header: standard("s", settled, time.Now()), status: 401,
			printed: "refused",
		},
		{
			name: "by Standard Webhooks, played again", standard: true, secret: "s", body: settled,
			header: standard("s", settled, time.Now().Add(-6*time.Minute)), status: 401,
			printed: "refused",
		},
		{
			name: "the other signature alone", standard: true, secret: "s", body: settled,
			header: map[string]string{"x-hmac-signature": sign("s", settled)}, status: 401,
			printed: "refused",
		},
		{
			name: "genuine", secret: "s", body: settled, status: 204,
			header:  map[string]string{"x-hmac-signature": sign("s", settled)},
			printed: "t1 disbursement a \"FUNDING_SETTLED\"\n",
		},
		{
			name: "by the secret before a rotation", secret: "s", body: settled, status: 204,
			header: map[string]string{
				"x-hmac-signature": sign("new", settled), "x-hmac-signature-previous": sign("s", settled),
			}, printed: "FUNDING_SETTLED",
		},
		{
			name: "another body", secret: "s", body: settled + " ", status: 401,
			header: map[string]string{"x-hmac-signature": sign("s", settled)}, printed: "refused",
		},
		{name: "no signature", secret: "s", body: settled, status: 401, printed: "refused"},
		{
			name: "bearer", token: "t", body: settled, status: 204,
			header: map[string]string{"authorization": "Bearer t"}, printed: "FUNDING_SETTLED",
		},
		{
			name: "another token", token: "t", body: settled, status: 401,
			header: map[string]string{"authorization": "Bearer T"}, printed: "refused",
		},
		{name: "no authentication agreed", body: settled, status: 204, printed: "FUNDING_SETTLED"},
		{
			name: "the kind by header", body: settled, status: 204,
			header:  map[string]string{"x-drawbridge-event": "disbursement.funding.settled"},
			printed: "disbursement.funding.settled",
		},
		{
			name: "a test event", body: settled, status: 204,
			header: map[string]string{"x-drawbridge-test": "true"}, printed: "(test)",
		},
		{name: "not JSON", body: "hello", status: 400, printed: "not an event"},
		{name: "not an event", body: "{}", status: 400, printed: "not an event"},
		{name: "too large", body: strings.Repeat(" ", maxBody+1), status: 413},
		{name: "another method", method: http.MethodGet, status: 405},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			receiver := NewReceiver(&out)
			receiver.Secret, receiver.Token = test.secret, test.token
			receiver.Standard = test.standard
			method := test.method
			if method == "" {
				method = http.MethodPost
			}
			request := httptest.NewRequest(method, "/webhooks", strings.NewReader(test.body))
			for name, value := range test.header {
				request.Header.Set(name, value)
			}
			recorder := httptest.NewRecorder()
			receiver.ServeHTTP(recorder, request)
			if recorder.Code != test.status {
				t.Errorf("answered %d, want %d", recorder.Code, test.status)
			}
			if !strings.Contains(out.String(), test.printed) {
				t.Errorf("printed %q, want %q", out.String(), test.printed)
			}
		})
	}
}

// The receiver passes the vectors that are published for every receiver.
func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	vectors, err := docs.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, vector := range vectors {
		got := signed(vector.Secret, []byte(vector.Body), vector.Signatures...)
		if got != vector.Genuine {
			t.Errorf("%s: genuine = %v, want %v", vector.Name, got, vector.Genuine)
		}
	}
}

func TestACopyIsPrintedAsOne(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	receiver := NewReceiver(&out)
	bodies := []string{
		settled, settled,
		strings.Replace(settled, `"t1"`, `"t2"`, 1),
		strings.Replace(settled, `"a"`, `"b"`, 1),
		strings.Replace(settled, "SETTLED", "REQUESTED", 1),
	}
	for _, body := range bodies {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		recorder := httptest.NewRecorder()
		if receiver.ServeHTTP(recorder, request); recorder.Code != http.StatusNoContent {
			t.Errorf("%s answered %d; a copy is a success too", body, recorder.Code)
		}
	}
	if n := strings.Count(out.String(), "duplicate"); n != 1 {
		t.Errorf("%d duplicates, want 1:\n%s", n, out.String())
	}
}

// Webhooks may arrive in another order than things happened: an older state does not replace a
// newer one. Each subject has its own order.
func TestOlderEventsAreIgnored(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	receiver := NewReceiver(&out)
	for _, event := range []struct{ subject, sequence, status, want string }{
		{"disbursement/7", "2", "FUNDING_SETTLED", `"FUNDING_SETTLED" #2` + "\n"},
		{"disbursement/7", "1", "FUNDING_REQUESTED", `"FUNDING_REQUESTED" #1 (older, ignored)` + "\n"},
		{"disbursement/7", "2", "FUNDING_SETTLED", `"FUNDING_SETTLED" #2 (duplicate, ignored)` + "\n"},
		{"disbursement/8", "1", "FUNDING_PROCESSING", `"FUNDING_PROCESSING" #1` + "\n"},
		{"disbursement/7", "10", "FUNDING_RETURNED", `"FUNDING_RETURNED" #10` + "\n"},
		{"application/a", "3", "DOCUMENT_SENT", `"DOCUMENT_SENT" #3` + "\n"},
		{"application/a", "2", "Approved", `"Approved" #2` + "\n"},
		{"application/a", "1", "Hard Pull", `"Hard Pull" #1 (older, ignored)` + "\n"},
		{"application/a", "5", "Terms Updated", `"Terms Updated" #5` + "\n"},
		{"application/a", "4", "Loan Amount Updated", `"Loan Amount Updated" #4 (older, ignored)` + "\n"},
		{"application/a", "6", "DOCUMENT_SIGNED", `"DOCUMENT_SIGNED" #6` + "\n"},
		{"", "", "Closed", `"Closed"` + "\n"},
	} {
		request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(
			`{"application_id": "a", "status": "`+event.status+`", "timestamp": "t"}`))
		request.Header.Set("x-drawbridge-subject", event.subject)
		request.Header.Set("x-drawbridge-sequence", event.sequence)
		out.Reset()
		answer := httptest.NewRecorder()
		receiver.ServeHTTP(answer, request)
		if answer.Code != http.StatusNoContent || !strings.HasSuffix(out.String(), event.want) {
			t.Errorf("%+v is answered with %d and printed as %s", event, answer.Code, out.String())
		}
	}
}

// TestMemoryOfSubjectsIsBounded fills the memory of sequences and one more.
func TestMemoryOfSubjectsIsBounded(t *testing.T) {
	t.Parallel()
	receiver := NewReceiver(io.Discard)
	for i := range remembered + 1 {
		if !receiver.takeOver(strconv.Itoa(i), 2) || receiver.takeOver(strconv.Itoa(i), 2) {
			t.Fatalf("subject %d", i)
		}
	}
	if !receiver.takeOver("0", 1) || len(receiver.last) != remembered {
		t.Errorf("%d subjects are kept", len(receiver.last))
	}
}

func TestMemoryOfDuplicatesIsBounded(t *testing.T) {
	t.Parallel()
	receiver := NewReceiver(io.Discard)
	for i := range remembered + 10 {
		receiver.remember(identity{timestamp: strconv.Itoa(i)})
	}
	if len(receiver.seen) != remembered || len(receiver.order) != remembered {
		t.Errorf("remembers %d and %d, want %d", len(receiver.seen), len(receiver.order), remembered)
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	title := "Proof of income"
	cases := []struct {
		event Event
		want  string
	}{
		{Event{Status: "Pending", TaskTitle: &title}, "task"},
		{Event{Status: "DOCUMENT_SIGNED"}, "document"},
		{Event{Status: "FUNDING_PROCESSING"}, "disbursement"},
		{Event{Status: "Loan Amount Updated"}, "amount"},
		{Event{Status: "Terms Updated"}, "offer"},
		{Event{Status: "Approved"}, "application"},
	}
	for _, test := range cases {
		if got := test.event.Family(); got != test.want {
			t.Errorf("%s is %s, want %s", test.event.Status, got, test.want)
		}
	}
}

// nothing is an empty environment.
func nothing(string) string { return "" }

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	cases := []struct {
		args []string
		says string
	}{
		{nil, "run or receive"},
		{[]string{"fly"}, `"fly"`},
		{[]string{"run"}, "--base-url is required"},
		{[]string{"run", "--base-url", "http://x", "--client-id", "i"}, "--client-secret is required"},
		{[]string{"run", "--amuont", "1"}, "amuont"},
		{[]string{"receive", "extra"}, `"extra" is not a flag`},
		{[]string{"receive", "--tls-cert", "x"}, "--tls-key"},
	}
	for _, test := range cases {
		err := command(t.Context(), test.args, nothing, io.Discard, io.Discard)
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: %v, want wrong usage that says %q", test.args, err, test.says)
		}
	}
	err := command(t.Context(), []string{"run", "--help"}, nothing, io.Discard, io.Discard)
	if !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

// The receive command listens, accepts a delivery over a socket, and ends with its
// context.
func TestReceiveCommand(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	environment := func(name string) string {
		return map[string]string{"PARTNER_SIGNING_SECRET": "s"}[name]
	}
	go func() {
		args := []string{"receive", "--listen", "127.0.0.1:0"}
		ended <- command(ctx, args, environment, writer, io.Discard)
	}()
	lines := bufio.NewScanner(reader)
	if !lines.Scan() {
		t.Fatal("the command printed nothing")
	}
	address, found := strings.CutPrefix(lines.Text(), "listening on ")
	if !found {
		t.Fatalf("printed %q", lines.Text())
	}
	answered := make(chan int, 1)
	go func() {
		request, _ := http.NewRequest(http.MethodPost, address, strings.NewReader(settled))
		request.Header.Set("x-hmac-signature", sign("s", settled))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	if !lines.Scan() || !strings.Contains(lines.Text(), "FUNDING_SETTLED") {
		t.Errorf("printed %q", lines.Text())
	}
	if status := <-answered; status != http.StatusNoContent {
		t.Errorf("answered %d", status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
