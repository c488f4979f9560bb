package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// refusal is the envelope of a refused request.
func refusal(code string) string {
	return `{"timestamp":"2026-11-21T09:30:00.123Z","statusCode":400,` +
		`"result":{"data":null,"error":{"code":"` + code + `","message":"no",` +
		`"details":[{"field":"amount","message":"must be above zero"}]}}}`
}

const success = `{"timestamp":"2026-11-21T09:30:00.123Z","statusCode":200,` +
	`"result":{"data":{"merchantDisbursementId":7,"disbursementNumber":1},"error":null}}`

// reply is one scripted response; status 0 drops the connection.
type reply struct {
	status int
	body   string
}

// scripted returns its replies in turn and counts requests; it fails if a request differs
// from the first.
type scripted struct {
	t       *testing.T
	replies []reply
	sent    []string
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.sent = append(s.sent, r.Header.Get("Idempotency-Key")+string(body))
	if s.sent[0] != s.sent[len(s.sent)-1] {
		s.t.Errorf("the retry differs: %q, %q", s.sent[0], s.sent[len(s.sent)-1])
	}
	answer := s.replies[min(len(s.sent), len(s.replies))-1]
	if answer.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("X-Request-Id", "r-9")
	if answer.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "3")
	}
	w.WriteHeader(answer.status)
	_, _ = io.WriteString(w, answer.body)
}

func TestCallsAreRepeatedOnlyWhereItIsSafe(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		replies []reply
		method  string
		key     string
		sent    int
		code    string // of the final refusal, "ok" for success, "lost" for no response
	}{
		{"success", []reply{{200, success}}, "POST", "k", 1, "ok"},
		{"a fault of theirs", []reply{{500, refusal("INTERNAL")}, {200, success}}, "POST", "k", 2, "ok"},
		{"a lost answer with a key", []reply{{0, ""}, {200, success}}, "POST", "k", 2, "ok"},
		{"a lost answer without a key", []reply{{0, ""}, {200, success}}, "POST", "", 1, "lost"},
		{"a lost answer to a GET", []reply{{0, ""}, {200, success}}, "GET", "", 2, "ok"},
		{"too fast", []reply{{429, refusal("RATE_LIMITED")}, {200, success}}, "POST", "k", 2, "ok"},
		{
			"still running",
			[]reply{{409, refusal("IDEMPOTENCY_CONFLICT")}, {200, success}},
			"POST", "k", 2, "ok",
		},
		{"a pending draw", []reply{{500, refusal("DRAW_PENDING")}}, "POST", "k", 1, "DRAW_PENDING"},
		{
			"a wrong field",
			[]reply{{400, refusal("VALIDATION_ERROR")}},
			"POST", "k", 1,
			"VALIDATION_ERROR",
		},
		{"another state", []reply{{409, refusal("INVALID_STATE")}}, "POST", "k", 1, "INVALID_STATE"},
		{"a page of a proxy", []reply{{502, "<html>bad gateway"}}, "POST", "k", tries, "NO_ENVELOPE"},
		{
			"JSON of a gateway", []reply{{403, `{"message":"Forbidden"}`}}, "POST", "k", 1, "NO_ENVELOPE",
		},
		{"nothing of a gateway", []reply{{200, `{}`}}, "POST", "k", 1, "NO_ENVELOPE"},
		{"too fast for a proxy", []reply{{429, "<html>"}, {200, success}}, "POST", "k", 2, "ok"},
		{"never fixed", []reply{{500, refusal("INTERNAL")}}, "POST", "k", tries, "INTERNAL"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			script := &scripted{t: t, replies: test.replies}
			server := httptest.NewServer(script)
			client := quick(server.URL)
			var drawn Disbursement
			err := client.call(t.Context(), request{
				method: test.method, path: "/v2/x", key: test.key, body: []byte(`{"a":1}`),
			}, &drawn)
			server.Close() // its handlers have ended, so their counts can be read
			if got := outcome(err, drawn); got != test.code {
				t.Errorf("ended with %s (%v), want %s", got, err, test.code)
			}
			if len(script.sent) != test.sent {
				t.Errorf("sent %d times, want %d", len(script.sent), test.sent)
			}
		})
	}
}

// quick is a client that does not wait. It reuses no connections, so that a dropped one is
// not mistaken for a stale one.
func quick(address string) *Client {
	client := NewClient()
	client.BaseURL, client.ID, client.Secret = address, "id", "secret"
	client.HTTP.Transport = &http.Transport{DisableKeepAlives: true}
	client.Wait = func(context.Context, time.Duration) error { return nil }
	return client
}

func outcome(err error, drawn Disbursement) string {
	refused, ok := errors.AsType[*APIError](err)
	switch {
	case ok:
		return refused.Code
	case err != nil:
		return "lost"
	case drawn.ID == 7:
		return "ok"
	}
	return "empty"
}

func TestWaitingFollowsTheServer(t *testing.T) {
	t.Parallel()
	script := &scripted{t: t, replies: []reply{
		{429, refusal("RATE_LIMITED")}, {500, refusal("INTERNAL")}, {429, "<html>"}, {200, success},
	}}
	server := httptest.NewServer(script)
	t.Cleanup(server.Close)
	client := quick(server.URL)
	var waited []time.Duration
	client.Wait = func(_ context.Context, d time.Duration) error {
		waited = append(waited, d)
		return nil
	}
	var drawn Disbursement
	call := request{method: http.MethodPost, path: "/", key: "k"}
	if err := client.call(t.Context(), call, &drawn); err != nil {
		t.Fatal(err)
	}
	if len(waited) != 3 || waited[0] != 3*time.Second || waited[2] != 3*time.Second ||
		waited[1] < time.Second || waited[1] > 1500*time.Millisecond {
		t.Errorf("waited %v, want 3s as the server said, 1s to 1.5s, and 3s as a proxy said", waited)
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := wait(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}

func TestARefusalSaysWhatSupportNeeds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reply reply
		parts []string
	}{
		{
			reply{400, refusal("VALIDATION_ERROR")},
			[]string{"/v2/loan/u", "400", "VALIDATION_ERROR", "amount", "r-9"},
		},
		{
			reply{403, `{"message":"Forbidden"}`},
			[]string{"/v2/loan/u", "403", "not the API's", "Forbidden", "r-9"},
		},
	} {
		server := httptest.NewServer(&scripted{t: t, replies: []reply{test.reply}})
		_, err := quick(server.URL).Loan(t.Context(), "u")
		server.Close()
		for _, part := range test.parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not say %q", err, part)
			}
		}
	}
}

// When a server redirects, the secret is not sent to the target.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s came with %v", r.Method, r.URL, r.Header)
	}))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	_, err := quick(server.URL).Loan(t.Context(), "u")
	if refused, ok := errors.AsType[*APIError](err); !ok || refused.Status != 307 {
		t.Errorf("ended with %v, want the 307", err)
	}
}

func TestABaseURLMayEndInASlash(t *testing.T) {
	t.Parallel()
	paths := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		paths <- r.URL.Path
	}))
	t.Cleanup(server.Close)
	_, _ = quick(server.URL+"/api/").Loan(t.Context(), "u")
	if path := <-paths; path != "/api/v2/loan/u" {
		t.Errorf("asked for %s", path)
	}
}
