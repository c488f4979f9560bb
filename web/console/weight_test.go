package console_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/compress"
	"drawbridge/internal/operator"
	"drawbridge/internal/seed"
	"drawbridge/views/paths"
	"drawbridge/web/console/list"
)

const (
	// mostHTML bounds the uncompressed size of a full page of a list, mostSent the compressed
	// size, in bytes.
	mostHTML, mostSent = 60_000, 20_000
)

// longRows fill every list with rows of names and addresses as long as those of real
// companies.
var longRows = []string{
	`UPDATE partners SET name = 'Sonnenkraft Renewable Energy ' || right(partner_uid::text, 6)`,
	`UPDATE merchants SET name = 'Northern Arizona Rooftops ' ||
	        right(merchant_uid::text, 6)`,
	`UPDATE subscriptions SET name = 'Loan servicing, western region',
	        url = 'https://hooks.partner' || right(subscription_uid::text, 6) ||
	              '.example/lending/v2/drawbridge'`,
	`UPDATE applications SET borrower_first_name = 'Maria Fernanda',
	        borrower_last_name = 'Oliveira-Nascimento', project_name = 'Roof and battery, phase two',
	        borrower_email = 'maria.fernanda.' || right(application_uid::text, 12) || '@mail.example'`,
	`UPDATE emails SET subject = 'Your application for Roof and battery, phase two: next steps'`,
	`INSERT INTO users (user_uid, email, name, role, password_hash, created_at)
	 SELECT gen_random_uuid(), 'alexandra.konstantinidou.' || n || '@lender.example',
	        'Alexandra Konstantinidou-Petersen', 'operator', '-', now() - n * interval '1 hour'
	   FROM generate_series(1, 120) AS n`,
	`INSERT INTO clients (client_id, name, scopes, is_group, secret_hash, created_at)
	 SELECT 'cl_lender_' || md5(n::text), 'Payments of the loan servicing system ' || n,
	        '{read,applications,funding}', false, sha256(n::text::bytea), now() - n * interval '1 hour'
	   FROM generate_series(1, 120) AS n`,
	`INSERT INTO subscription_hours (subscription_uid, hour, attempts, succeeded, delivered, failed,
	                                 latency)
	 SELECT s.subscription_uid, date_trunc('hour', now()) - n * interval '1 hour', 40 + 7 * n,
	        30 + 5 * n, 30 + 5 * n, 3, (SELECT latency FROM subscription_hours LIMIT 1)
	   FROM subscriptions s, generate_series(0, 24) AS n
	     ON CONFLICT DO NOTHING`,
	`UPDATE disbursements d SET status = 'FUNDING_PROCESSING', settled_at = NULL, returned_at = NULL
	  WHERE status = 'FUNDING_SETTLED'
	    AND NOT EXISTS (SELECT FROM disbursements l
	                     WHERE l.application_uid = d.application_uid
	                       AND (l.disbursement_number > d.disbursement_number
	                            OR l.status IN ('FUNDING_REQUESTED', 'FUNDING_PROCESSING')))`,
	`INSERT INTO attention_items (item_uid, kind, subject, subscription_uid, severity, detail, count,
	                              opened_at, last_seen_at)
	 SELECT gen_random_uuid(), 'never_succeeded', subscription_uid::text, subscription_uid, 'problem',
	        '', 1, now(), now()
	   FROM subscriptions`,
	`UPDATE attention_items SET closed_at = NULL, closed_by = '', owner = 'alexandra.k@lender.example',
	        detail = 'Every attempt has failed for a while. Sending goes on. Last error: HTTP 503'`,
	`INSERT INTO statement_keys (key_id, public_key, private_sealed, valid_from)
	 VALUES ('weighed', sha256('weighed'), 'weighed', now())`,
	`INSERT INTO statement_days (day, begins, ends, finished_at)
	 VALUES ('2026-01-05', '2026-01-04 22:00Z', '2026-01-05 22:00Z', now())`,
	`INSERT INTO statements (merchant_uid, day, version, frozen_at, key_id, json, json_signature, csv,
	                         csv_signature, content, disbursements, changes, events, gross, fee, net,
	                         unresolved)
	 SELECT merchant_uid, '2026-01-05', 1, now(), 'weighed', '{}', s, '', s, sha256('x'), 12, 34, 56,
	        1234567.89, 12345.67, 1222222.22, true
	   FROM merchants, (VALUES (sha256('a') || sha256('b'))) AS signed (s)`,
}

// TestListsAreLight checks that every list of the console, with a full page of rows, is
// small enough for a phone on a poor network.
func TestListsAreLight(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	_, err := seed.Fill(t.Context(), r.DB, seed.Plan{
		Deliveries: 10_000, Attempts: 15_000, Partners: 72, Days: 20,
	})
	r.must(err)
	for n := range list.PageSize {
		r.NewPartner(t, "Another partner "+strings.Repeat("x", n))
	}
	for _, statement := range longRows {
		r.Exec(t, statement)
	}
	r.Exec(t, `
		INSERT INTO bulk_resends (bulk_uid, partner_uid, kind, scope, pace, state, reason, created_by,
		                          created_at, confirmed_by, confirmed_at, settled_at, ended_at)
		SELECT gen_random_uuid(), $1, 'recover', '{}', 20, 'finished',
		       'The database of the partner was down all night, ticket ' || n,
		       'alexandra.k@lender.example', now(), 'alexandra.k@lender.example', now(), now(), now()
		  FROM generate_series(1, 60) AS n`, r.Partner)
	const admin = "ada@lender.example"
	r.addUser(admin, operator.RoleAdmin)
	b := r.stranger()
	b.signIn(admin, password)
	weighed := 0
	for _, route := range r.Console.Routes() {
		if route.Method != http.MethodGet || strings.Contains(route.Path, ":") ||
			strings.HasSuffix(route.Path, ".csv") || strings.HasSuffix(route.Path, "/live") {
			continue
		}
		page := b.get(route.Path)
		if page.find("main .pager").Length() == 0 || route.Path == paths.Queues {
			continue // not a list, or one that does not grow
		}
		weighed++
		rows := page.find("main tbody tr").Length()
		sent := len(compress.Gzip([]byte(page.Raw)))
		t.Logf("%-32s %2d rows, %6d bytes, %5d sent", route.Path, rows, len(page.Raw), sent)
		if rows != list.PageSize {
			t.Errorf("%s shows %d rows, want %d", route.Path, rows, list.PageSize)
		}
		if len(page.Raw) > mostHTML || sent > mostSent {
			t.Errorf("%s weighs %d bytes, %d as it is sent", route.Path, len(page.Raw), sent)
		}
	}
	if weighed < 15 {
		t.Errorf("only %d lists were weighed", weighed)
	}
}

// TestPagesAreCompressed for browsers that accept it, but never answers to forms: they may
// show a new secret, about which the length alone could reveal something.
func TestPagesAreCompressed(t *testing.T) {
	t.Parallel()
	b := newHarness(t).admin()
	b.header.Set("Accept-Encoding", "gzip")
	incomplete := url.Values{"name": {"Where"}, "token": {uuid.NewString()}}
	for _, asked := range []struct {
		method, path string
		form         url.Values
		encoding     string
	}{
		{http.MethodGet, paths.Deliveries, nil, "gzip"},
		{http.MethodPost, paths.SubscriptionNew, incomplete, ""},
	} {
		response := b.open(t.Context(), asked.method, asked.path, asked.form)
		raw, err := io.ReadAll(response.Body)
		b.must(err)
		_ = response.Body.Close()
		if got := response.Header.Get("Content-Encoding"); got != asked.encoding || len(raw) < 4<<10 {
			t.Errorf("%s %s came as %q, %d bytes", asked.method, asked.path, got, len(raw))
		}
	}
}
