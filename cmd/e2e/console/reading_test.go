package console

import (
	"context"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/static"
	"drawbridge/views/paths"
	"drawbridge/web"
	"drawbridge/web/api"
	"drawbridge/web/docs"
)

// recorders are the tables that reading may change, and why.
var recorders = map[string]string{
	"sessions":      "the state of a sign-in, such as a notice that was shown",
	"user_sessions": "when somebody was last seen",
	"processes":     "the pulse of each process",
	"clients":       "when a client was last used; compared without it",
	"rate_buckets":  "how much a partner has asked for lately",
	"api_requests":  "the log of what partners ask for",
	"api_traffic":   "the count of what partners ask for",
	"audit_log":     "who took a file of the log home; checked for anything else",
}

// changesAudited counts the audit log without the entries of exports.
const changesAudited = `SELECT count(*) FROM audit_log
	WHERE action NOT LIKE '%.export' AND action NOT LIKE '%.download'`

// clientsKept is the content of the clients, except when they were last used.
const clientsKept = `SELECT string_agg((to_jsonb(c) - 'last_used_at')::text, ' ' ORDER BY client_id)
	FROM clients c`

// readingChangesNothing gets every address of the route table twice, as an admin, as a
// partner and as a system of the lender, on an otherwise idle server, and compares the
// contents of the tables before and after.
func (r *crawler) readingChangesNothing() {
	r.T.Helper()
	if status := r.server.Stop(); status != 0 {
		r.T.Errorf("the service ended with %d", status)
	}
	r.server = r.Serve("--roles", "api,console")
	readable, client := r.readable(), r.person(r.data.Users[2])
	recorded := slices.Collect(maps.Keys(recorders))
	before := pgtest.Dump(r.T, r.db, recorded...)
	entries, clients := r.find(changesAudited), r.find(clientsKept)
	for range 2 {
		for _, path := range readable {
			r.read(client, path)
		}
	}
	after := pgtest.Dump(r.T, r.db, recorded...)
	if changed := after.Differs(before); len(changed) > 0 {
		r.T.Errorf("reading %d addresses twice changed %v", len(readable), changed)
	}
	if now := r.find(changesAudited); now != entries {
		r.T.Errorf("reading left %s entries in the audit log, not %s", now, entries)
	}
	if r.find(clientsKept) != clients {
		r.T.Error("reading changed a client")
	}
	if len(readable) < 90 {
		r.T.Errorf("only %d addresses were read", len(readable))
	}
}

// person is an HTTP client with the session of a demo user.
func (r *crawler) person(user e2etest.DemoUser) *http.Client {
	r.T.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.T.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	answer, err := client.PostForm(r.server.URL+paths.SignIn,
		url.Values{"email": {user.Email}, "password": {user.Password}})
	if err != nil {
		r.T.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != paths.Home {
		r.T.Fatalf("signing in led to %s: %s", answer.Request.URL, answer.Status)
	}
	return client
}

// nowhere replaces the id of a row that the test data lacks.
const nowhere = "none"

// readable lists an address of every route that answers GET.
func (r *crawler) readable() []string {
	r.T.Helper()
	const loan = "/api/v2/loan/:uid"
	known := map[string]string{
		loan: r.data.Loans[0].UID.String(), "/api/v2/application/:uid": r.data.Loans[0].UID.String(),
	}
	var readable []string
	for _, route := range web.Table(web.Options{
		API: &api.API{Sandbox: true}, BasePath: "/api", Console: r.site(),
		Docs: docs.New(docs.Options{}), Metrics: http.NotFoundHandler(),
	}) {
		if route.Method != http.MethodGet {
			continue
		}
		path := strings.TrimSuffix(route.Path, "*")
		for prefix, uid := range known {
			if rest, ok := strings.CutPrefix(path, prefix); ok {
				path = strings.Replace(prefix, ":uid", uid, 1) + rest
			}
		}
		readable = append(readable, r.fillAny(path+asks[route.Path]))
	}
	return readable
}

// fillAny is fill for any route: a parameter that names no row becomes an arbitrary word.
func (r *crawler) fillAny(path string) string {
	r.T.Helper()
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, ":") && rows[strings.Join(parts[:i+1], "/")] == "" {
			parts[i] = nowhere
		}
	}
	return r.fill(strings.Join(parts, "/"))
}

// read gets an address, closes a stream at once, and fails the test if the server fails or an
// address of something that exists is refused.
func (r *crawler) read(client *http.Client, path string) {
	r.T.Helper()
	ctx, cancel := context.WithCancel(r.T.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+path, http.NoBody)
	if err != nil {
		r.T.Fatal(err)
	}
	if strings.HasPrefix(path, "/api/") {
		caller := r.data.Partners[0].Clients[0]
		if strings.HasPrefix(path, "/api/lender/") {
			caller = r.lender
		}
		request.Header.Set("x-service-client-id", caller.ID)
		request.Header.Set("x-service-client-secret", caller.Secret)
	}
	response, err := client.Do(request)
	if err != nil {
		r.T.Fatal(err)
	}
	_ = response.Body.Close()
	absent := strings.Contains(path, nowhere) || slices.Contains(withoutAThing, path)
	if status := response.StatusCode; status >= http.StatusInternalServerError ||
		status >= http.StatusBadRequest && !absent && status != http.StatusMethodNotAllowed {
		r.T.Errorf("%s answers %d", path, status)
	}
}

// withoutAThing are addresses that answer 404: the process that they show was not begun, no
// provider is configured, or they are a folder.
var withoutAThing = []string{
	docs.Prefix + "/samples/", static.Prefix, paths.SecondFactorQR, paths.SignInReturn,
}
