package webhook_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// everything is a scope of all deliveries of the house's partner.
func (h *house) everything() webhook.BulkScope {
	return webhook.BulkScope{PartnerUID: h.partner, Kind: webhook.BulkFilter}
}

// failures publishes events and fails all of their deliveries for good.
func (h *house) failures(t testing.TB, count int) {
	t.Helper()
	for range count {
		h.publish(t)
		h.clock.move(time.Second)
	}
	h.failAll(t)
}

func (h *house) failAll(t testing.TB) {
	t.Helper()
	h.exec(t, `
		UPDATE deliveries
		   SET state = 'failed', attempt_count = 3, next_attempt_at = NULL, queued = false,
		       finished_at = $1, last_http_status = 503, last_error_class = 'http_5xx',
		       last_duration_us = 1000
		 WHERE state IN ('pending', 'retrying')`, h.clock.now())
	h.exec(t, `DELETE FROM river_job`)
}

// draft keeps a draft and returns it.
func (h *house) draft(
	t testing.TB, scope webhook.BulkScope, change func(*webhook.BulkOptions),
) uuid.UUID {
	t.Helper()
	options := webhook.BulkOptions{Pace: webhook.DefaultPace}
	if change != nil {
		change(&options)
	}
	h.clock.move(time.Millisecond) // a choice ends before the present
	var uid uuid.UUID
	h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		uid, err = h.DraftBulk(ctx, tx, scope, options, "support")
		return err
	})
	return uid
}

func (h *house) plan(t testing.TB, uid uuid.UUID) webhook.BulkPlan {
	t.Helper()
	plan, err := h.PlanBulk(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func (h *house) confirm(t testing.TB, uid uuid.UUID) int {
	t.Helper()
	total := h.plan(t, uid).Total
	h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		total, err = h.ConfirmBulk(ctx, tx, uid, webhook.BulkConsent{
			By: "sam@lender.example", Reason: "the partner was down", Count: total,
		})
		return err
	})
	return total
}

// begin drafts and confirms.
func (h *house) begin(
	t testing.TB, scope webhook.BulkScope, change func(*webhook.BulkOptions),
) uuid.UUID {
	t.Helper()
	uid := h.draft(t, scope, change)
	h.confirm(t, uid)
	return uid
}

// advance moves a bulk re-send on once and returns when to call again.
func (h *house) advance(t testing.TB, uid uuid.UUID, run int) time.Duration {
	t.Helper()
	next, err := h.AdvanceBulk(t.Context(), webhook.BulkArgs{BulkUID: uid, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// drain moves a bulk re-send on and works what it sends, until it rests.
func (h *house) drain(t testing.TB, uid uuid.UUID, run int) {
	t.Helper()
	for range 1000 {
		if h.advance(t, uid, run) == 0 {
			return
		}
		h.clock.move(time.Second)
		for h.promote(t)+h.work(t) > 0 {
		}
	}
	t.Fatal("the bulk re-send does not end")
}

func (h *house) bulk(t testing.TB, uid uuid.UUID) webhook.Bulk {
	t.Helper()
	bulk, err := h.Bulk(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	return bulk
}

func (h *house) items(
	t testing.TB, uid uuid.UUID, state webhook.ItemState,
) []webhook.BulkItem {
	t.Helper()
	var all []webhook.BulkItem
	for after, first := 0, true; first || after != 0; first = false {
		items, next, err := h.BulkItems(t.Context(), uid, webhook.BulkItemFilter{
			State: state, After: after, Limit: postgres.MaxPage,
		})
		if err != nil {
			t.Fatal(err)
		}
		all, after = append(all, items...), next
	}
	return all
}

// wantConsistent fails the test unless the counts of the lanes are those of the
// items, and each sent item has exactly one new delivery.
func (h *house) wantConsistent(t testing.TB, uid uuid.UUID) {
	t.Helper()
	counts := h.bulk(t, uid).Counts
	for _, state := range webhook.ItemStates() {
		if got := len(h.items(t, uid, state)); got != counts.Of(state) {
			t.Errorf("%d items are %s, the lanes count %d", got, state, counts.Of(state))
		}
	}
	wrong := h.count(t, `
		SELECT count(*)
		  FROM bulk_resend_items i
		  LEFT JOIN deliveries d ON d.delivery_uid = i.new_uid
		 WHERE i.bulk_uid = $1
		   AND i.new_uid IS NOT NULL
		   AND (d.event_uid, d.subscription_uid) IS DISTINCT FROM (i.event_uid, i.subscription_uid)`,
		uid)
	made := h.count(t, `SELECT count(*) FROM deliveries WHERE resend_of IS NOT NULL`)
	sent := h.count(t, `
		SELECT count(*) FROM bulk_resend_items WHERE new_uid IS NOT NULL AND delivery_uid IS NOT NULL`)
	if wrong != 0 || made != sent {
		t.Errorf("%d new deliveries are not their item's; %d were made for %d items", wrong, made, sent)
	}
}
