package alert_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/internal/alert"
	"drawbridge/internal/app/apptest"
	"drawbridge/internal/catalog"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// A draw that waits for too long is told of once, by whichever process sees it first, and
// the alert ends by itself when the money moves on.
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
	if item, _ := h.open(alert.KindDrawOverdue); item.Count != 1 {
		t.Errorf("with one paid it counts %d", item.Count)
	}
	h.Settle(h, second.ID)
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok {
		t.Errorf("still open: %+v", item)
	}

	// On the next day the first has waited for too long in its new state, too.
	h.move(24 * time.Hour)
	h.look()
	item, ok = h.open(alert.KindDrawOverdue)
	if !ok || h.mails(email.KindDrawsOverdue) != 2 {
		t.Fatalf("on the next day: %+v, %d mails", item, h.mails(email.KindDrawsOverdue))
	}
	// What a person closes stays closed.
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Resolve(ctx, tx, item.UID, "the bank is asked", "sam@lender.example")
		return err
	})
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok || h.mails(email.KindDrawsOverdue) != 2 {
		t.Errorf("open again: %+v", item)
	}
}

// resolve closes the open item of a kind, as a person does.
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

// What becomes overdue on a day after somebody closed that day's item is told of as well.
func TestALaterDrawOpensTheDayAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.clock.Set(time.Date(2026, 11, 24, 14, 0, 0, 0, time.UTC)) // nine o'clock in New York
	quick := h.AddProduct(h, catalog.NewProduct{Code: "QUICK", OverdueHours: "1"})
	h.Draw(h, h.Loan(h, quick).UID, loan.DrawInput{})
	h.move(time.Hour)
	h.look()
	h.resolve(alert.KindDrawOverdue)
	h.move(time.Hour)
	h.Draw(h, h.Loan(h, quick).UID, loan.DrawInput{})
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
	h.resolve(alert.KindDrawOverdue)
	h.look()
	if item, ok := h.open(alert.KindDrawOverdue); ok || h.mails(email.KindDrawsOverdue) != 2 {
		t.Errorf("open again: %+v", item)
	}
}

// The same goes for applications of one day, at either of their times.
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
	// Far from midnight, where the change to winter time would put two of them on one day.
	h.clock.Set(time.Date(2026, 11, 25, 15, 0, 0, 0, time.UTC))
	h.exec(`
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		SELECT gen_random_uuid(), $1, $2, 'partner', 'Pending Review', 'enabled', 1, 'Ana', 'Lima',
		       'ana@example.com', 'Roof', at, at
		  FROM generate_series(1, 370) AS n
		 CROSS JOIN LATERAL (SELECT $3::timestamptz - make_interval(days => 20 + n) AS at) AS made`,
		h.Merchant, h.Partner, h.clock.Now())
	h.look()
	h.look()
	if open := h.count(`
		SELECT count(*) FROM attention_items WHERE closed_at IS NULL AND kind = $1`,
		alert.KindUndecided); open != 370 {
		t.Errorf("%d of 370 days are open", open)
	}
}

// An application without a decision is told of after 20 days, and once more after 28.
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
