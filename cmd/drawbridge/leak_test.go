package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// echo is a partner's endpoint that answers with everything that it was sent.
func echo(t *testing.T) (server *httptest.Server, requests chan wire) {
	t.Helper()
	requests = make(chan wire, 100)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request := wire{line: r.Method, body: body}
		for name, values := range r.Header {
			request.header = append(request.header, strings.ToLower(name)+": "+values[0])
			w.Header().Set("x-echo-"+name, values[0])
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, strings.Join(request.header, "\n"))
		requests <- request
	}))
	t.Cleanup(server.Close)
	return server, requests
}

// Whatever the service logs, keeps or prints of deliveries to an endpoint that
// echoes all it gets, the secrets that it sends are in none of it.
func TestSecretsShowNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	data := w.demoData()
	server, requests := echo(t)
	hidden := []string{
		"whsec_signing_of_the_partner", "bearer-token-of-the-partner", "header-credential-value",
		"overlapping-former-secret",
	}
	subscribe := func(auth, value string, more ...string) subscriptionJSON {
		var made subscriptionJSON
		w.json(&made, append([]string{
			"subscription", "create", "--partner", data.Partners[0].UID.String(), "--url", server.URL,
			"--event", "all", "--auth", auth, "--secret", value, "--header", "x-api-key: " + hidden[2],
		}, more...)...)
		return made
	}
	s := w.serve()
	signed := subscribe("hmac", hidden[3])
	w.json(&signed, "subscription", "update", signed.UID.String(), "--secret", hidden[0])
	subscribe("bearer", hidden[1])
	for _, kind := range lending.AllEventKinds() {
		w.json(new(map[string]any), "subscription", "test", signed.UID.String(), "--event", string(kind))
	}
	if status := draw(t, s.url, data, "first_regular"); status != http.StatusOK {
		t.Fatalf("the draw answered %d", status)
	}
	seen := strings.Builder{}
	kinds := make(map[string]bool)
	for range 3*len(lending.AllEventKinds()) + 6 {
		request := <-requests
		checkPayload(t, request)
		kind, _ := request.value("x-drawbridge-event")
		kinds[kind] = true
		seen.WriteString(strings.Join(request.header, "\n"))
	}
	if len(kinds) != len(lending.AllEventKinds()) {
		t.Errorf("%d kinds of events came, want all %d", len(kinds), len(lending.AllEventKinds()))
	}
	// What is to stay hidden really was sent; of signing secrets only the proof.
	for _, value := range hidden[1:3] {
		if !strings.Contains(seen.String(), value) {
			t.Fatalf("%q was never sent, so that this test shows nothing", value)
		}
	}
	var listed struct {
		Deliveries []deliveryJSON `json:"deliveries"`
	}
	w.json(&listed, "delivery", "list")
	said := strings.Builder{}
	for _, delivery := range listed.Deliveries {
		w.waitForState(delivery.UID.String(), "failed")
		said.WriteString(w.run("", "delivery", "show", delivery.UID.String(), "--json").stdout)
	}
	if status := s.stop(); status != 0 {
		t.Errorf("the service ended with %d", status)
	}
	said.WriteString(s.logged())
	said.WriteString(w.run("", "event", "list", "--json").stdout)
	said.WriteString(w.run("", "subscription", "versions", signed.UID.String(), "--json").stdout)
	said.WriteString(w.run("", "config").stdout)
	said.WriteString(w.dump())
	for _, value := range hidden {
		if at := strings.Index(said.String(), value); at >= 0 {
			t.Errorf("%q shows: ...%s", value, said.String()[max(at-200, 0):at+len(value)])
		}
	}
}

// dump is every row of every table as text.
func (w *world) dump() string {
	w.t.Helper()
	ctx := context.Background()
	db, err := postgres.Open(ctx, w.vars["DATABASE_URL"])
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	var tables []string
	err = db.SelectContext(ctx, &tables, `
		SELECT quote_ident(relname)
		  FROM pg_class
		 WHERE relnamespace = 'public'::regnamespace
		   AND relkind = 'r'`)
	if err != nil {
		w.t.Fatal(err)
	}
	var text strings.Builder
	for _, table := range tables {
		var rows []string
		if err := db.SelectContext(ctx, &rows, `SELECT to_jsonb(t)::text FROM `+table+` t`); err != nil {
			w.t.Fatal(err)
		}
		// Bodies are bytes, which JSON shows in hex.
		if table == "attempts" || strings.HasPrefix(table, "attempts_") {
			var bodies []string
			err := db.SelectContext(ctx, &bodies,
				`SELECT coalesce(convert_from(response_body, 'UTF8'), '') FROM `+table)
			if err != nil {
				w.t.Fatal(err)
			}
			rows = append(rows, bodies...)
		}
		text.WriteString(strings.Join(rows, "\n"))
	}
	return text.String()
}
