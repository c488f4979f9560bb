package retention_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/outbox"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/retention"
)

// today is the date of the tests; the months before it go back far enough.
var today = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// archive is a database with months of the past and a service over it.
type archive struct {
	*retention.Service
	t                               *testing.T
	clock                           atomic.Int64
	partner, merchant, subscription uuid.UUID
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	db := pgtest.New(t)
	a := &archive{
		Service: &retention.Service{DB: db}, t: t,
		partner: uuid.New(), merchant: uuid.New(), subscription: uuid.New(),
	}
	a.clock.Store(today.UnixMicro())
	db.Now = func() time.Time { return time.UnixMicro(a.clock.Load()).UTC() }
	a.exec(`SELECT drawbridge_make_partitions($1, $2, 3)`, today.AddDate(-2, 0, 0), today)
	a.exec(`INSERT INTO partners VALUES ($1, 'Solar Partners', $2)`, a.partner, today)
	a.exec(`INSERT INTO merchants VALUES ($1, $2, 'Sunny Roofs', $3)`, a.merchant, a.partner, today)
	a.exec(`
		INSERT INTO subscriptions (subscription_uid, partner_uid, url, auth, events, all_merchants,
		                           state, created_at, updated_at)
		VALUES ($1, $2, 'https://hooks.example/in', 'none', '{all}', true, 'active', $3, $3)`,
		a.subscription, a.partner, today)
	return a
}

func (a *archive) exec(query string, args ...any) {
	a.t.Helper()
	pgtest.Exec(a.t, a.DB, query, args...)
}

func (a *archive) count(query string, args ...any) int {
	a.t.Helper()
	return pgtest.Count(a.t, a.DB, query, args...)
}

func (a *archive) application() uuid.UUID {
	a.t.Helper()
	uid := uuid.New()
	a.exec(`
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		VALUES ($1, $2, $3, 'partner', 'Approved', 'enabled', 1, 'Ana', 'Lima', 'ana@example.com',
		        'Roof', $4, $4)`, uid, a.merchant, a.partner, today)
	return uid
}

func (a *archive) insertEvent(application uuid.UUID, at time.Time) uuid.UUID {
	a.t.Helper()
	event := uuid.New()
	a.exec(`
		INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid, application_uid,
		                    status, body, passed_over)
		VALUES ($1, $2, 'task.created', $3, $4, $5, $6, '{"a":1}', '[]')`,
		event, at, a.partner, a.merchant, application, uuid.NewString())
	return event
}

// record writes an event with a delivery in the state and an attempt of it, as of a time in the
// past, and returns the event.
func (a *archive) record(application uuid.UUID, at time.Time, state string) uuid.UUID {
	a.t.Helper()
	event := a.insertEvent(application, at)
	a.deliver(event, application, at, at, state)
	return event
}

// leaveInOutbox writes an event that was recorded at a time in the past for the subscription, and
// has not been published since. It returns the event.
func (a *archive) leaveInOutbox(application uuid.UUID, at time.Time) uuid.UUID {
	a.t.Helper()
	event := a.insertEvent(application, at)
	a.exec(`
		INSERT INTO outbox (event_uid, occurred_at, recorded_at, kind, status, merchant_uid,
		                    application_uid, owed, delivery_uids)
		VALUES ($1, $2, $2, 'task.created', 'Pending', $3, $4, ARRAY[$5::uuid], ARRAY[$6::uuid])`,
		event, at, a.merchant, application, a.subscription, uuid.New())
	return event
}

// deliver writes a delivery of an event with an attempt.
func (a *archive) deliver(event, application uuid.UUID, eventAt, at time.Time, state string) {
	a.t.Helper()
	delivery := uuid.New()
	a.exec(`
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, state, attempt_count, queued,
		                        next_attempt_at)
		VALUES ($1, $2, $3, $4, $5, 'task.created', $6, 'Pending', $7, 1, false,
		        CASE WHEN $7 IN ('pending', 'retrying') THEN $2::timestamptz END)`,
		delivery, at, a.subscription, event, eventAt, application, state)
	a.exec(`
		INSERT INTO attempts (delivery_uid, delivery_created_at, number, started_at, http_status,
		                      duration_us, request_headers, response_headers, response_body)
		VALUES ($1, $2, 1, $2, 200, 5, '[{"name":"host","value":"x"}]', '[]', 'thanks')`,
		delivery, at)
}

// mail writes an e-mail of an application, which may be nil, as sent at a time in the past.
func (a *archive) mail(application any, name string, at time.Time) {
	a.t.Helper()
	a.exec(`
		INSERT INTO emails (email_uid, application_uid, kind, to_name, to_address, params, state,
		                    subject, html_body, text_body, source, created_at, finished_at)
		VALUES (gen_random_uuid(), $1, 'task', $2, 'a@example.com', '{"x": "y"}', 'sent',
		        'Hello', '<p>', 'text', 'From: ...', $3, $3)`, application, name, at)
}

// wantTexts fails unless exactly the e-mails of these names have their text.
func (a *archive) wantTexts(names ...string) {
	a.t.Helper()
	var left []string
	err := a.DB.SelectContext(context.Background(), &left, `
		SELECT to_name
		  FROM emails
		 WHERE html_body <> '' AND text_body <> '' AND source <> '' AND params <> '{}'
		   AND content_removed_at IS NULL
		 ORDER BY to_name`)
	if err != nil || !slices.Equal(left, names) {
		a.t.Errorf("text left of %v, want %v, %v", left, names, err)
	}
}

// publishFeed gives the events their positions in the feed.
func (a *archive) publishFeed() {
	a.t.Helper()
	if _, err := outbox.New(a.DB).PublishAll(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// wantFeedLikeEvents fails unless the feed has exactly the existing events.
func (a *archive) wantFeedLikeEvents() {
	a.t.Helper()
	if n := a.count(`
		SELECT count(*)
		  FROM events e
		  FULL JOIN feed f USING (event_uid, occurred_at)
		 WHERE e.kind IS NULL OR f.position IS NULL`); n != 0 {
		a.t.Errorf("%d events are in the feed or in their table alone", n)
	}
}

func (a *archive) run() retention.Report {
	a.t.Helper()
	report, err := a.Run(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	return report
}

func (a *archive) hold(application uuid.UUID) {
	a.t.Helper()
	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := a.Place(ctx, tx, application, "legal@lender.example", "case 7")
		return err
	})
}

func (a *archive) do(use func(ctx context.Context, tx *postgres.Tx) error) {
	a.t.Helper()
	if err := a.try(use); err != nil {
		a.t.Fatal(err)
	}
}

func (a *archive) try(use func(ctx context.Context, tx *postgres.Tx) error) error {
	return a.DB.InTx(context.Background(), func(tx *postgres.Tx) error {
		return use(context.Background(), tx)
	})
}

// wholeness is what is left of an event: its row, its body, its deliveries, their attempts, and the
// contents of those.
type wholeness struct{ row, body, deliveries, attempts, contents int }

func (a *archive) of(event uuid.UUID) wholeness {
	a.t.Helper()
	return wholeness{
		row:  a.count(`SELECT count(*) FROM events WHERE event_uid = $1`, event),
		body: a.count(`SELECT count(*) FROM events WHERE event_uid = $1 AND body <> ''`, event),
		deliveries: a.count(
			`SELECT count(*) FROM deliveries WHERE event_uid = $1`, event),
		attempts: a.count(`
			SELECT count(*)
			  FROM attempts a
			  JOIN deliveries d USING (delivery_uid)
			 WHERE d.event_uid = $1`, event),
		contents: a.count(`
			SELECT count(*)
			  FROM attempts a
			  JOIN deliveries d USING (delivery_uid)
			 WHERE d.event_uid = $1
			   AND a.response_body IS NOT NULL`, event),
	}
}

func (a *archive) want(what string, event uuid.UUID, want wholeness) {
	a.t.Helper()
	if got := a.of(event); got != want {
		a.t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

func wantRefusal(t *testing.T, err error, code lending.Code) {
	t.Helper()
	if refusal, ok := errors.AsType[*lending.Error](err); !ok || refusal.Code != code {
		t.Errorf("error %v, want %s", err, code)
	}
}
