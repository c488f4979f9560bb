package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
	"drawbridge/web/console"
	"drawbridge/web/docs"
)

// crawler is a server with data on every page, and a browser that visits the pages as an
// admin.
type crawler struct {
	*e2etest.Harness
	server  *e2etest.Server
	db      *postgres.DB
	data    e2etest.Demo
	lender  e2etest.DemoClient
	browser context.Context
	// more are addresses of rows made only for this test, forms are addresses of forms that must
	// not be refused.
	more, forms []string
}

// notPages are the addresses whose response is not a page of the console, and why.
var notPages = map[string]string{
	paths.Document:                       "a borrower's file",
	paths.Pick:                           "the options of a list to choose from",
	paths.Here:                           "says to scripts that the server is there",
	paths.EmailBody:                      "the mail itself, shown in a frame of the e-mail's page",
	paths.EmailSource:                    "a download",
	paths.EmailSample:                    "the mail itself, shown in a frame of the samples' page",
	paths.AuditCSV:                       "a download",
	paths.StatementFile:                  "a download",
	paths.BulkItems:                      "a download",
	paths.SecondFactorQR:                 "a picture",
	paths.SignInReturn:                   "comes from the provider of identities",
	paths.SignIn:                         "leads on when somebody is signed in; visited before",
	paths.SignInCode:                     "follows a password that was right; visited so",
	paths.JobConsole:                     "the queue library's own console",
	paths.JobConsoles:                    "the queue library's own console",
	docs.Prefix + "/openapi.yaml":        "a download",
	docs.Prefix + "/openapi.json":        "a download",
	docs.Prefix + "/collection.json":     "a download",
	docs.Prefix + "/egress.json":         "a download",
	docs.Prefix + "/keys.json":           "a download",
	"/llms.txt":                          "a text for programs",
	docs.Prefix + "/schemas/:name":       "a download",
	docs.Prefix + "/lender/openapi.yaml": "a download",
	docs.Prefix + "/lender/openapi.json": "a download",
	docs.Prefix + "/samples/*":           "a download",
	docs.Prefix + "/assets/:name":        "files of pages",
	docs.Prefix + "/*":                   "what is not there, and slashes too many",
}

// rows are queries for the row that a part of an address names, by the path up to that part.
var rows = map[string]string{
	paths.Application: `SELECT application_uid FROM applications
		ORDER BY (SELECT count(*) FROM tasks t WHERE t.application_uid = applications.application_uid)
		       * 100 + (SELECT count(*) FROM events e
		                 WHERE e.application_uid = applications.application_uid) DESC LIMIT 1`,
	paths.Alert: `SELECT item_uid FROM attention_items ORDER BY closed_at DESC LIMIT 1`,
	paths.AuditEntry: `SELECT entry_id FROM audit_log
		ORDER BY before IS NOT NULL AND after IS NOT NULL DESC, entry_id DESC LIMIT 1`,
	paths.Bulk: `SELECT bulk_uid FROM bulk_resends WHERE state = 'draft'`,
	paths.Event: `SELECT event_uid FROM deliveries WHERE attempt_count = 3
		AND last_http_status = 500 ORDER BY created_at DESC LIMIT 1`,
	paths.Person: `SELECT user_uid FROM users WHERE role = 'support' LIMIT 1`,
	paths.Partner: `SELECT partner_uid FROM subscriptions
	                                  JOIN clients USING (partner_uid) LIMIT 1`,
	paths.Merchant:           `SELECT merchant_uid FROM merchants ORDER BY created_at LIMIT 1`,
	paths.Statement:          `SELECT day::text FROM statements ORDER BY day DESC LIMIT 1`,
	paths.Client:             `SELECT client_id FROM clients WHERE partner_uid IS NOT NULL LIMIT 1`,
	paths.LenderClient:       `SELECT client_id FROM clients WHERE partner_uid IS NULL LIMIT 1`,
	paths.Products + "/:uid": `SELECT product_uid FROM products LIMIT 1`,
	paths.Delivery: `SELECT delivery_uid FROM deliveries WHERE attempt_count = 3
		AND last_http_status = 500 AND resend_of IS NULL ORDER BY created_at DESC LIMIT 1`,
	paths.Email:   `SELECT email_uid FROM emails ORDER BY state LIMIT 1`,
	paths.Request: `SELECT request_uid FROM api_requests ORDER BY status DESC LIMIT 1`,
	paths.Subscription: `SELECT subscription_uid FROM subscriptions
		ORDER BY url LIKE 'http://127.0.0.1%' DESC, created_at DESC LIMIT 1`,
	paths.SubscriptionResult: `SELECT delivery_uid FROM deliveries
		JOIN subscriptions USING (subscription_uid) WHERE test
		ORDER BY url LIKE 'http://127.0.0.1%' DESC, subscriptions.created_at DESC,
		         deliveries.created_at DESC LIMIT 1`,
	paths.ApplicationChange: `SELECT 'status'`,
}

// asks are the query strings that some addresses need.
var asks = map[string]string{
	paths.SubscriptionRestore: "?version=1", paths.ApplicationChange: "?to=Closed",
}

// more are addresses in addition to the route table: tabs, states and refusals.
var more = []string{
	paths.Subscription + "?tab=configuration", paths.Subscription + "?tab=secret",
	paths.Subscription + "?tab=health", paths.Subscription + "?tab=versions",
	paths.Search + "?q=Sunrise", paths.Search + "?q=nothing-is-called-so",
	paths.Deliveries + "?state=failed", paths.Deliveries + "?code=418",
	paths.Mailbox + "?mail=none", paths.Deliveries + "/none",
	paths.Confirm + "?next=/console/people",
	docs.Prefix + "/search?q=draw", docs.Prefix + "/search?q=nothing-is-called-so",
}

// changeForms are queries that find for each change an application for which it is possible,
// with the parameters of the form.
var changeForms = []string{
	`SELECT application_uid || '/change/decision' FROM applications
	  WHERE status = 'Pending Review' AND decided_at IS NULL LIMIT 1`,
	`SELECT application_uid || '/change/accept' FROM applications
	  WHERE status = 'Pending Review' AND decided_at IS NULL LIMIT 1`,
	`SELECT application_uid || '/change/document?to=DOCUMENT_SENT' FROM applications
	  WHERE document_status IS NULL AND status <> 'Closed' LIMIT 1`,
	`SELECT application_uid || '/change/task' FROM applications LIMIT 1`,
	`SELECT application_uid || '/change/task-status?to=Completed&task=' || task_uid
	   FROM tasks WHERE status = 'Pending' LIMIT 1`,
	`SELECT application_uid || '/change/funding?to=FUNDING_PROCESSING&draw=' ||
	        merchant_disbursement_id
	   FROM disbursements JOIN offers USING (application_uid)
	  WHERE status = 'FUNDING_REQUESTED' LIMIT 1`,
	`SELECT application_uid || '/change/amount' FROM applications JOIN offers USING (application_uid)
	  WHERE status = 'Approved' ORDER BY created_at DESC LIMIT 1`,
	`SELECT application_uid || '/change/terms' FROM applications JOIN offers USING (application_uid)
	  WHERE status = 'Approved' ORDER BY created_at DESC LIMIT 1`,
}

// site is a console with all optional routes.
func (r *crawler) site() *console.Console {
	r.T.Helper()
	site, err := console.New(console.Options{
		PublicURL: "http://console.example", Development: &console.Development{},
		Operators: &operator.Service{DB: r.db}, JobConsole: http.NotFoundHandler(),
		Provider: &operator.Provider{},
	})
	if err != nil {
		r.T.Fatal(err)
	}
	return site
}

// stops lists the addresses of all pages, first those of the route table.
func (r *crawler) stops() []string {
	r.T.Helper()
	var stops []string
	for _, route := range r.site().Routes() {
		if route.Method == http.MethodGet && !strings.HasSuffix(route.Path, "/live") {
			stops = append(stops, route.Path+asks[route.Path])
		}
	}
	for _, route := range docs.New(docs.Options{}).Routes() {
		stops = append(stops, route.Path)
	}
	for path := range notPages {
		if !slices.Contains(stops, path) {
			r.T.Errorf("%s is said to be no page, and is no route either", path)
		}
	}
	stops = slices.DeleteFunc(stops, func(path string) bool {
		return notPages[path] != "" || strings.HasSuffix(path, ".md") // Markdown is not a page
	})
	stops = append(stops, more...)
	for i, path := range stops {
		stops[i] = r.fill(path)
	}
	for _, query := range changeForms {
		stops = append(stops, r.formOf(query))
	}
	return append(stops, r.more...)
}

// formOf finds the address of the form of a change, which must not be refused, since the form
// would not be shown.
func (r *crawler) formOf(query string) string {
	r.T.Helper()
	path := paths.Applications + "/" + r.find(query)
	r.forms = append(r.forms, path)
	return path
}

// fill replaces each parameter of a path by a row's id.
func (r *crawler) fill(path string) string {
	r.T.Helper()
	path, query, asks := strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, ":") {
			continue
		}
		prefix := strings.Join(strings.Split(path, "/")[:i+1], "/")
		var id string
		if err := r.db.Get(&id, rows[prefix]); err != nil {
			r.T.Fatalf("finding a row for %s by %q: %v", prefix, rows[prefix], err)
		}
		parts[i] = id
	}
	if path = strings.Join(parts, "/"); asks {
		path += "?" + query
	}
	return path
}

// visit opens an address and fails the test if it is not a page.
func (r *crawler) visit(path string) {
	r.T.Helper()
	do(r.T, r.browser, chromedp.Navigate(r.server.URL+path),
		chromedp.WaitReady(chromedp.CSS("h1")))
	const heading = `document.querySelector("h1").textContent`
	if evaluate(r.T, r.browser, heading) == "" {
		r.T.Errorf("%s has no heading", path)
	}
	const status = `String(performance.getEntriesByType("navigation")[0].responseStatus)`
	if got := evaluate(r.T, r.browser, status); got >= "500" || path != "/console/deliveries/none" &&
		got == "404" && !strings.Contains(path, "?") || got >= "400" && slices.Contains(r.forms, path) {
		r.T.Errorf("%s answered %s", path, got)
	}
}

// file turns an address into a file name.
func file(path string) string {
	name := strings.NewReplacer("/", "-", "?", "-", "=", "-", "&", "-").Replace(path)
	return strings.Trim(fmt.Sprintf("%.90s", name), "-")
}
