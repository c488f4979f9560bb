package service

import (
	"net/http"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

const environmentHeader = "X-Drawbridge-Environment"

// TestASandboxIsAnEnvironmentOfItsOwn starts a sandbox with production's settings: it names itself
// everywhere, reaches no address of this machine, and no other environment can use its database.
func TestASandboxIsAnEnvironmentOfItsOwn(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.Env["DRAWBRIDGE_ENV"] = "sandbox"
	refused := w.Run("", "serve")
	for _, name := range []string{"DRAWBRIDGE_SECRETS_KEY", "DRAWBRIDGE_PUBLIC_URL"} {
		if refused.Status != e2etest.ExitUsage || !strings.Contains(refused.Stderr, name) {
			t.Errorf("without %s it ended with %d: %s", name, refused.Status, refused.Stderr)
		}
	}
	w.Env["DRAWBRIDGE_PUBLIC_URL"] = "https://sandbox.example"
	w.Env["DRAWBRIDGE_SECRETS_KEY"] = "base64key://MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlBQkNERUY="
	w.Env["DRAWBRIDGE_DRAIN"] = "0s"
	for _, line := range [][]string{{"demo"}, {"serve", "--demo"}} {
		if demo := w.Run("", line...); demo.Status != e2etest.ExitFailed {
			t.Errorf("%s ended with %d: %s", line, demo.Status, demo.Stderr)
		}
	}
	if none := w.Run("", "environment", "show", "--json"); !strings.Contains(none.Stdout, "null") {
		t.Errorf("before the first serve it shows %+v", none)
	}
	server := w.Serve()
	wantEnvironment(t, server.URL, "sandbox")

	var partner struct {
		UID string `json:"partner_uid"`
	}
	w.JSON(&partner, "partner", "create", "--name", "Sunfield")
	endpoint := e2etest.NewEndpoint(t, "200 OK")
	subscribe := []string{
		"subscription", "create", "--partner", partner.UID, "--url", endpoint.URL, "--auth", "none",
		"--event", "all", "--json",
	}
	if got := w.Run("", subscribe...); got.Status == 0 ||
		!strings.Contains(got.Stderr, "loopback") {
		t.Errorf("it took a receiver on loopback: %+v", got)
	}
	server.Stop()

	w.Env["DRAWBRIDGE_WEBHOOK_ALLOW"] = "127.0.0.0/8"
	w.Env["SSL_CERT_FILE"] = endpoint.CAFile
	server = w.Serve()
	var subscription struct {
		UID string `json:"subscription_uid"`
	}
	w.JSON(&subscription, subscribe[:len(subscribe)-1]...)
	wantWebhookOf(t, w, subscription.UID, endpoint, "sandbox")
	server.Stop()

	w.Env["DRAWBRIDGE_ENV"] = "production"
	other := w.Run("", "serve")
	if other.Status != e2etest.ExitUsage || strings.Contains(other.Stdout, "ready") ||
		!strings.Contains(other.Stderr, "drawbridge environment set production") {
		t.Errorf("production on a sandbox's database ended with %+v", other)
	}
	if got := w.Run("", "environment", "set", "staging"); got.Status != e2etest.ExitUsage {
		t.Errorf("an unknown environment ended with %+v", got)
	}
	var shown struct{ Environment string }
	w.JSON(&shown, "environment", "set", "production")
	if w.JSON(&shown, "environment", "show"); shown.Environment != "production" {
		t.Errorf("it records %q", shown.Environment)
	}
	server = w.Serve()
	wantEnvironment(t, server.URL, "")
	wantWebhookOf(t, w, subscription.UID, endpoint, "")
}

// TestDevelopmentNamesItself: a server without settings runs in development mode, and says so.
func TestDevelopmentNamesItself(t *testing.T) {
	t.Parallel()
	w, endpoint := e2etest.New(t), e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = endpoint.CAFile
	server := w.Serve()
	wantEnvironment(t, server.URL, "development")
	var partner struct {
		UID string `json:"partner_uid"`
	}
	w.JSON(&partner, "partner", "create", "--name", "Sunfield")
	var subscription struct {
		UID string `json:"subscription_uid"`
	}
	w.JSON(&subscription, "subscription", "create", "--partner", partner.UID, "--url", endpoint.URL,
		"--auth", "none", "--event", "all")
	wantWebhookOf(t, w, subscription.UID, endpoint, "development")
}

// wantWebhookOf sends a test event; want is empty if the webhook must not name an environment.
func wantWebhookOf(
	t *testing.T, w *e2etest.Harness, subscription string, endpoint *e2etest.Endpoint, want string,
) {
	t.Helper()
	if got := w.Run("", "subscription", "test", subscription); got.Status != 0 {
		t.Fatalf("the test ended with %+v", got)
	}
	got, named := endpoint.Next(t).Value(strings.ToLower(environmentHeader))
	if got != want || named != (want != "") {
		t.Errorf("the webhook names the environment %q, want %q", got, want)
	}
}

// wantEnvironment checks one response of each kind.
func wantEnvironment(t *testing.T, base, want string) {
	t.Helper()
	for _, path := range []string{
		"/healthz", "/readyz", "/metrics", "/docs", "/console/nowhere", "/nowhere", "/api/v2/loan/x",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get(environmentHeader); got != want {
			t.Errorf("%s names the environment %q, want %q", path, got, want)
		}
	}
}

// TestAFaultIsOrderedAndShown orders a fault as a partner, and reads its effect with the command
// line.
func TestAFaultIsOrderedAndShown(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	endpoint := e2etest.NewEndpoint(t, "200 OK")
	w.Env["SSL_CERT_FILE"] = endpoint.CAFile
	subscription := w.Subscribe(data, endpoint.URL)
	s := w.Serve()
	e2etest.Send(t, data, http.MethodPost, s.URL+"/api/v2/sandbox/faults",
		map[string]any{"subscription_uid": subscription.UID, "fault": "bad_signature"})
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	uid, _ := endpoint.Next(t).Value("x-drawbridge-delivery")
	shown := w.WaitForState(uid, "delivered")
	if len(shown.Attempts) != 1 || shown.Attempts[0].Fault == nil ||
		*shown.Attempts[0].Fault != "bad_signature" {
		t.Errorf("the attempts are %+v", shown.Attempts)
	}
}
