package webhooktest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/bulk"
)

// Everything is the scope of all deliveries of the harness's partner.
func (h *Harness) Everything() bulk.Scope {
	return bulk.Scope{PartnerUID: h.Partner, Kind: bulk.KindFilter}
}

// Draft stores a draft and returns its id.
func (h *Harness) Draft(t testing.TB, scope bulk.Scope, change func(*bulk.Options)) uuid.UUID {
	t.Helper()
	options := bulk.Options{Pace: bulk.DefaultPace}
	if change != nil {
		change(&options)
	}
	h.Clock.Move(time.Millisecond) // a selection ends before the present
	return act(t, h, func(ctx context.Context, tx *postgres.Tx) (uuid.UUID, error) {
		return h.Bulk.Draft(ctx, tx, scope, options, "support")
	})
}

// Plan returns the plan of a draft.
func (h *Harness) Plan(t testing.TB, uid uuid.UUID) bulk.Plan {
	t.Helper()
	return must(h.Bulk.Plan(t.Context(), uid))(t)
}

// Confirm confirms a draft with the count that it plans.
func (h *Harness) Confirm(t testing.TB, uid uuid.UUID) int {
	t.Helper()
	total := h.Plan(t, uid).Total
	return act(t, h, func(ctx context.Context, tx *postgres.Tx) (int, error) {
		return h.Bulk.Confirm(ctx, tx, uid, bulk.Consent{
			By: "sam@lender.example", Reason: "the partner was down", Count: total,
		})
	})
}

// Begin creates a draft and confirms it.
func (h *Harness) Begin(t testing.TB, scope bulk.Scope, change func(*bulk.Options)) uuid.UUID {
	t.Helper()
	uid := h.Draft(t, scope, change)
	h.Confirm(t, uid)
	return uid
}

// Advance advances a bulk re-send once and returns when to call it again.
func (h *Harness) Advance(t testing.TB, uid uuid.UUID, run int) time.Duration {
	t.Helper()
	return must(h.Bulk.Advance(t.Context(), bulk.Args{BulkUID: uid, Run: run}))(t)
}

// Drain advances a bulk re-send and works what it sends, until it rests.
func (h *Harness) Drain(t testing.TB, uid uuid.UUID, run int) {
	t.Helper()
	for range 1000 {
		if h.Advance(t, uid, run) == 0 {
			return
		}
		h.Clock.Move(time.Second)
		for h.EnqueueDue(t)+h.Work(t) > 0 {
		}
	}
	t.Fatal("the bulk re-send does not end")
}

// LoadBulk reads a bulk re-send.
func (h *Harness) LoadBulk(t testing.TB, uid uuid.UUID) bulk.Resend {
	t.Helper()
	return must(h.Bulk.Get(t.Context(), uid))(t)
}

// Items lists the items of a bulk re-send.
func (h *Harness) Items(t testing.TB, uid uuid.UUID, state bulk.ItemState) []bulk.Item {
	t.Helper()
	var all []bulk.Item
	for after, first := 0, true; first || after != 0; first = false {
		items, next, err := h.Bulk.Items(t.Context(), uid, bulk.ItemFilter{
			State: state, After: after, Limit: postgres.MaxPage,
		})
		if err != nil {
			t.Fatal(err)
		}
		all, after = append(all, items...), next
	}
	return all
}

// WantConsistent fails the test unless the counts of the targets match the items, and
// each sent item has exactly one new delivery.
func (h *Harness) WantConsistent(t testing.TB, uid uuid.UUID) {
	t.Helper()
	counts := h.LoadBulk(t, uid).Counts
	for _, state := range bulk.ItemStates() {
		if got := len(h.Items(t, uid, state)); got != counts.Of(state) {
			t.Errorf("%d items are %s, the targets count %d", got, state, counts.Of(state))
		}
	}
	wrong := h.Count(t, `
		SELECT count(*)
		  FROM bulk_resend_items i
		  LEFT JOIN deliveries d ON d.delivery_uid = i.new_uid
		 WHERE i.bulk_uid = $1
		   AND i.new_uid IS NOT NULL
		   AND (d.event_uid, d.subscription_uid) IS DISTINCT FROM (i.event_uid, i.subscription_uid)`,
		uid)
	made := h.Count(t, `SELECT count(*) FROM deliveries WHERE resend_of IS NOT NULL`)
	sent := h.Count(t, `
		SELECT count(*) FROM bulk_resend_items WHERE new_uid IS NOT NULL AND delivery_uid IS NOT NULL`)
	if wrong != 0 || made != sent {
		t.Errorf("%d new deliveries are not their item's; %d were made for %d items", wrong, made, sent)
	}
}
