package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
)

// newCrawler starts a crawler. Its data is the demo data, hundreds of generated deliveries over
// a few days, and deliveries that a real endpoint refused.
func newCrawler(t *testing.T) *crawler {
	t.Helper()
	w := e2etest.New(t)
	r := &crawler{Harness: w, db: w.Open(t), data: w.DemoData()}
	var seeded struct{}
	w.JSON(&seeded, "seed", "--deliveries", "600", "--attempts", "900", "--partners", "4",
		"--days", "3")
	r.change(remembered...)
	e := newRefusal(t)
	r.Subscribe(r.data, e.URL)
	r.server = w.Serve()
	e2etest.WantDraw(t, r.server.URL, r.data, "first_regular")
	r.await(`SELECT count(*) > 0 FROM deliveries JOIN events USING (event_uid)
		WHERE deliveries.state = 'failed' AND passed_over IS NULL AND attempt_count = 3`)
	r.await(`SELECT count(*) > 0 FROM statements`)
	r.seed()
	r.browser = newBrowserWithin(t, 40*time.Minute)
	return r
}

// remembered are statements that add what a service would have recorded about the generated
// attempts, and long names and addresses.
var remembered = []string{
	`INSERT INTO attempt_outcomes (subscription_uid, delivery_uid, ended_at, http_status,
	                               error_class, error, duration_us, attempts, delivered, failed)
	 SELECT subscription_uid, delivery_uid, started_at + duration_us * interval '1 microsecond',
	        http_status, error_class, error, duration_us, 1,
	        (state = 'delivered' AND number = attempt_count)::integer,
	        (state = 'failed' AND number = 3)::integer
	   FROM attempts JOIN deliveries USING (delivery_uid)
	  WHERE NOT test
	  ORDER BY started_at`,
	`UPDATE partners SET name = 'Überlandwerke Sonnenschein & Söhne Solardachanlagen-` +
		`Vertriebsgesellschaft mbH & Co. KG (formerly Northwind Renewable Holdings International)'
	  WHERE partner_uid = (SELECT partner_uid FROM subscriptions JOIN partners USING (partner_uid)
	                        WHERE partners.name LIKE '%(seed %' ORDER BY subscription_uid LIMIT 1)`,
	`UPDATE subscriptions SET url = 'https://webhooks.production.eu-central-1.a-rather-long-` +
		`subdomain.partner.example/integrations/lending/v2/callbacks/drawbridge/' || repeat('x', 180)
	  WHERE subscription_uid = (
	        SELECT max(subscription_uid::text)::uuid FROM subscriptions
	          JOIN partners USING (partner_uid) WHERE partners.name LIKE '%(seed %')`,
	`UPDATE merchants SET created_at = created_at - interval '8 days'
	  WHERE merchant_uid = (SELECT min(merchant_uid::text)::uuid FROM applications)`,
	`UPDATE applications SET project_name = repeat('Roof', 30), borrower_last_name = repeat('Li', 40)
	  WHERE application_uid = (SELECT max(application_uid::text)::uuid FROM applications)`,
}

// seeded are statements for data that partners cause in days, or chores in minutes.
var seeded = []string{
	`INSERT INTO tasks (task_uid, application_uid, title, status, created_at, updated_at)
	 SELECT gen_random_uuid(), application_uid, title, 'Pending', now(), now()
	   FROM loans, (VALUES ('Send the contract'), ('Prove the income')) AS wanted (title)`,
	`INSERT INTO attention_items (item_uid, kind, subject, subscription_uid, severity, detail,
	                              count, opened_at, last_seen_at, owner, snoozed_until)
	 SELECT gen_random_uuid(), kind, subscription_uid::text, subscription_uid, severity, detail,
	        place * 12, now() - place * interval '3 hours', now() - interval '2 minutes', owner,
	        CASE WHEN place = 4 THEN now() + interval '1 day' END
	   FROM (VALUES (1, 'probe_failed', 'problem', 'sam@lender.example',
	                 'The name of the endpoint does not exist any more'),
	                (2, 'certificate_expiring', 'warning', '',
	                 'The certificate of Example CA ends in 6 days'),
	                (3, 'never_succeeded', 'problem', '',
	                 'Nothing has arrived since the subscription was made'),
	                (4, 'certificate_expiring', 'warning', 'olga@lender.example',
	                 'The certificate of Example CA ends in 20 days')
	        ) AS item (place, kind, severity, owner, detail)
	   JOIN (SELECT subscription_uid, row_number() OVER (ORDER BY subscription_uid) AS place
	           FROM subscriptions JOIN partners USING (partner_uid)
	          WHERE url LIKE '%.example/%') AS s USING (place)`,
}

// seed adds data that would not come about during the short test.
func (r *crawler) seed() {
	r.T.Helper()
	r.change(seeded...)
	failed, subscription := r.find(rows[paths.Delivery]), r.find(rows[paths.Subscription])
	var made struct{}
	r.JSON(&made, "bulk", "create", failed)
	r.JSON(&made, "subscription", "update", subscription, "--header", "X-Tenant: northwind",
		"--header", "X-Api-Version: 2026-01", "--rate", "20", "--reason", "The partner asked for it")
	r.JSON(&made, "subscription", "test", subscription)
	r.JSON(&r.lender, "client", "create", "--lender", "--name", "Payments of the loan system",
		"--scope", "read", "--scope", "funding", "--from", "127.0.0.0/8")
	r.ask("/api/v2/application/create-run-decision", `{"requested_amount": -1}`)
	r.ask("/api/v2/loan/"+r.data.Loans[0].UID.String()+"/request-draw", "")
	r.resendByTheDozen()
	r.await(`SELECT count(*) > 40 FROM traffic WHERE unit = 'hour'`)
}

// resendByTheDozen begins a bulk re-send and pauses it long before all are sent.
func (r *crawler) resendByTheDozen() {
	r.T.Helper()
	var bulk e2etest.Bulk
	r.JSON(&bulk, "bulk", "create", "--state", "failed", "--pace", "1", "--confirm",
		"--reason", "The partner's database was down", "--partner", r.find(`
			SELECT partner_uid FROM deliveries JOIN subscriptions USING (subscription_uid)
			 WHERE deliveries.state = 'failed' AND url LIKE '%.example/%'
			 GROUP BY partner_uid ORDER BY count(*) DESC LIMIT 1`))
	r.await(`SELECT count(*) >= 1 FROM deliveries
		WHERE resend_reason = 'The partner''s database was down' AND state <> 'pending'`)
	r.JSON(&bulk, "bulk", "pause", bulk.UID.String())
	r.more = append(r.more, paths.To(paths.Bulk, bulk.UID.String()))
}

// ask makes a request that is refused.
func (r *crawler) ask(path, body string) {
	r.T.Helper()
	if status := e2etest.Call(r.T, r.data, http.MethodPost, r.server.URL+path, body); status < 400 {
		r.T.Errorf("%s answered %d", path, status)
	}
}

// change runs statements.
func (r *crawler) change(statements ...string) {
	r.T.Helper()
	for _, statement := range statements {
		if _, err := r.db.ExecContext(r.T.Context(), statement); err != nil {
			r.T.Fatalf("%v in %s", err, statement)
		}
	}
}

// find returns the one value of a query's result.
func (r *crawler) find(query string) string {
	r.T.Helper()
	var value string
	if err := r.db.Get(&value, query); err != nil {
		r.T.Fatalf("%v in %s", err, strings.TrimSpace(query))
	}
	return value
}

// await waits until a query returns true.
func (r *crawler) await(query string) {
	r.T.Helper()
	waittest.Until(r.T, "it comes true: "+query, func() bool {
		var holds bool
		if err := r.db.Get(&holds, query); err != nil {
			r.T.Fatal(err)
		}
		return holds
	})
}
