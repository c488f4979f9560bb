package alert_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/alert"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/health"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

func TestOverdueDeliveries(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.publish()
	h.move(80 * time.Second) // an attempt may be under way for 30 s
	h.look()
	if item, ok := h.open(alert.KindOverdue); ok {
		t.Errorf("it may still be under way: %+v", item)
	}
	h.move(20 * time.Second)
	h.look()
	if item, ok := h.open(alert.KindOverdue); !ok || item.Count != 1 {
		t.Errorf("nobody sent it for 100 s, and the item is %+v", item)
	}
	h.work()
	h.look()
	if _, ok := h.open(alert.KindOverdue); ok {
		t.Error("the item is open although nothing is overdue")
	}
}

func TestWaitingOnPurposeIsNotOverdue(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Webhooks.Subscriptions.Pause(ctx, tx, h.subscription, "operator")
		return err
	})
	h.publish()
	h.work()
	h.publish()
	h.exec(`UPDATE deliveries SET held = true, queued = false WHERE queued`)
	h.move(time.Hour)
	h.look()
	if item, ok := h.open(alert.KindOverdue); ok {
		t.Errorf("parked and held deliveries are overdue: %+v", item)
	}
}

func TestNeverSucceeded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.fail(1)
	h.move(6 * 24 * time.Hour)
	h.look()
	if _, ok := h.open(alert.KindNeverSucceeded); ok {
		t.Error("an alarm after six days")
	}
	h.move(25 * time.Hour)
	h.fail(1)
	h.look()
	if item, ok := h.open(alert.KindNeverSucceeded); !ok || item.Count != 6 {
		t.Errorf("item %+v", item)
	}
	h.status.Store(http.StatusOK)
	h.publish()
	h.finish()
	h.look()
	if _, ok := h.open(alert.KindNeverSucceeded); ok {
		t.Error("the alarm goes on after a success")
	}
}

// An item opens once for a subscription that cannot be sent to, and closes when its secret is
// set again or its key is back.
func TestUnopenedSubscription(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	keys, others := h.Webhooks.Subscriptions.Keys, secret.GenerateKey()
	ring, err := secret.ParseKeyring(others)
	h.must(err)
	lost := keys.Current()
	h.Webhooks.Subscriptions.Keys = ring
	h.publish()
	h.work()
	for range 2 {
		h.look()
		item, ok := h.open(alert.KindUnopened)
		if !ok || item.Count != 1 || !strings.Contains(item.Detail, lost) {
			t.Errorf("item %+v", item)
		}
	}
	if _, ok := h.open(alert.KindOverdue); ok {
		t.Error("what waits on purpose is overdue")
	}
	h.Webhooks.Subscriptions.Keys = keys
	h.look()
	if _, ok := h.open(alert.KindUnopened); ok {
		t.Error("the item is open although the key is back")
	}
	h.Webhooks.Subscriptions.Keys = ring
	h.publish()
	h.work()
	h.look()
	fresh := secret.New("given-again-0123456789")
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Webhooks.Subscriptions.Amend(ctx, tx, h.subscription,
			subscription.Patch{Secret: &fresh}, "operator")
		return err
	})
	h.look()
	if _, ok := h.open(alert.KindUnopened); ok {
		t.Error("the item is open although the secret was given again")
	}
	n := h.count(`SELECT count(*) FROM attention_items WHERE kind = $1`, alert.KindUnopened)
	if n != 2 {
		t.Errorf("%d items, want one for each time", n)
	}
}

func TestFailedMails(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const mail = `
		INSERT INTO emails (email_uid, kind, to_name, to_address, params, state, created_at,
		                    finished_at, resend_of, resent_by)
		VALUES ($1, 'task', '', 'ana@example.com', '{}', $2, $3, $3, $4, $5)`
	first := postgres.NewUID(h.clock.Now())
	h.exec(mail, first, "failed", h.clock.Now(), nil, "")
	h.move(time.Minute)
	h.look()
	item, ok := h.open(alert.KindMailFailed)
	if !ok || item.Count != 1 || item.OpenedAt.After(item.LastSeenAt) {
		t.Fatalf("item %+v", item)
	}
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Resolve(ctx, tx, item.UID, "told the borrower", "sam")
		return err
	})
	h.look()
	if _, ok := h.open(alert.KindMailFailed); ok {
		t.Error("what a person has resolved is opened again")
	}
	h.move(time.Minute)
	second := postgres.NewUID(h.clock.Now())
	h.exec(mail, second, "failed", h.clock.Now(), nil, "")
	h.look()
	if item, ok := h.open(alert.KindMailFailed); !ok || item.Count != 1 {
		t.Errorf("the next failed mail: %+v", item)
	}
	h.exec(mail, postgres.NewUID(h.clock.Now()), "sent", h.clock.Now(), second, "sam")
	h.look()
	if _, ok := h.open(alert.KindMailFailed); ok {
		t.Error("the item is open although the mail was re-sent")
	}
}

// A mail that waited for weeks fails like any other, and is not re-sent as time passes.
func TestMailsThatFailLate(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	fail := func(waited time.Duration) {
		t.Helper()
		h.move(time.Minute)
		h.exec(`
			INSERT INTO emails (email_uid, kind, to_name, to_address, params, state, created_at,
			                    finished_at)
			VALUES ($1, 'task', '', 'ana@example.com', '{}', 'failed', $2, $3)`,
			postgres.NewUID(h.clock.Now()), h.clock.Now().Add(-waited), h.clock.Now())
		h.look()
	}
	want := func(count int) alert.Item {
		t.Helper()
		item, ok := h.open(alert.KindMailFailed)
		if !ok || item.Count != count {
			t.Errorf("the item is open: %t, %+v; want one of %d mails", ok, item, count)
		}
		return item
	}
	fail(0)
	h.move(40 * 24 * time.Hour)
	h.look()
	first := want(1)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Resolve(ctx, tx, first.UID, "told the borrower", "sam")
		return err
	})
	fail(20 * 24 * time.Hour)
	want(1)
	fail(0)
	h.move(40 * 24 * time.Hour)
	h.look()
	want(2)
}

func TestProbesOpenAndCloseItems(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	now := h.clock.Now()
	probe := func(class sender.ErrorClass, failures int, ends time.Duration) {
		t.Helper()
		record := health.ProbeRecord{
			Subscription: h.subscription, At: h.clock.Now(), Failures: failures,
			Probe: sender.Probe{Class: class, Error: "as it was", Expires: now.Add(ends)},
		}
		h.must(h.NoteProbe(t.Context(), record))
	}
	const day = 24 * time.Hour
	steps := []struct {
		class       sender.ErrorClass
		failures    int
		ends        time.Duration
		unreachable bool
		certificate alert.Severity
	}{
		{"", 0, 60 * day, false, ""},
		{sender.ClassDNS, 1, 60 * day, false, ""}, // a single failure may be chance
		{sender.ClassDNS, 2, 60 * day, true, ""},
		{"", 0, 20 * day, false, alert.Warning},
		{"", 0, 6 * day, false, alert.Warning},
		{"", 0, 12 * time.Hour, false, alert.Problem},
		{sender.ClassTLS, 3, -day, true, alert.Problem},
		{"", 0, 90 * day, false, ""},
	}
	for i, step := range steps {
		probe(step.class, step.failures, step.ends)
		if _, ok := h.open(alert.KindProbe); ok != step.unreachable {
			t.Errorf("step %d: unreachable is %v", i, ok)
		}
		if item, _ := h.open(alert.KindCertificate); item.Severity != step.certificate {
			t.Errorf("step %d: certificate %q, want %q", i, item.Severity, step.certificate)
		}
	}
	closed := h.count(`SELECT count(*) FROM attention_items WHERE closed_by = 'system'`)
	if closed != 3 {
		t.Errorf("%d items were closed, want 3", closed)
	}
}

// Probe sends a request to the real endpoint.
func TestProbeLooksAtEndpoints(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	probed := 0
	for range 3 {
		count, err := h.Probe(t.Context())
		h.must(err)
		probed += count
		h.move(33 * time.Minute)
	}
	if probed != 1 {
		t.Errorf("%d probes in 66 minutes, want 1", probed)
	}
	record, _, err := h.Webhooks.Health.LastProbe(t.Context(), h.subscription)
	if err != nil || record.Class != "" || record.Status != http.StatusOK {
		t.Errorf("record %+v, error %v", record, err)
	}
}

// TestMailServerRefusesUs: one item as long as the refusal lasts, whoever closes it.
func TestMailServerRefusesUs(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.look()
	if item, ok := h.open(alert.KindMailRefused); ok {
		t.Fatalf("nothing was refused: %+v", item)
	}
	h.exec(`INSERT INTO mail_stop (since, answer, next_probe_at) VALUES ($1, '530 sign in', $1)`,
		h.clock.Now())
	for range 3 {
		h.exec(`
			INSERT INTO emails (email_uid, kind, to_name, to_address, params, state, created_at,
			                    next_attempt_at, waits_for)
			VALUES (gen_random_uuid(), 'task', '', 'ana@example.com', '{}', 'queued', $1, $1, 'server')`,
			h.clock.Now())
		h.move(time.Minute)
		h.look()
	}
	item, ok := h.open(alert.KindMailRefused)
	if !ok || item.Count != 3 || !strings.Contains(item.Detail, "530 sign in") {
		t.Errorf("item %+v", item)
	}
	h.exec(`UPDATE emails SET refusals = 1, attempt_count = 1`)
	h.exec(`
		INSERT INTO email_attempts (email_uid, number, started_at, finished_at, outcome, reply_code,
		                            reply, server)
		SELECT email_uid, 1, $1, $1, 'refused', 550, '5.7.1 not you', 'mail.example:25' FROM emails`,
		h.clock.Now())
	h.exec(`DELETE FROM mail_stop`)
	const sent = `UPDATE emails
		             SET state = 'sent', next_attempt_at = NULL, finished_at = now(), waits_for = ''`
	h.exec(sent + ` WHERE email_uid = (SELECT email_uid FROM emails LIMIT 1)`)
	h.look()
	item, ok = h.open(alert.KindMailRefused)
	if !ok || item.Count != 2 || !strings.Contains(item.Detail, "refuses some e-mails") ||
		!strings.HasSuffix(item.Detail, "550 5.7.1 not you") {
		t.Errorf("while two recipients are refused: %+v", item)
	}
	h.exec(sent + ` WHERE state = 'queued'`)
	h.look()
	if _, ok := h.open(alert.KindMailRefused); ok {
		t.Error("the item is open although the server takes mail")
	}
	if items := h.count(`SELECT count(*) FROM attention_items`); items != 1 {
		t.Errorf("%d items", items)
	}
}
