package webhook_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func TestBulkPlanNamesWhatSpeaksAgainstIt(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	first, _ := h.subscribe(t, endpoint.URL, nil)
	second, _ := h.subscribe(t, endpoint.URL, nil)
	gone, _ := h.subscribe(t, endpoint.URL, nil)
	h.publish(t) // arrives
	h.work(t)
	h.failures(t, 3)
	h.publish(t) // under way
	h.delete(t, gone.UID)
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Pause(ctx, tx, second.UID, "operator")
		return err
	})
	// Of the failed deliveries, one may have arrived and one was re-sent in vain.
	h.exec(t, `
		INSERT INTO attempts (delivery_uid, delivery_created_at, number, started_at, error_class,
		                      subscription_version, duration_us, request_headers, response_headers)
		SELECT delivery_uid, created_at, 3, created_at, 'unknown', 1, 0, '[]', '[]'
		  FROM deliveries
		 WHERE state = 'failed' AND subscription_uid = $1
		 ORDER BY created_at
		 LIMIT 1`, first.UID)
	failed := h.everything()
	failed.Filter.State = webhook.DeliveryFailed
	plan := h.plan(t, h.draft(t, failed, nil))
	if plan.Total != 6 || plan.Skips() != 3 || plan.Skipped[webhook.SkipDeleted] != 3 {
		t.Errorf("plan of what failed: %d, skipping %v", plan.Total, plan.Skipped)
	}
	want := webhook.BulkRisks{Unknown: 1, Paused: 3}
	if diff := cmp.Diff(want, plan.Risks); diff != "" {
		t.Errorf("risks: %s", diff)
	}
	if len(plan.Lanes) != 2 || plan.Lanes[0].Events[lending.EventTaskCreated] != 3 {
		t.Errorf("lanes: %+v", plan.Lanes)
	}

	all := h.plan(t, h.draft(t, h.everything(), nil))
	wantSkips := map[webhook.SkipReason]int{webhook.SkipDeleted: 5, webhook.SkipUnderWay: 2}
	if diff := cmp.Diff(wantSkips, all.Skipped); diff != "" || all.Risks.Delivered != 2 {
		t.Errorf("plan of everything: %+v, %s", all.Risks, diff)
	}
	careful := h.plan(t, h.draft(t, h.everything(), func(o *webhook.BulkOptions) {
		o.SkipDelivered = true
	}))
	if careful.Skipped[webhook.SkipDelivered] != 2 || careful.Risks.Delivered != 0 {
		t.Errorf("leaving out what arrived: %+v, %v", careful.Risks, careful.Skipped)
	}
}

func TestBulkKnowsNewerAndChanged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, answering(500, 200))
	h.Retries.Delays = []time.Duration{0, 0}
	subscription, _ := h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	h.work(t) // 500
	h.failAll(t)
	h.clock.move(time.Minute)
	h.publish(t)
	h.work(t) // 200: the first was overtaken
	url := endpoint.URL + "/v2"
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Amend(ctx, tx, subscription.UID, webhook.Patch{URL: &url}, "operator")
		return err
	})
	scope := h.everything()
	scope.Filter.State = webhook.DeliveryFailed
	plan := h.plan(t, h.draft(t, scope, nil))
	if want := (webhook.BulkRisks{Newer: 1, Changed: 1}); plan.Risks != want || plan.Total != 1 {
		t.Errorf("%d with the risks %+v", plan.Total, plan.Risks)
	}
	careful := h.plan(t, h.draft(t, scope, func(o *webhook.BulkOptions) { o.SkipNewer = true }))
	if careful.Total != 0 || careful.Skipped[webhook.SkipNewer] != 1 {
		t.Errorf("leaving out what was overtaken: %+v", careful)
	}
}

func TestBulkSendsOnceSignedAnewAndLinked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	subscription, _ := h.subscribe(t, endpoint.URL, nil)
	h.failures(t, 3)
	uid := h.begin(t, h.everything(), nil)
	h.drain(t, uid, 1)
	h.wantConsistent(t, uid)
	bulk := h.bulk(t, uid)
	if bulk.State != webhook.BulkFinished || bulk.Counts.Delivered != 3 || bulk.EndedAt.IsZero() {
		t.Fatalf("ended as %+v", bulk)
	}
	requests := endpoint.requests()
	for i, item := range h.items(t, uid, webhook.ItemDelivered) {
		made := h.detail(t, *item.NewUID)
		original := h.detail(t, *item.DeliveryUID)
		if requests[i].body != string(original.Body) {
			t.Errorf("item %d carried %s, not %s", i, requests[i].body, original.Body)
		}
		if *made.ResendOf != original.UID || *made.ResentBy != "sam@lender.example" ||
			*made.ResendReason != "the partner was down" {
			t.Errorf("item %d is linked as %+v", i, made.Delivery)
		}
		if requests[i].header.Get("x-hmac-signature") == "" {
			t.Errorf("item %d is not signed", i)
		}
		if back, err := h.BulkOfDelivery(t.Context(), made.UID); err != nil || back != uid {
			t.Errorf("delivery %d leads to bulk %s, %v", i, back, err)
		}
	}
	if len(requests) != 3 {
		t.Errorf("%d requests", len(requests))
	}
	lanes, err := h.BulkLanes(t.Context(), uid)
	if err != nil || len(lanes) != 1 || lanes[0].SubscriptionUID != subscription.UID ||
		lanes[0].Delivered != 3 {
		t.Errorf("lanes %+v, %v", lanes, err)
	}
	if next := h.advance(t, uid, 1); next != 0 {
		t.Errorf("a finished one wants to go on in %s", next)
	}
}

func TestBulkIsPaced(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://one.example.com", nil)
	h.subscribe(t, "https://two.example.com", nil)
	h.failures(t, 100)
	uid := h.begin(t, h.everything(), func(o *webhook.BulkOptions) { o.Pace = 20 })
	var sent []int
	for range 4 {
		if next := h.advance(t, uid, 1); next != time.Second {
			t.Errorf("next after %s", next)
		}
		sent = append(sent, h.bulk(t, uid).Counts.Sent)
		h.clock.move(time.Second)
	}
	// Twenty a second to each of two subscriptions.
	if want := []int{40, 80, 120, 160}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
	h.clock.move(time.Hour)
	h.advance(t, uid, 1)
	if waiting := h.bulk(t, uid).Counts.Waiting; waiting != 0 {
		t.Errorf("%d wait after an hour", waiting)
	}
}

// An endpoint that answers nothing holds up what is sent to it again.
func TestBulkSlowsDownBehindAStuckEndpoint(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://stuck.example.com", nil)
	h.failures(t, 80)
	uid := h.begin(t, h.everything(), func(o *webhook.BulkOptions) { o.Pace = 1 })
	for range 90 {
		h.advance(t, uid, 1)
		h.clock.move(2 * time.Second)
	}
	if counts := h.bulk(t, uid).Counts; counts.Sent != 50 || counts.Waiting != 30 {
		t.Errorf("%+v", counts)
	}
}

func TestBulkWaitsForAPausedSubscription(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	subscription, _ := h.subscribe(t, endpoint.URL, nil)
	h.failures(t, 3)
	change := func(use stateChange) {
		h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := use(ctx, tx, subscription.UID, "operator")
			return err
		})
	}
	change(h.Pause)
	uid := h.begin(t, h.everything(), nil)
	for range 3 {
		h.clock.move(time.Minute)
		if next := h.advance(t, uid, 1); next == 0 {
			t.Fatal("it gave up")
		}
	}
	if counts := h.bulk(t, uid).Counts; counts.Waiting != 3 {
		t.Errorf("%+v while paused", counts)
	}
	change(h.Resume)
	h.drain(t, uid, 1)
	if counts := h.bulk(t, uid).Counts; counts.Delivered != 3 {
		t.Errorf("%+v after resuming", counts)
	}
}

func TestBulkGivesUpOnADeletedSubscription(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	kept, _ := h.subscribe(t, endpoint.URL, nil)
	gone, _ := h.subscribe(t, endpoint.URL, nil)
	h.failures(t, 2)
	uid := h.begin(t, h.everything(), nil)
	h.delete(t, gone.UID)
	h.drain(t, uid, 1)
	h.wantConsistent(t, uid)
	for _, item := range h.items(t, uid, "") {
		if item.SubscriptionUID == kept.UID && item.State != webhook.ItemDelivered {
			t.Errorf("kept: %s", item.State)
		}
		if item.SubscriptionUID == gone.UID && (item.State != webhook.ItemSkipped ||
			*item.SkipReason != webhook.SkipDeleted) {
			t.Errorf("deleted: %s", item.State)
		}
	}
}

func TestRecoverSkipsWhatArrivedLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	subscription, _ := h.subscribe(t, endpoint.URL, nil)
	other, _ := h.subscribe(t, endpoint.URL, nil)
	since := h.clock.now()
	h.failures(t, 4)
	var failed []webhook.Delivery
	for _, delivery := range h.list(t) {
		if delivery.SubscriptionUID == subscription.UID {
			failed = append(failed, delivery)
		}
	}
	h.resend(t, failed[0].UID) // arrives
	h.promote(t)
	h.work(t)
	h.clock.move(time.Second)
	h.resend(t, failed[1].UID) // fails again
	h.failAll(t)
	scope := webhook.BulkScope{
		PartnerUID: h.partner, Kind: webhook.BulkRecover, Since: since,
		Subscriptions: []uuid.UUID{subscription.UID},
	}
	uid := h.draft(t, scope, nil)
	plan := h.plan(t, uid)
	want := map[webhook.SkipReason]int{webhook.SkipDelivered: 1, webhook.SkipDuplicate: 1}
	if diff := cmp.Diff(want, plan.Skipped); diff != "" || plan.Total != 3 {
		t.Errorf("%d, skipping %s", plan.Total, diff)
	}
	h.confirm(t, uid)
	// One more arrives by itself before its turn.
	h.resend(t, failed[3].UID)
	h.promote(t)
	h.work(t)
	h.drain(t, uid, 1)
	counts := h.bulk(t, uid).Counts
	if counts.Delivered != 2 || counts.Skipped != 3 {
		t.Errorf("%+v", counts)
	}
	arrived := h.count(t, `
		SELECT count(DISTINCT event_uid)
		  FROM deliveries
		 WHERE subscription_uid = $1 AND state = 'delivered'`, subscription.UID)
	if arrived != 4 {
		t.Errorf("%d of 4 events arrived", arrived)
	}
	if n := h.count(t, `SELECT count(*) FROM deliveries
		WHERE subscription_uid = $1 AND resend_of IS NOT NULL`, other.UID); n != 0 {
		t.Errorf("%d were sent to the other subscription", n)
	}
}

func TestReplaySendsWhatASubscriptionNeverGot(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	since := h.clock.now()
	var events []published
	for range 3 {
		events = append(events, h.publish(t))
		h.clock.move(time.Second)
	}
	late, _ := h.subscribe(t, endpoint.URL, nil)
	picky, _ := h.subscribe(t, endpoint.URL, func(s *webhook.Settings) {
		s.Events = []string{string(lending.EventFundingSettled)}
	})
	elsewhere, _ := h.subscribe(t, endpoint.URL, func(s *webhook.Settings) {
		s.Merchants = []uuid.UUID{h.newMerchant(t, h.partner)}
	})
	h.publish(t) // gets there by itself
	h.work(t)
	scope := webhook.BulkScope{
		PartnerUID: h.partner, Kind: webhook.BulkReplay, Since: since,
		Subscriptions: []uuid.UUID{late.UID, picky.UID, elsewhere.UID},
	}
	uid := h.begin(t, scope, nil)
	h.drain(t, uid, 1)
	items := h.items(t, uid, "")
	if len(items) != 3 {
		t.Fatalf("%d items, want the 3 events that nobody got", len(items))
	}
	for i, item := range items {
		if item.SubscriptionUID != late.UID || item.EventUID != events[i].UID ||
			item.State != webhook.ItemDelivered || item.DeliveryUID != nil {
			t.Errorf("item %d: %+v", i, item)
		}
		if body := endpoint.requests()[1+i].body; body != string(events[i].Body) {
			t.Errorf("event %d went out as %s", i, body)
		}
	}
	if again := h.plan(t, h.draft(t, scope, nil)); again.Total != 0 {
		t.Errorf("%d are left to replay", again.Total)
	}

	one := webhook.BulkScope{
		PartnerUID: h.partner, Kind: webhook.BulkReplay, EventUID: events[1].UID,
		Subscriptions: []uuid.UUID{late.UID},
	}
	if plan := h.plan(t, h.draft(t, one, nil)); plan.Total != 0 {
		t.Errorf("an event that arrived would be replayed: %+v", plan)
	}
}

// What one bulk re-send is about to send, another leaves out.
func TestBulkLeavesOutWhatAnotherIsAboutToSend(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.failures(t, 3)
	first := h.begin(t, h.everything(), nil)
	plan := h.plan(t, h.draft(t, h.everything(), nil))
	if plan.Total != 0 || plan.Skipped[webhook.SkipUnderWay] != 3 {
		t.Errorf("while the first waits: %d, skipping %v", plan.Total, plan.Skipped)
	}
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.CancelBulk(ctx, tx, first)
		return err
	})
	if plan := h.plan(t, h.draft(t, h.everything(), nil)); plan.Total != 3 {
		t.Errorf("after it was cancelled: %d", plan.Total)
	}
}
