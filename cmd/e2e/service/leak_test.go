package service

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// echo is a partner's endpoint that answers with everything that it receives.
func echo(t *testing.T) (server *httptest.Server, requests chan e2etest.RawRequest) {
	t.Helper()
	requests = make(chan e2etest.RawRequest, 100)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := e2etest.RawRequest{Line: r.Method, Body: body}
		for name, values := range r.Header {
			request.Header = append(request.Header, strings.ToLower(name)+": "+values[0])
			w.Header().Set("x-echo-"+name, values[0])
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, strings.Join(request.Header, "\n"))
		requests <- request
	}))
	t.Cleanup(server.Close)
	return server, requests
}

// Nothing that the service logs, stores or prints about deliveries to an endpoint that
// echoes everything contains the secrets that were sent.
func TestSecretsShowNowhere(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	server, requests := echo(t)
	hidden := []string{
		"whsec_signing_of_the_partner", "bearer-token-of-the-partner", "header-credential-value",
		"overlapping-former-secret",
	}
	subscribe := func(auth, value string, more ...string) e2etest.Subscription {
		return w.Subscribe(data, server.URL, append(more,
			"--auth", auth, "--secret", value, "--header", "x-api-key: "+hidden[2])...)
	}
	s := w.Serve()
	signed := subscribe("hmac", hidden[3])
	w.JSON(&signed, "subscription", "update", signed.UID.String(), "--secret", hidden[0])
	subscribe("bearer", hidden[1])
	for _, kind := range lending.AllEventKinds() {
		w.JSON(new(map[string]any), "subscription", "test", signed.UID.String(), "--event", string(kind))
	}
	e2etest.WantDraw(t, s.URL, data, "first_regular")
	seen := strings.Builder{}
	kinds := make(map[string]bool)
	for range 3*len(lending.AllEventKinds()) + 6 {
		request := <-requests
		e2etest.CheckPayload(t, request)
		kind, _ := request.Value("x-drawbridge-event")
		kinds[kind] = true
		seen.WriteString(strings.Join(request.Header, "\n"))
	}
	if len(kinds) != len(lending.AllEventKinds()) {
		t.Errorf("%d kinds of events came, want all %d", len(kinds), len(lending.AllEventKinds()))
	}
	// The hidden values really were sent, except signing secrets, of which only the signature was.
	for _, value := range hidden[1:3] {
		if !strings.Contains(seen.String(), value) {
			t.Fatalf("%q was never sent, so that this test shows nothing", value)
		}
	}
	var listed struct {
		Deliveries []e2etest.Delivery `json:"deliveries"`
	}
	w.JSON(&listed, "delivery", "list")
	said := strings.Builder{}
	for _, delivery := range listed.Deliveries {
		w.WaitForState(delivery.UID.String(), "failed")
		said.WriteString(w.Run("", "delivery", "show", delivery.UID.String(), "--json").Stdout)
	}
	if status := s.Stop(); status != 0 {
		t.Errorf("the service ended with %d", status)
	}
	said.WriteString(s.Logged())
	said.WriteString(w.Run("", "event", "list", "--json").Stdout)
	said.WriteString(w.Run("", "subscription", "versions", signed.UID.String(), "--json").Stdout)
	said.WriteString(w.Run("", "config").Stdout)
	said.WriteString(dump(w))
	for _, value := range hidden {
		if at := strings.Index(said.String(), value); at >= 0 {
			t.Errorf("%q shows: ...%s", value, said.String()[max(at-200, 0):at+len(value)])
		}
	}
}

// dump returns every row of every table as text.
func dump(w *e2etest.Harness) string {
	w.T.Helper()
	ctx := context.Background()
	db, err := postgres.Open(ctx, w.Env["DATABASE_URL"])
	if err != nil {
		w.T.Fatal(err)
	}
	defer db.Close()
	var tables []string
	err = db.SelectContext(ctx, &tables, `
		SELECT quote_ident(relname)
		  FROM pg_class
		 WHERE relnamespace = 'public'::regnamespace
		   AND relkind = 'r'`)
	if err != nil {
		w.T.Fatal(err)
	}
	var text strings.Builder
	for _, table := range tables {
		var rows []string
		if err := db.SelectContext(ctx, &rows, `SELECT to_jsonb(t)::text FROM `+table+` t`); err != nil {
			w.T.Fatal(err)
		}
		// Bodies are of type bytea, which JSON shows in hex.
		if table == "attempts" || strings.HasPrefix(table, "attempts_") {
			var bodies []string
			err := db.SelectContext(ctx, &bodies,
				`SELECT coalesce(convert_from(response_body, 'UTF8'), '') FROM `+table)
			if err != nil {
				w.T.Fatal(err)
			}
			rows = append(rows, bodies...)
		}
		text.WriteString(strings.Join(rows, "\n"))
	}
	return text.String()
}
