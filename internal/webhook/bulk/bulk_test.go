package bulk_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestBulkPlanNamesWhatSpeaksAgainstIt(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	first, _ := h.Subscribe(t, endpoint.URL, nil)
	second, _ := h.Subscribe(t, endpoint.URL, nil)
	gone, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t) // arrives
	h.Work(t)
	h.Failures(t, 3)
	h.Publish(t) // under way
	h.Delete(t, gone.UID)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Subscriptions.Pause(ctx, tx, second.UID, "operator")
		return err
	})
	// Of the failed deliveries, one may have arrived and one was re-sent without success.
	h.Exec(t, `
		INSERT INTO attempts (delivery_uid, delivery_created_at, number, started_at, error_class,
		                      subscription_version, duration_us, request_headers, response_headers)
		SELECT delivery_uid, created_at, 3, created_at, 'unknown', 1, 0, '[]', '[]'
		  FROM deliveries
		 WHERE state = 'failed' AND subscription_uid = $1
		 ORDER BY created_at
		 LIMIT 1`, first.UID)
	failed := h.Everything()
	failed.Filter.State = delivery.StateFailed
	plan := h.Plan(t, h.Draft(t, failed, nil))
	if plan.Total != 6 || plan.Skips() != 3 || plan.Skipped[bulk.SkipDeleted] != 3 {
		t.Errorf("plan of what failed: %d, skipping %v", plan.Total, plan.Skipped)
	}
	want := bulk.Risks{Unknown: 1, Paused: 3}
	if diff := cmp.Diff(want, plan.Risks); diff != "" {
		t.Errorf("risks: %s", diff)
	}
	if len(plan.Targets) != 2 || plan.Targets[0].Events[lending.EventTaskCreated] != 3 {
		t.Errorf("lanes: %+v", plan.Targets)
	}

	all := h.Plan(t, h.Draft(t, h.Everything(), nil))
	wantSkips := map[bulk.SkipReason]int{bulk.SkipDeleted: 5, bulk.SkipUnderWay: 2}
	if diff := cmp.Diff(wantSkips, all.Skipped); diff != "" || all.Risks.Delivered != 2 {
		t.Errorf("plan of everything: %+v, %s", all.Risks, diff)
	}
	careful := h.Plan(t, h.Draft(t, h.Everything(), func(o *bulk.Options) {
		o.SkipDelivered = true
	}))
	if careful.Skipped[bulk.SkipDelivered] != 2 || careful.Risks.Delivered != 0 {
		t.Errorf("leaving out what arrived: %+v, %v", careful.Risks, careful.Skipped)
	}
}

func TestBulkKnowsNewerAndChanged(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500, 200))
	h.Deliveries.Retries.Delays = []time.Duration{0, 0}
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	h.Work(t) // 500
	h.FailAll(t)
	h.Clock.Move(time.Minute)
	h.Publish(t)
	h.Work(t) // 200: the first was overtaken
	url := endpoint.URL + "/v2"
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Subscriptions.Amend(ctx, tx, subscribed.UID, subscription.Patch{URL: &url},
			"operator")
		return err
	})
	scope := h.Everything()
	scope.Filter.State = delivery.StateFailed
	plan := h.Plan(t, h.Draft(t, scope, nil))
	if want := (bulk.Risks{Newer: 1, Changed: 1}); plan.Risks != want || plan.Total != 1 {
		t.Errorf("%d with the risks %+v", plan.Total, plan.Risks)
	}
	careful := h.Plan(t, h.Draft(t, scope, func(o *bulk.Options) { o.SkipNewer = true }))
	if careful.Total != 0 || careful.Skipped[bulk.SkipNewer] != 1 {
		t.Errorf("leaving out what was overtaken: %+v", careful)
	}
}

func TestBulkSendsOnceSignedAnewAndLinked(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500, 500, 500, 200))
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Exec(t, `UPDATE applications SET external_reference = 'CRM 1/ä'`)
	for range 3 {
		h.Publish(t)
		h.Clock.Move(time.Second)
	}
	h.Work(t)
	h.FailAll(t)
	first := map[string]webhooktest.Received{}
	for _, request := range endpoint.Requests() {
		first[request.Header.Get("x-drawbridge-event-id")] = request
	}
	uid := h.Begin(t, h.Everything(), nil)
	h.Drain(t, uid, 1)
	h.WantConsistent(t, uid)
	resend := h.LoadBulk(t, uid)
	if resend.State != bulk.StateFinished || resend.Counts.Delivered != 3 || resend.EndedAt.IsZero() {
		t.Fatalf("ended as %+v", resend)
	}
	requests := endpoint.Requests()[3:]
	for i, item := range h.Items(t, uid, bulk.ItemDelivered) {
		made := h.Detail(t, *item.NewUID)
		original := h.Detail(t, *item.DeliveryUID)
		if requests[i].Body != string(original.Body) {
			t.Errorf("item %d carried %s, not %s", i, requests[i].Body, original.Body)
		}
		if *made.ResendOf != original.UID || *made.ResentBy != "sam@lender.example" ||
			*made.ResendReason != "the partner was down" {
			t.Errorf("item %d is linked as %+v", i, made.Delivery)
		}
		former := first[original.EventUID.String()]
		for _, name := range []string{
			"event", "event-id", "sequence", "merchant", "subject", "reference",
		} {
			name = "x-drawbridge-" + name
			if got, want := requests[i].Header.Get(name), former.Header.Get(name); got != want || got == "" {
				t.Errorf("item %d has %s %q, its first attempt had %q", i, name, got, want)
			}
		}
		if requests[i].Header.Get("x-hmac-signature") == "" {
			t.Errorf("item %d is not signed", i)
		}
		if back, err := h.Bulk.OfDelivery(t.Context(), made.UID); err != nil || back != uid {
			t.Errorf("delivery %d leads to bulk %s, %v", i, back, err)
		}
	}
	if len(requests) != 3 {
		t.Errorf("%d requests", len(requests))
	}
	targets, err := h.Bulk.Targets(t.Context(), uid)
	if err != nil || len(targets) != 1 || targets[0].SubscriptionUID != subscribed.UID ||
		targets[0].Delivered != 3 {
		t.Errorf("lanes %+v, %v", targets, err)
	}
	if next := h.Advance(t, uid, 1); next != 0 {
		t.Errorf("a finished one wants to go on in %s", next)
	}
}

func TestBulkIsPaced(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://one.example.com", nil)
	h.Subscribe(t, "https://two.example.com", nil)
	h.Failures(t, 100)
	uid := h.Begin(t, h.Everything(), func(o *bulk.Options) { o.Pace = 20 })
	var sent []int
	for range 4 {
		if next := h.Advance(t, uid, 1); next != time.Second {
			t.Errorf("next after %s", next)
		}
		sent = append(sent, h.LoadBulk(t, uid).Counts.Sent)
		h.Clock.Move(time.Second)
	}
	// Twenty per second to each of two subscriptions.
	if want := []int{40, 80, 120, 160}; !slices.Equal(sent, want) {
		t.Errorf("sent %v, want %v", sent, want)
	}
	h.Clock.Move(time.Hour)
	h.Advance(t, uid, 1)
	if waiting := h.LoadBulk(t, uid).Counts.Waiting; waiting != 0 {
		t.Errorf("%d wait after an hour", waiting)
	}
}

// An endpoint that does not answer slows down its own re-sends.
func TestBulkSlowsDownBehindAStuckEndpoint(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://stuck.example.com", nil)
	h.Failures(t, 80)
	uid := h.Begin(t, h.Everything(), func(o *bulk.Options) { o.Pace = 1 })
	for range 90 {
		h.Advance(t, uid, 1)
		h.Clock.Move(2 * time.Second)
	}
	if counts := h.LoadBulk(t, uid).Counts; counts.Sent != 50 || counts.Waiting != 30 {
		t.Errorf("%+v", counts)
	}
}

func TestBulkWaitsForAPausedSubscription(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Failures(t, 3)
	change := func(use webhooktest.StateChange) {
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := use(ctx, tx, subscribed.UID, "operator")
			return err
		})
	}
	change(h.Subscriptions.Pause)
	uid := h.Begin(t, h.Everything(), nil)
	for range 3 {
		h.Clock.Move(time.Minute)
		if next := h.Advance(t, uid, 1); next == 0 {
			t.Fatal("it gave up")
		}
	}
	if counts := h.LoadBulk(t, uid).Counts; counts.Waiting != 3 {
		t.Errorf("%+v while paused", counts)
	}
	change(h.Subscriptions.Resume)
	h.Drain(t, uid, 1)
	if counts := h.LoadBulk(t, uid).Counts; counts.Delivered != 3 {
		t.Errorf("%+v after resuming", counts)
	}
}

func TestBulkGivesUpOnADeletedSubscription(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	kept, _ := h.Subscribe(t, endpoint.URL, nil)
	gone, _ := h.Subscribe(t, endpoint.URL, nil)
	h.Failures(t, 2)
	uid := h.Begin(t, h.Everything(), nil)
	h.Delete(t, gone.UID)
	h.Drain(t, uid, 1)
	h.WantConsistent(t, uid)
	for _, item := range h.Items(t, uid, "") {
		if item.SubscriptionUID == kept.UID && item.State != bulk.ItemDelivered {
			t.Errorf("kept: %s", item.State)
		}
		if item.SubscriptionUID == gone.UID && (item.State != bulk.ItemSkipped ||
			*item.SkipReason != bulk.SkipDeleted) {
			t.Errorf("deleted: %s", item.State)
		}
	}
}

func TestRecoverSkipsWhatArrivedLater(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil)
	other, _ := h.Subscribe(t, endpoint.URL, nil)
	since := h.Clock.Now()
	h.Failures(t, 4)
	var failed []delivery.Delivery
	for _, found := range h.List(t) {
		if found.SubscriptionUID == subscribed.UID {
			failed = append(failed, found)
		}
	}
	h.Resend(t, failed[0].UID) // arrives
	h.EnqueueDue(t)
	h.Work(t)
	h.Clock.Move(time.Second)
	h.Resend(t, failed[1].UID) // fails again
	h.FailAll(t)
	scope := bulk.Scope{
		PartnerUID: h.Partner, Kind: bulk.KindRecover, Since: since,
		Subscriptions: []uuid.UUID{subscribed.UID},
	}
	uid := h.Draft(t, scope, nil)
	plan := h.Plan(t, uid)
	want := map[bulk.SkipReason]int{bulk.SkipDelivered: 1, bulk.SkipDuplicate: 1}
	if diff := cmp.Diff(want, plan.Skipped); diff != "" || plan.Total != 3 {
		t.Errorf("%d, skipping %s", plan.Total, diff)
	}
	h.Confirm(t, uid)
	// One more arrives independently before its turn.
	h.Resend(t, failed[3].UID)
	h.EnqueueDue(t)
	h.Work(t)
	h.Drain(t, uid, 1)
	counts := h.LoadBulk(t, uid).Counts
	if counts.Delivered != 2 || counts.Skipped != 3 {
		t.Errorf("%+v", counts)
	}
	arrived := h.Count(t, `
		SELECT count(DISTINCT event_uid)
		  FROM deliveries
		 WHERE subscription_uid = $1 AND state = 'delivered'`, subscribed.UID)
	if arrived != 4 {
		t.Errorf("%d of 4 events arrived", arrived)
	}
	if n := h.Count(t, `SELECT count(*) FROM deliveries
		WHERE subscription_uid = $1 AND resend_of IS NOT NULL`, other.UID); n != 0 {
		t.Errorf("%d were sent to the other subscription", n)
	}
}

func TestReplaySendsWhatASubscriptionNeverGot(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	since := h.Clock.Now()
	var events []webhooktest.Published
	for range 3 {
		events = append(events, h.Publish(t))
		h.Clock.Move(time.Second)
	}
	late, _ := h.Subscribe(t, endpoint.URL, nil)
	picky, _ := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
		s.Events = []string{string(lending.EventFundingSettled)}
	})
	elsewhere, _ := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
		s.Merchants = []uuid.UUID{h.NewMerchant(t, h.Partner)}
	})
	h.Publish(t) // arrives independently
	h.Work(t)
	scope := bulk.Scope{
		PartnerUID: h.Partner, Kind: bulk.KindReplay, Since: since,
		Subscriptions: []uuid.UUID{late.UID, picky.UID, elsewhere.UID},
	}
	uid := h.Begin(t, scope, nil)
	h.Drain(t, uid, 1)
	items := h.Items(t, uid, "")
	if len(items) != 3 {
		t.Fatalf("%d items, want the 3 events that nobody got", len(items))
	}
	for i, item := range items {
		if item.SubscriptionUID != late.UID || item.EventUID != events[i].UID ||
			item.State != bulk.ItemDelivered || item.DeliveryUID != nil {
			t.Errorf("item %d: %+v", i, item)
		}
		if body := endpoint.Requests()[1+i].Body; body != string(events[i].Body) {
			t.Errorf("event %d went out as %s", i, body)
		}
	}
	if again := h.Plan(t, h.Draft(t, scope, nil)); again.Total != 0 {
		t.Errorf("%d are left to replay", again.Total)
	}

	one := bulk.Scope{
		PartnerUID: h.Partner, Kind: bulk.KindReplay, EventUID: events[1].UID,
		Subscriptions: []uuid.UUID{late.UID},
	}
	if plan := h.Plan(t, h.Draft(t, one, nil)); plan.Total != 0 {
		t.Errorf("an event that arrived would be replayed: %+v", plan)
	}
}

// Events that one bulk re-send is about to send are left out of another.
func TestBulkLeavesOutWhatAnotherIsAboutToSend(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.Failures(t, 3)
	first := h.Begin(t, h.Everything(), nil)
	plan := h.Plan(t, h.Draft(t, h.Everything(), nil))
	if plan.Total != 0 || plan.Skipped[bulk.SkipUnderWay] != 3 {
		t.Errorf("while the first waits: %d, skipping %v", plan.Total, plan.Skipped)
	}
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Bulk.Cancel(ctx, tx, first)
		return err
	})
	if plan := h.Plan(t, h.Draft(t, h.Everything(), nil)); plan.Total != 3 {
		t.Errorf("after it was cancelled: %d", plan.Total)
	}
}
