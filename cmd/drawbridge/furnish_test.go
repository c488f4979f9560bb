package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"drawbridge/views/paths"
)

// newTour starts one. The data is the demo's, what partners do by the hundred
// in a few days, and deliveries that a real endpoint refused.
func newTour(t *testing.T) *tour {
	t.Helper()
	w := newWorld(t)
	r := &tour{world: w, db: w.open(t), data: w.demoData()}
	var seeded struct{}
	w.json(&seeded, "seed", "--deliveries", "600", "--attempts", "900", "--partners", "4",
		"--days", "3")
	r.change(remembered...)
	e := newRefusal(t)
	r.subscribe(e.URL)
	r.server = w.serve()
	if status := draw(t, r.server.url, r.data, "first_regular"); status != http.StatusOK {
		t.Fatalf("the draw answered %d", status)
	}
	r.await(`SELECT count(*) > 0 FROM deliveries JOIN events USING (event_uid)
		WHERE deliveries.state = 'failed' AND passed_over IS NULL AND attempt_count = 3`)
	r.furnish()
	r.browser = newBrowserWithin(t, 20*time.Minute)
	return r
}

// remembered is what a service would know of the attempts that were made up,
// and names and addresses of those who like them long.
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
	                        WHERE name LIKE '%(seed %' ORDER BY subscription_uid LIMIT 1)`,
	`UPDATE subscriptions SET url = 'https://webhooks.production.eu-central-1.a-rather-long-` +
		`subdomain.partner.example/integrations/lending/v2/callbacks/drawbridge/' || repeat('x', 180)
	  WHERE subscription_uid = (SELECT max(subscription_uid::text)::uuid FROM subscriptions
	                              JOIN partners USING (partner_uid) WHERE name LIKE '%(seed %')`,
	`UPDATE applications SET project_name = repeat('Roof', 30), borrower_last_name = repeat('Li', 40)
	  WHERE application_uid = (SELECT max(application_uid::text)::uuid FROM applications)`,
}

// furnished is what takes a partner days, or a chore minutes, to bring about.
var furnished = []string{
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

// furnish adds what a browser's short visit does not see happen.
func (r *tour) furnish() {
	r.t.Helper()
	r.change(furnished...)
	failed, subscription := r.find(rows[paths.Delivery]), r.find(rows[paths.Subscription])
	var made struct{}
	r.json(&made, "bulk", "create", failed)
	r.json(&made, "subscription", "update", subscription, "--header", "X-Tenant: northwind",
		"--header", "X-Api-Version: 2026-01", "--rate", "20", "--reason", "The partner asked for it")
	r.json(&made, "subscription", "test", subscription)
	r.ask("/api/v2/application/create-run-decision", `{"requested_amount": -1}`)
	r.ask("/api/v2/loan/"+r.data.Loans[0].UID.String()+"/request-draw", "")
	r.resendByTheDozen()
	r.await(`SELECT count(*) > 40 FROM traffic WHERE unit = 'hour'`)
}

// resendByTheDozen begins a bulk re-send and pauses it when some are sent.
func (r *tour) resendByTheDozen() {
	r.t.Helper()
	var bulk bulkJSON
	r.json(&bulk, "bulk", "create", "--state", "failed", "--pace", "3", "--confirm",
		"--reason", "The partner's database was down", "--partner", r.find(`
			SELECT partner_uid FROM deliveries JOIN subscriptions USING (subscription_uid)
			 WHERE deliveries.state = 'failed' AND url LIKE '%.example/%'
			 GROUP BY partner_uid ORDER BY count(*) DESC LIMIT 1`))
	r.await(`SELECT count(*) >= 3 FROM deliveries
		WHERE resend_reason = 'The partner''s database was down' AND state <> 'pending'`)
	r.json(&bulk, "bulk", "pause", bulk.UID.String())
	r.more = append(r.more, paths.To(paths.Bulk, bulk.UID.String()))
}

// ask makes a request that is refused.
func (r *tour) ask(path, body string) {
	r.t.Helper()
	if status := call(r.t, r.data, http.MethodPost, r.server.url+path, body); status < 400 {
		r.t.Errorf("%s answered %d", path, status)
	}
}

// change runs statements.
func (r *tour) change(statements ...string) {
	r.t.Helper()
	for _, statement := range statements {
		if _, err := r.db.ExecContext(r.t.Context(), statement); err != nil {
			r.t.Fatalf("%v in %s", err, statement)
		}
	}
}

// find returns the one value that a query answers with.
func (r *tour) find(query string) string {
	r.t.Helper()
	var value string
	if err := r.db.Get(&value, query); err != nil {
		r.t.Fatalf("%v in %s", err, strings.TrimSpace(query))
	}
	return value
}

// subscribe lets the first demo partner's events go to an address.
func (r *tour) subscribe(url string) {
	r.t.Helper()
	var made subscriptionJSON
	r.json(&made, "subscription", "create", "--partner", r.data.Partners[0].UID.String(),
		"--url", url, "--event", "all")
}

// await waits until a query answers true.
func (r *tour) await(query string) {
	r.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; {
		var holds bool
		if err := r.db.Get(&holds, query); err != nil {
			r.t.Fatal(err)
		}
		if holds {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("it does not come true: %s; the service logged %s", query, r.server.logged())
		}
	}
}
