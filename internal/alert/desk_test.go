package alert_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/alert"
	"drawbridge/internal/app/apptest"
	"drawbridge/internal/catalog"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// A draw that waits for too long is reported once, by whichever process sees it first, and the
// alert closes by itself when the money moves on.
func TestOverdueDrawsAreTold(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.clock.Set(time.Date(2026, 11, 24, 15, 0, 0, 0, time.UTC)) // ten o'clock in New York
	quick := h.AddProduct(h, catalog.NewProduct{Code: "QUICK", OverdueHours: "2"})
	first := h.Draw(h, h.Loan(h, quick).UID, loan.DrawInput{})
	second := h.Draw(h, h.Loan(h, quick).UID, loan.DrawInput{})
	h.move(2*time.Hour - time.Second)
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok {
		t.Fatalf("too early: %+v", item)
	}
	h.move(time.Second)
	var processes sync.WaitGroup
	for range 4 {
		processes.Go(func() {
			if err := h.Watch(h.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	h.look()
	item, ok := h.open(alert.KindDrawOverdue)
	if !ok || item.Count != 2 || item.Subject != "2026-11-24" ||
		item.Severity != alert.Problem || !strings.Contains(item.Detail, "#") {
		t.Fatalf("found %+v", item)
	}
	if got := h.mails(email.KindDrawsOverdue); got != 1 {
		t.Errorf("%d mails", got)
	}
	h.Fund(h, first.ID, lending.FundingProcessing)
	h.look()
	seen := item.Seen()
	if item, _ := h.open(alert.KindDrawOverdue); item.Count != 1 || item.Seen() == seen {
		t.Errorf("with one paid it counts %d, and resolving it closes %q", item.Count, item.Seen())
	}
	h.Settle(h, second.ID)
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok {
		t.Errorf("still open: %+v", item)
	}

	// On the next day the first draw has waited for too long in its new state, too.
	h.move(24 * time.Hour)
	h.look()
	item, ok = h.open(alert.KindDrawOverdue)
	if !ok || h.mails(email.KindDrawsOverdue) != 2 {
		t.Fatalf("on the next day: %+v, %d mails", item, h.mails(email.KindDrawsOverdue))
	}
	// An item that a person closed stays closed.
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Resolve(ctx, tx, item.UID, "the bank is asked", "sam@lender.example")
		return err
	})
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok || h.mails(email.KindDrawsOverdue) != 2 {
		t.Errorf("open again: %+v", item)
	}
}

// resolve closes the open item of a kind, as a person would.
func (h *harness) resolve(kind alert.Kind) {
	h.Helper()
	item, ok := h.open(kind)
	if !ok {
		h.Fatalf("no item of kind %s is open", kind)
	}
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Resolve(ctx, tx, item.UID, "seen to", "sam@lender.example")
		return err
	})
}

// A draw that becomes overdue on a day whose item somebody closed is reported as well.
func TestALaterDrawOpensTheDayAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.clock.Set(time.Date(2026, 11, 24, 14, 0, 0, 0, time.UTC)) // nine o'clock in New York
	quick := h.AddProduct(h, catalog.NewProduct{Code: "QUICK", OverdueHours: "1"})
	slow := h.AddProduct(h, catalog.NewProduct{Code: "SLOW", OverdueHours: "100"})
	h.Draw(h, h.Loan(h, quick).UID, loan.DrawInput{})
	for range 2 {
		h.Draw(h, h.Loan(h, slow).UID, loan.DrawInput{})
	}
	h.move(time.Hour)
	h.look()
	h.resolve(alert.KindDrawOverdue)
	h.move(time.Hour)
	later := h.Draw(h, h.Loan(h, quick).UID, loan.DrawInput{})
	h.move(time.Hour - time.Second)
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok {
		t.Errorf("open before its time: %+v", item)
	}
	h.move(time.Second)
	h.look()
	item, ok := h.open(alert.KindDrawOverdue)
	if !ok || item.Subject != "2026-11-24" || h.mails(email.KindDrawsOverdue) != 2 {
		t.Fatalf("open %t: %+v, %d mails", ok, item, h.mails(email.KindDrawsOverdue))
	}
	h.Fund(h, later.ID, lending.FundingProcessing)
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok {
		t.Errorf("with the later one paid it is open for what was closed: %+v", item)
	}
	// A shorter limit for a product makes earlier draws overdue at once.
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Catalog.SetOverdueHours(ctx, tx, uuid.MustParse(slow.UID), "1")
		return err
	})
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); !ok || h.mails(email.KindDrawsOverdue) != 3 {
		t.Errorf("with less time: %+v, %d mails", item, h.mails(email.KindDrawsOverdue))
	}
	h.resolve(alert.KindDrawOverdue)
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok || h.mails(email.KindDrawsOverdue) != 3 {
		t.Errorf("open again: %+v", item)
	}
}

// The same holds for applications of one day, at either of their times.
func TestALaterApplicationOpensTheDayAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	made := time.Date(2026, 11, 2, 14, 0, 0, 0, time.UTC)
	h.clock.Set(made)
	h.Application(h)
	h.move(2 * time.Hour)
	h.Application(h)
	for n, step := range []struct {
		after time.Duration
		opens bool
	}{
		{20 * 24 * time.Hour, true},
		{20*24*time.Hour + time.Hour, false},
		{20*24*time.Hour + 2*time.Hour, true},
		{28 * 24 * time.Hour, true},
		{28*24*time.Hour + time.Hour, false},
		{28*24*time.Hour + 2*time.Hour, true},
	} {
		h.clock.Set(made.Add(step.after))
		h.look()
		if item, ok := h.open(alert.KindUndecided); ok != step.opens {
			t.Fatalf("step %d, after %s: %+v", n, step.after, item)
		}
		if step.opens {
			h.resolve(alert.KindUndecided)
		}
		h.look()
		if item, ok := h.open(alert.KindUndecided); ok {
			t.Fatalf("step %d, after %s, it is open again: %+v", n, step.after, item)
		}
	}
	if got := h.mails(email.KindUndecided); got != 4 {
		t.Errorf("%d mails", got)
	}
}

// However many days have undecided applications, the oldest are not forgotten.
func TestNoDayOfUndecidedApplicationsIsLeftOut(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	// Far from midnight, because the change to winter time would put two of them on one day.
	h.clock.Set(time.Date(2026, 11, 25, 15, 0, 0, 0, time.UTC))
	h.undecided(370)
	h.look()
	h.look()
	if open := h.undecidedDays(); open != 370 {
		t.Errorf("%d of 370 days are open", open)
	}
}

// undecided adds an application without a decision on each of that many days.
func (h *harness) undecided(days int) {
	h.Helper()
	h.exec(`
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		SELECT gen_random_uuid(), $1, $2, 'partner', 'Pending Review', 'enabled', 1, 'Ana', 'Lima',
		       'ana@example.com', 'Roof', at, at
		  FROM generate_series(1, $4) AS n
		 CROSS JOIN LATERAL (SELECT $3::timestamptz - make_interval(days => 20 + n) AS at) AS made`,
		h.Merchant, h.Partner, h.clock.Now(), days)
}

// undecidedDays counts the days with an open item.
func (h *harness) undecidedDays() int {
	h.Helper()
	return h.count(`
		SELECT count(*) FROM attention_items WHERE closed_at IS NULL AND kind = $1`,
		alert.KindUndecided)
}

// A run that ends early has reported a part of the days, and the next one continues there. No
// day is reported twice, nor by a mail of its own.
func TestManyDaysAreToldOfInParts(t *testing.T) {
	t.Parallel()
	const days, people, part = 150, 200, 100
	h := newHarness(t)
	h.clock.Set(time.Date(2026, 11, 25, 15, 0, 0, 0, time.UTC))
	h.exec(`UPDATE mail_settings SET alert_to = '{}'`)
	h.exec(`
		INSERT INTO users (user_uid, email, name, role, password_hash, created_at)
		SELECT gen_random_uuid(), 'op' || n || '@lender.example', 'N. N.', 'operator', '', now()
		  FROM generate_series(1, $1) AS n`, people)
	h.undecided(days)
	round, end := context.WithCancel(t.Context())
	ended, back := make(chan error, 1), errors.New("taken back")
	err := h.Try(h, func(ctx context.Context, tx *postgres.Tx) error {
		// A lock on the newest day, for which the run waits.
		_, err := tx.ExecContext(ctx, `
			INSERT INTO attention_items (item_uid, kind, subject, severity, detail, count, opened_at,
			                             last_seen_at)
			VALUES (gen_random_uuid(), $1, '2026-12-04', 'warning', '', 1, now(), now())`,
			alert.KindUndecided)
		if err != nil {
			return err
		}
		go func() { ended <- h.Watch(round) }()
		pgtest.WaitForLock(t, h.DB)
		end()
		if err := waittest.Receive(t, "the end of the round", ended); err == nil {
			t.Error("the round knows of nothing that it left out")
		}
		return back
	})
	if !errors.Is(err, back) {
		t.Fatal(err)
	}
	if open, mails := h.undecidedDays(), h.mails(email.KindUndecided); open != part ||
		mails != people {
		t.Errorf("the first round opened %d items and made %d mails", open, mails)
	}
	h.look()
	h.look()
	told := h.count(`
		SELECT count(*)
		  FROM (SELECT
		          FROM emails, unnest(string_to_array(params ->> 'day', ', ')) AS day
		         WHERE kind = $1
		         GROUP BY to_address, day
		        HAVING count(*) = 1) AS once`, email.KindUndecided)
	if open, mails := h.undecidedDays(), h.mails(email.KindUndecided); open != days ||
		mails != 2*people || told != days*people || h.Queued(t, email.Queue) != mails {
		t.Errorf("%d items are open; %d mails, %d of them in the queue, told %d times of a day",
			open, mails, h.Queued(t, email.Queue), told)
	}
}

// The desk's checks may use up the time of a run, but the other checks were done by then.
func TestADeskThatTakesTooLongHoldsUpNoReview(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.exec(`
		INSERT INTO attention_items (item_uid, kind, subject, subscription_uid, severity, detail,
		                             count, opened_at, last_seen_at)
		VALUES (gen_random_uuid(), $1, $2::text, $2::uuid, 'problem', '', 1, now(), now())`,
		alert.KindFailing, h.subscription)
	round, end := context.WithCancel(t.Context())
	h.OverdueDraws = func(ctx context.Context) ([]alert.LateDraw, error) {
		end()
		return nil, ctx.Err()
	}
	if err := h.Watch(round); !errors.Is(err, context.Canceled) {
		t.Errorf("the round ended with %v", err)
	}
	if item, ok := h.open(alert.KindFailing); ok {
		t.Errorf("still open: %+v", item)
	}
}

// An application without a decision is reported after 20 days, and once more after 28.
func TestUndecidedApplicationsAreTold(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.clock.Set(time.Date(2026, 11, 2, 15, 0, 0, 0, time.UTC))
	waits := h.Application(h)
	h.Application(h, apptest.In(lending.StatusDeclined))
	h.Loan(h, h.NewProduct(h, "SOLAR", "50,50"))
	for _, step := range []struct {
		days     int
		severity alert.Severity
		subject  string
		mails    int
	}{
		{19, "", "", 0},
		{20, alert.Warning, "2026-12-02", 1},
		{27, alert.Warning, "2026-12-02", 1},
		{28, alert.Problem, "2026-12-02, urgent", 2},
		{60, alert.Problem, "2026-12-02, urgent", 2},
	} {
		h.clock.Set(time.Date(2026, 11, 2+step.days, 15, 0, 0, 0, time.UTC))
		h.look()
		item, _ := h.open(alert.KindUndecided)
		if item.Severity != step.severity || item.Subject != step.subject ||
			h.mails(email.KindUndecided) != step.mails {
			t.Errorf("after %d days: %+v, %d mails", step.days, item, h.mails(email.KindUndecided))
		}
	}
	h.Move(h, waits.UID, lending.StatusDeclined)
	h.look()
	if item, ok := h.open(alert.KindUndecided); ok {
		t.Errorf("still open: %+v", item)
	}
}
