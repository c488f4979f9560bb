package search_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/search"
	"drawbridge/internal/seed"
)

func filled(t *testing.T, deliveries int) (*postgres.DB, *search.Service) {
	t.Helper()
	db := pgtest.New(t)
	if _, err := seed.Fill(t.Context(), db, seed.Plan{
		Deliveries: deliveries, Attempts: deliveries, Partners: 6,
	}); err != nil {
		t.Fatal(err)
	}
	return db, &search.Service{DB: db}
}

func TestFind(t *testing.T) {
	t.Parallel()
	db, service := filled(t, 3000)
	one := func(query string) string {
		t.Helper()
		var text string
		if err := db.Get(&text, query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return text
	}
	application := one(`SELECT application_uid FROM applications ORDER BY 1 LIMIT 1`)
	reference := one(`SELECT external_reference FROM applications ORDER BY application_uid LIMIT 1`)
	address := one(`SELECT borrower_email FROM applications ORDER BY application_uid LIMIT 1`)
	borrower := one(`SELECT upper(borrower_first_name || ' ' || borrower_last_name)
		FROM applications ORDER BY application_uid LIMIT 1`)
	// References that look like the subjects of events.
	referred := one(`UPDATE applications SET external_reference = 'application/2026-17'
		WHERE application_uid = (SELECT max(application_uid::text)::uuid FROM applications)
		RETURNING application_uid`)
	paid := one(`WITH draw AS (
			SELECT application_uid, merchant_disbursement_id FROM disbursements LIMIT 1
		), change AS (
			INSERT INTO disbursement_changes (merchant_disbursement_id, status, reference, changed_at,
			                                  changed_by)
			SELECT merchant_disbursement_id, 'FUNDING_PROCESSING', 'disbursement/1003-run7', now(), ''
			  FROM draw
		)
		SELECT application_uid FROM draw`)
	delivery := one(`SELECT delivery_uid FROM deliveries ORDER BY 1 LIMIT 1`)
	event := one(`SELECT event_uid FROM events ORDER BY 1 LIMIT 1`)
	subscription := one(`SELECT subscription_uid FROM subscriptions ORDER BY 1 LIMIT 1`)
	host := one(`SELECT split_part(url, '/', 3) FROM subscriptions ORDER BY subscription_uid LIMIT 1`)
	named := one(`UPDATE subscriptions SET name = 'Ledger Import (new)'
		WHERE subscription_uid = (SELECT max(subscription_uid::text)::uuid FROM subscriptions)
		RETURNING subscription_uid`)
	mail := one(`SELECT email_uid FROM emails ORDER BY 1 LIMIT 1`)
	partner := one(`SELECT partner_uid FROM partners ORDER BY 1 LIMIT 1`)
	merchant := one(`SELECT merchant_uid FROM merchants ORDER BY 1 LIMIT 1`)
	if _, err := db.Exec(`
		INSERT INTO clients (client_id, partner_uid, is_group, secret_hash, created_at)
		SELECT 'cl_0123456789', partner_uid, false, decode(repeat('00', 32), 'hex'), now()
		  FROM partners LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	product := one(`SELECT product_uid FROM products ORDER BY 1 LIMIT 1`)
	code := one(`SELECT code FROM products ORDER BY product_uid LIMIT 1`)
	called := one(`SELECT name FROM products ORDER BY product_uid LIMIT 1`)
	tests := []struct {
		sought string
		kind   search.Kind
		id     string
	}{
		{application, search.Application, application},
		{" " + strings.ToUpper(application) + "\n", search.Application, application},
		{strings.ToLower(reference), search.Application, application},
		{strings.ToUpper(address), search.Application, application},
		{address[:len(address)-4], search.Application, application},
		{borrower, search.Application, application},
		{"application/" + application, search.Application, application},
		{"application/2026-17", search.Application, referred},
		{"disbursement/1003-run7", search.Disbursement, paid},
		{delivery, search.Delivery, delivery},
		{event, search.Event, event},
		{subscription, search.Subscription, subscription},
		{host, search.Subscription, subscription},
		{"https://" + host + "/drawbridge", search.Subscription, subscription},
		{"ledger imp", search.Subscription, named},
		{"IMPORT", search.Subscription, named},
		{mail, search.Email, mail},
		{partner, search.Partner, partner},
		{merchant, search.Merchant, merchant},
		{"cl_0123456789", search.Client, "cl_0123456789"},
		{product, search.Product, product},
		{strings.ToLower(code), search.Product, product},
		{strings.ToUpper(called), search.Product, product},
	}
	for _, test := range tests {
		hits, err := service.Find(t.Context(), test.sought)
		if err != nil {
			t.Errorf("%q: %v", test.sought, err)
			continue
		}
		found := false
		for _, hit := range hits {
			found = found || hit.Kind == test.kind && hit.ID == test.id
		}
		if !found {
			t.Errorf("%q finds %+v, want the %s %s", test.sought, hits, test.kind, test.id)
		}
	}
	if hits, err := service.Find(t.Context(), named); err != nil || len(hits) != 1 ||
		!strings.HasPrefix(hits[0].Title, "Ledger Import (new) (https://") {
		t.Errorf("a subscription with a name is shown as %+v, %v", hits, err)
	}
	for _, nothing := range []string{
		"", " ", "nobody", "task/", "disbursement/", "%", "_", `\`, "0", "-1", "99999999999999999999",
	} {
		if hits, err := service.Find(t.Context(), nothing); err != nil || len(hits) > 0 {
			t.Errorf("%q finds %+v, %v", nothing, hits, err)
		}
	}
	for _, wrong := range []string{"a\x00b", "\xff", strings.Repeat("x", 321)} {
		if _, err := service.Find(t.Context(), wrong); lending.ErrorCode(err) != lending.CodeValidation {
			t.Errorf("%.10q: %v, want a refusal", wrong, err)
		}
	}
}

// Names are found by a prefix of any of their words.
func TestFindByName(t *testing.T) {
	t.Parallel()
	_, service := filled(t, 3000)
	for sought, want := range map[string]search.Kind{
		"energy": search.Partner, "PHOENIX": search.Merchant, "bluepeak roofing": search.Merchant,
	} {
		hits, err := service.Find(t.Context(), sought)
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[search.Kind]bool{}
		for _, hit := range hits {
			kinds[hit.Kind] = true
		}
		if !kinds[want] {
			t.Errorf("%q finds %v, want a %s", sought, hits, want)
		}
	}
}

// The big tables are never read completely.
func TestSearchUsesIndexes(t *testing.T) {
	t.Parallel()
	db, _ := filled(t, 20_000)
	month := db.Now().UTC().Format("_y2006m01")
	for sought, index := range map[string]string{
		"0199a6b3-0000-7000-8000-000000000001": "events" + month + "_pkey",
		"borrower7@seed.example":               "applications_email_search",
		"SEED-12":                              "applications_reference_search",
		"borrower 7":                           "applications_name_search",
		"seedling":                             "applications_last_name_search",
	} {
		statement, args := search.Query(sought)
		var plan []string
		if err := db.Select(&plan, `EXPLAIN `+statement, args...); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		for _, table := range []string{"deliveries", "events"} {
			if strings.Contains(text, "Seq Scan on "+table+month) {
				t.Errorf("%q reads all of %s:\n%s", sought, table, text)
			}
		}
		if !strings.Contains(text, index) {
			t.Errorf("%q does not use %s:\n%s", sought, index, text)
		}
	}
}

// Small tables are cheaper to read whole than through an index. With that made expensive, only
// lookups without an index still do it: no table that grows with the traffic may be read so.
func TestEveryLookupHasAnIndex(t *testing.T) {
	t.Parallel()
	db, _ := filled(t, 3000)
	tx, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.Exec(`SET LOCAL enable_seqscan = off`); err != nil {
		t.Fatal(err)
	}
	// These tables are small: their names are checked one by one.
	few := regexp.MustCompile(`Seq Scan on (partners|merchants|products|subscriptions|clients) `)
	for sought, indexes := range map[string][]string{
		postgres.NewUID(db.Now()).String(): {
			"bulk_resends_", "certificates_pkey", "tasks_pkey",
			"attention_items_pkey", "emails_pkey",
			"api_requests" + db.Now().UTC().Format("_y2006m01d02") + "_pkey",
		},
		"application/" + uuid.NewString(): {"applications_pkey"},
		"disbursement/1471":               {"disbursements_pkey"},
		"k7q2@lender.example":             {"emails_message_id_key", "emails_address"},
	} {
		statement, args := search.Query(sought)
		var plan []string
		if err := tx.Select(&plan, `EXPLAIN `+statement, args...); err != nil {
			t.Fatal(err)
		}
		for _, line := range plan {
			if strings.Contains(line, "Seq Scan on ") && !few.MatchString(line) {
				t.Errorf("%q reads a table as a whole: %s", sought, line)
			}
		}
		for _, index := range indexes {
			if !strings.Contains(strings.Join(plan, "\n"), index) {
				t.Errorf("%q does not use %s:\n%s", sought, index, strings.Join(plan, "\n"))
			}
		}
	}
}

// What a picker offers before anybody types comes from the index on the names: lists request it
// with each page.
func TestPickersOfferByIndex(t *testing.T) {
	t.Parallel()
	db, service := filled(t, 3000)
	if _, err := db.Exec(`
		INSERT INTO merchants (merchant_uid, partner_uid, name, created_at)
		SELECT gen_random_uuid(), partner_uid, 'Branch ' || to_char(n, 'FM00000'), now()
		  FROM generate_series(1, 10000) AS n,
		       (SELECT partner_uid FROM partners LIMIT 1) AS p`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`VACUUM ANALYZE merchants`); err != nil {
		t.Fatal(err)
	}
	statement, args := search.PickQuery(search.Merchant, "", uuid.Nil, 12)
	var plan []string
	if err := db.Select(&plan, `EXPLAIN `+statement, args...); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "merchants_named") ||
		strings.Contains(text, "Sort") {
		t.Errorf("the first merchants are found by\n%s", text)
	}
	for text, want := range map[string]int{"": 12, "00": 12, "branch 0999": 10, "nobody": 0} {
		found, err := service.Pick(t.Context(), search.Merchant, text, uuid.Nil, 12)
		if err != nil || len(found.Choices) != want || found.Total < want {
			t.Errorf("%q offers %d of %d, %v; want %d", text, len(found.Choices), found.Total, err, want)
		}
	}
}
