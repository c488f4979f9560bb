package web_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// TestRefusalsNeedNoBody sends no body, because the client expects "100 Continue", like
// curl, or because it is slow. A refusal that needs no body must come at once, without "100
// Continue". An unused key changes nothing.
func TestRefusalsNeedNoBody(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	own := fmt.Sprintf("x-service-client-id: %s\r\nx-service-client-secret: %s\r\n",
		s.Home.ClientID, s.Home.Secret)
	const anyLoan = "/v2/loan/0199e6a2-7c4e-7d6b-9a54-3f0c8c1f2b7d/request-draw"
	const gzip = "content-encoding: gzip\r\n"
	upload := own + "content-type: multipart/form-data\r\n"
	const unused = "a call that makes no use of it"
	tests := []struct {
		name, path, head string
		length, status   int
	}{
		{"no credentials", "/v2/application", "content-type: application/json\r\n", 100, 401},
		{"no such path", "/v2/nothing", own, 100, 404},
		{"another type", "/v2/application", own + "content-type: text/plain\r\n", 100, 415},
		{"too long", "/v2/application", own + "content-type: application/json\r\n", 2 << 20, 413},
		{"malformed uid", "/v2/loan/x/request-draw", upload, 100, 400},
		{"an upload of another type", anyLoan, own + "content-type: text/plain\r\n", 100, 415},
		{"compressed", "/v2/application", own + "content-type: application/json\r\n" + gzip, 100, 415},
		{"an upload compressed", anyLoan, upload + gzip, 100, 415},
		{"an upload too long", anyLoan, upload, 1 << 30, 413},
		{"an upload under a malformed key", anyLoan, upload + "idempotency-key: ü\r\n", 100, 400},
		{
			"too long for " + unused,
			"/v2/deliveries/0199e6a2-7c4e-7d6b-9a54-3f0c8c1f2b7d/resend",
			own + "idempotency-key: other\r\n", 2 << 20, 413,
		},
		{"malformed uid of " + unused, "/v2/deliveries/x/resend", own, 100, 400},
		{
			"malformed uid under a key of " + unused, "/v2/deliveries/x/resend",
			own + "idempotency-key: another\r\n", 100, 400,
		},
	}
	says := map[string]string{"an upload too long": "the request body is larger than 51 MiB"}
	forms := []struct{ name, head string }{
		{"slow", ""},
		{"asks first", "expect: 100-continue\r\n"},
		{"under a key", "idempotency-key: fresh\r\n"},
	}
	for i := range len(forms) * len(tests) {
		test, form := tests[i/len(forms)], forms[i%len(forms)]
		if strings.Contains(test.head, "idempotency-key") && form.name == "under a key" {
			continue
		}
		t.Run(test.name+"/"+form.name, func(t *testing.T) {
			t.Parallel()
			address := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), apptest.BasePath)
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			_, err = fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nhost: %s\r\n%s"+
				"content-length: %d\r\n%s\r\n",
				apptest.BasePath, test.path, address, form.head, test.length, test.head)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(waittest.Patience)); err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(conn)
			want := func(status int) {
				t.Helper()
				answer, err := http.ReadResponse(reader, nil)
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				defer answer.Body.Close()
				body, err := io.ReadAll(answer.Body)
				if err != nil || answer.StatusCode != status ||
					!bytes.Contains(body, []byte(says[test.name])) {
					t.Errorf("answered %s, want %d: %s (%v)", answer.Status, status, body, err)
				}
			}
			want(test.status)
			if form.name == "asks first" || test.length > 100 {
				return
			}
			// The body comes late, followed by the next request.
			_, err = fmt.Fprintf(conn, "%0*dGET %s/v2/nothing HTTP/1.1\r\nhost: %s\r\n%s\r\n",
				test.length, 0, apptest.BasePath, address, own)
			if err != nil {
				t.Fatal(err)
			}
			want(http.StatusNotFound)
		})
	}
}

// TestRefusalsAreSeenWhileSending sends bodies larger than the connection's buffers that
// are refused before their end, and expects the answer rather than a broken connection.
func TestRefusalsAreSeenWhileSending(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	const json, loanPath = "application/json", "/v2/loan/0199e6a2-7c4e-7d6b-9a54-3f0c8c1f2b7d/"
	form := "multipart/form-data; boundary=x"
	for name, test := range map[string]struct {
		path, media, secret string
		size, length        int64
		status              int
	}{
		"JSON":                {"/v2/application", json, s.Home.Secret, 30 << 20, 30 << 20, 413},
		"JSON in chunks":      {"/v2/application", json, s.Home.Secret, 30 << 20, -1, 413},
		"a form":              {loanPath + "request-draw", form, s.Home.Secret, 60 << 20, 60 << 20, 413},
		"a form in chunks":    {loanPath + "request-draw", form, s.Home.Secret, 60 << 20, -1, 400},
		"without credentials": {loanPath + "request-draw", form, "x", 20 << 20, 20 << 20, 401},
		"no such path":        {"/v2/nothing", json, s.Home.Secret, 20 << 20, -1, 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := io.LimitReader(zeros{}, test.size)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+test.path, body)
			if err != nil {
				t.Fatal(err)
			}
			request.ContentLength = test.length
			request.Header.Set("Content-Type", test.media)
			request.Header.Set("x-service-client-id", s.Home.ClientID)
			request.Header.Set("x-service-client-secret", test.secret)
			conn, err := net.Dial("tcp", request.URL.Host)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			// The client reads the answer only after sending everything.
			if err := request.Write(conn); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if text, err := io.ReadAll(answer.Body); answer.StatusCode != test.status || err != nil {
				t.Errorf("answered %s, want %d: %s (%v)", answer.Status, test.status, text, err)
			}
		})
	}
}

// TestBrokenBodiesEndTheConnection refuses a request whose body cannot be read to its end:
// what follows it must not be parsed as another request.
func TestBrokenBodiesEndTheConnection(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t)
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), apptest.BasePath)
	for name, body := range map[string]string{
		"no size of a chunk": "zz\r\n", "a trailer that is none": "0\r\nno trailer\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			_, err = fmt.Fprintf(conn, "POST %s/v2/nothing HTTP/1.1\r\nhost: %s\r\n"+
				"transfer-encoding: chunked\r\n\r\n%sGET /healthz HTTP/1.1\r\nhost: %s\r\n\r\n",
				apptest.BasePath, address, body, address)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			answers, err := io.ReadAll(conn)
			if ended, ok := errors.AsType[net.Error](err); ok && ended.Timeout() {
				t.Error("the connection goes on")
			}
			if got := strings.Count(string(answers), "HTTP/1.1 "); got > 1 {
				t.Errorf("%d calls were answered: %s", got, answers)
			}
		})
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(data []byte) (int, error) {
	clear(data)
	return len(data), nil
}

// TestWrongCredentialsAreBounded tries wrong credentials from an address until it must wait,
// whether or not the id is used there. Credentials accepted from there before are not limited.
func TestWrongCredentialsAreBounded(t *testing.T) {
	t.Parallel()
	for name, idOf := range map[string]func(known string) string{
		"an invented id": func(string) string { return "dbc_x" },
		"a known id":     func(known string) string { return known },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apptest.NewServer(t).Furnish()
			uid := s.Create()
			ask := func(id, secret string) apptest.Answer {
				answer, err := s.Try(apptest.Call{
					Method: http.MethodGet, Path: "/v2/application/" + uid.String(), Anonymous: true,
					Header: map[string]string{
						"x-service-client-id": id, "x-service-client-secret": secret,
					},
				})
				if err != nil {
					t.Error(err)
				}
				return answer
			}
			if answer := ask(s.Home.ClientID, s.Home.Secret); answer.Status != http.StatusOK {
				t.Fatalf("answered %s", answer.Raw)
			}
			tryUntilBounded(t, func() apptest.Answer { return ask(idOf(s.Home.ClientID), "x") })
			if answer := ask(s.Home.ClientID, s.Home.Secret); answer.Status != http.StatusOK {
				t.Errorf("a client that was let in before is answered %s", answer.Raw)
			}
			s.InTx(func(tx *postgres.Tx) error {
				return s.Partners.RevokeClient(t.Context(), tx, s.Home.ClientID)
			})
			tryUntilRefused(t, func() apptest.Answer { return ask(s.Home.ClientID, s.Home.Secret) })
		})
	}
}

// tryUntilRefused sends revoked credentials from an address with too many wrong ones.
func tryUntilRefused(t *testing.T, try func() apptest.Answer) {
	t.Helper()
	for range 1000 {
		if answer := try(); answer.Status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("credentials that were revoked are looked up without a bound")
}

// tryUntilBounded sends wrong credentials until the limit refuses them.
func tryUntilBounded(t *testing.T, try func() apptest.Answer) {
	t.Helper()
	// Send several at once: a slow sender's allowance is restored as fast as it is used.
	var lookedUp, bounded atomic.Int64
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for bounded.Load() == 0 && lookedUp.Load() < 20_000 && !t.Failed() {
				switch answer := try(); {
				case answer.Status == http.StatusUnauthorized:
					lookedUp.Add(1)
				case answer.Status != http.StatusTooManyRequests:
					t.Errorf("answered %s", answer.Raw)
				case answer.Header.Get("Retry-After") == "":
					t.Error("it does not say when to try again")
				default:
					bounded.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if lookedUp.Load() < 600 || bounded.Load() == 0 {
		t.Errorf("%d tries were looked up, want 600 and those that are allowed meanwhile",
			lookedUp.Load())
	}
}

// Probes also use HEAD.
func TestProbesByHead(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		answer, err := http.Head(strings.TrimSuffix(s.URL, apptest.BasePath) + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("HEAD %s is answered %s", path, answer.Status)
		}
	}
}

// TestCallsBehindALockedApplication lets one client's requests wait for an application
// until the queue is full. The next one is told when to retry, other clients are not
// affected, and the decision runs only once.
func TestCallsBehindALockedApplication(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t, "DRAWBRIDGE_DATABASE_TIMEOUT", "1m",
		"DRAWBRIDGE_ROLES", "api,console").Furnish()
	uid, other := s.Create(), s.NewAccount("Other")
	theirs := s.CreateAs(other)
	tx := pgtest.Begin(t, s.DB, `SELECT FROM applications WHERE application_uid = $1 FOR UPDATE`, uid)
	decide := apptest.Call{
		Method: http.MethodPost, Path: "/v2/application/create-run-decision",
		JSON: map[string]any{"thrive_application_uid": uid},
	}
	statuses := make(chan int, 200)
	calls := 0
	// If filling the queue takes long, the queue gets shorter and is full sooner.
	for ; s.Admission.Refused() == 0; calls++ {
		before := s.Webhooks.Gate.InFlight() + s.Admission.Waiting()
		go func() {
			answer, err := s.Try(decide)
			if err != nil {
				t.Error(err)
			}
			statuses <- answer.Status
		}()
		waittest.Until(t, "the call has come", func() bool {
			return s.Webhooks.Gate.InFlight()+s.Admission.Waiting() > before || s.Admission.Refused() > 0
		})
	}
	if calls <= 64 {
		t.Errorf("the line is full after %d calls", calls)
	}
	refused := s.Do(decide)
	if refused.Status != http.StatusServiceUnavailable || refused.Code() != "UNAVAILABLE" ||
		refused.Header.Get("Retry-After") != "1" {
		t.Errorf("a call too many is answered %s with Retry-After %q",
			refused.Raw, refused.Header.Get("Retry-After"))
	}
	for range 20 {
		answer := s.Do(apptest.Call{
			Method: http.MethodGet, Path: "/v2/application/" + theirs.String(), As: &other,
		})
		if answer.Status != http.StatusOK {
			t.Errorf("another client is answered %s", answer.Raw)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/console/sign-in", "/docs"} {
		answer, err := http.Get(strings.TrimSuffix(s.URL, apptest.BasePath) + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %s", path, answer.Status)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	found := map[int]int{}
	for range calls {
		found[<-statuses]++
	}
	late := found[http.StatusConflict] + found[http.StatusTooManyRequests] // decided, or over its rate
	if found[http.StatusOK] != 1 || found[http.StatusServiceUnavailable] != 1 || late != calls-2 {
		t.Errorf("of %d calls so many were answered with each status: %v", calls, found)
	}
}

// TestSlowBodiesKeepNobodyOut sends more requests than are processed at a time, all waiting
// for the rest of their bodies: others must not wait for them.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const slow = 30
	s := apptest.NewServer(t).Furnish()
	uid, slowOne := s.Create(), s.NewAccount("Slow")
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), apptest.BasePath)
	for i := range slow {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		as := []apptest.Account{s.Home, slowOne}[i%2]
		_, err = fmt.Fprintf(conn, "POST %s/v2/application HTTP/1.1\r\nhost: %s\r\n"+
			"content-type: application/json\r\ncontent-length: 100\r\nx-service-client-id: %s\r\n"+
			"x-service-client-secret: %s\r\n\r\n{", apptest.BasePath, address, as.ClientID, as.Secret)
		if err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "all slow calls are inside", func() bool {
		return s.Webhooks.Gate.InFlight() == slow
	})
	answer := s.Do(apptest.Call{Method: http.MethodGet, Path: "/v2/application/" + uid.String()})
	if answer.Status != http.StatusOK {
		t.Errorf("a call beside slow ones is answered %s", answer.Raw)
	}
	if open := s.Webhooks.Gate.InFlight(); open < slow {
		t.Errorf("it was answered once only %d of %d slow ones were left", open, slow)
	}
}

// TestCallsForEventsTakeSlots fills a client's slots with requests that wait for an
// application. A request for events queues behind them, even one that may wait for events.
// While requests wait for events, there may be more of them than a client has slots.
func TestCallsForEventsTakeSlots(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t, "DRAWBRIDGE_DATABASE_TIMEOUT", "1m",
		"DRAWBRIDGE_ROLES", "api,console").Furnish()
	uid := s.Create()
	tx := pgtest.Begin(t, s.DB, `SELECT FROM applications WHERE application_uid = $1 FOR UPDATE`, uid)
	var calls sync.WaitGroup
	begin := func(call apptest.Call) {
		calls.Go(func() {
			call.Departs = true
			if _, err := s.Try(call); err != nil {
				t.Error(err)
			}
		})
	}
	for begun := 1; s.Admission.Waiting() == 0; begun++ {
		begin(apptest.Call{
			Method: http.MethodPost, Path: "/v2/application/create-run-decision",
			JSON: map[string]any{"thrive_application_uid": uid},
		})
		// The body has been read, too: the slot of a slow sender is lent to the next in the queue.
		waittest.Until(t, "the call waits for the application or stands in line", func() bool {
			return begun == s.Admission.Waiting()+s.Count(t, `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		})
	}
	in := s.Admission.Waiting()
	for _, query := range []string{
		"wait=0", "wait=x", "wait=31", "wait=-1", "wait=5&wait=5", "wait=5&after=latest", "wait=5&%",
		"wait=1",
	} {
		begin(apptest.Call{Method: http.MethodGet, Path: "/v2/events?" + query})
		in++
		waittest.Until(t, query+" stands in line", func() bool { return s.Admission.Waiting() == in })
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	const many = 30
	after := events(s, s.Home, "after=latest").NextCursor
	for range many {
		begin(apptest.Call{Method: http.MethodGet, Path: "/v2/events?wait=30&after=" + after})
	}
	waiting(s, many)
	s.Feed.Release()
	calls.Wait()
}

// TestUploadsInProgressAreBounded starts uploads and large JSON bodies without ending them, up to
// the limits per client and of all clients, of which each leaves as many places free as it has.
// Small ones still succeed, and a place is free again once a request has ended.
func TestUploadsInProgressAreBounded(t *testing.T) {
	t.Parallel()
	const perClient = 64
	s := apptest.NewServer(t).Furnish()
	uid := s.Loan("P404020")
	certificate := "/v2/loan/" + uid.String() + "/completion-cert-upload"
	large := append(apptest.PDF(), make([]byte, 100<<10)...)
	upload := func(as apptest.Account) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodPost, Path: certificate, As: &as,
			Files: map[string][]byte{"a.pdf": large},
		})
	}
	begin := func(as apptest.Account, many int) (begun []slowCall) {
		for n := range many {
			path, kind := certificate, "multipart/form-data; boundary=B"
			if n%2 == 1 {
				path, kind = "/v2/application", "application/json"
			}
			begun = append(begun,
				beginSlow(t, s, as, path, "content-type: "+kind+"\r\ncontent-length: 1000000\r\n"))
		}
		return begun
	}
	var first []slowCall
	var last apptest.Account
	for i := range 3 {
		as := s.Home
		if i > 0 {
			as = s.NewAccount(fmt.Sprint("Slow ", i))
		}
		if calls := begin(as, perClient); i == 0 {
			first = calls
		}
		refused := upload(as)
		if refused.Status != http.StatusTooManyRequests || refused.Code() != "RATE_LIMITED" ||
			refused.Header.Get("Retry-After") != "5" {
			t.Errorf("one too many of a client is answered %s", refused.Raw)
		}
		wantQuota(t, refused, "64",
			"too many uploads at once: this client may have 64 at a time; try again in 5 s")
		refused = s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/application", As: &as,
			JSON: map[string]string{"ignored": strings.Repeat("a", len(large))},
		})
		if refused.Code() != "RATE_LIMITED" {
			t.Errorf("a large body beside them is answered %s", refused.Raw)
		}
	}
	for left := perClient / 2; left > 0; left /= 2 {
		last = s.NewAccount(fmt.Sprint("Last ", left))
		if judged := upload(last); judged.Status != http.StatusNotFound {
			t.Errorf("the first upload of a client is answered %s", judged.Raw)
		}
		begin(last, left)
		if refused := upload(last); refused.Status != http.StatusServiceUnavailable ||
			refused.Code() != "UNAVAILABLE" || refused.Header.Get("Retry-After") != "5" {
			t.Errorf("one too many of all is answered %s", refused.Raw)
		}
	}
	endless := beginSlow(t, s, last, certificate,
		"content-type: multipart/form-data; boundary=B\r\ntransfer-encoding: chunked\r\n")
	refused := endless.send(fmt.Sprintf("%x\r\n--B\r\ncontent-disposition: form-data; name=files; "+
		"filename=a.pdf\r\n\r\n%s\r\n", len(large)+67, large))
	if refused.Status != http.StatusServiceUnavailable || refused.Code() != "UNAVAILABLE" {
		t.Errorf("one of unknown length is answered %s", refused.Raw)
	}
	if drawn := s.Draw(uid, nil); drawn.Status != http.StatusOK {
		t.Errorf("a draw without documents is answered %s", drawn.Raw)
	}
	for _, call := range first {
		if err := call.conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "an upload is taken", func() bool {
		return upload(s.Home).Status == http.StatusCreated
	})
}
