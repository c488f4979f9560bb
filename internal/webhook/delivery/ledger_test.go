package delivery_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// ledgerModel predicts the ledger from the test's own actions only.
type ledgerModel struct {
	h             *webhooktest.Harness
	t             *rapid.T
	partner       uuid.UUID
	merchants     []uuid.UUID
	applications  map[uuid.UUID]uuid.UUID
	subscriptions map[uuid.UUID]subscription.Subscription
	events        []modelEvent
}

// modelEvent is an event and the verdicts that were certain when it happened.
type modelEvent struct {
	uid      uuid.UUID
	verdicts map[uuid.UUID]modelVerdict
}

type modelVerdict struct {
	verdict delivery.Verdict
	version int
}

func newLedgerModel(t *testing.T, h *webhooktest.Harness, rt *rapid.T) *ledgerModel {
	m := &ledgerModel{
		h: h, t: rt, partner: h.NewPartner(t),
		applications:  make(map[uuid.UUID]uuid.UUID),
		subscriptions: make(map[uuid.UUID]subscription.Subscription),
	}
	for range 3 {
		merchant := h.NewMerchant(t, m.partner)
		m.merchants = append(m.merchants, merchant)
		m.applications[merchant] = h.NewApplication(t, merchant)
	}
	return m
}

func (m *ledgerModel) try(use func(ctx context.Context, tx *postgres.Tx) error) {
	m.h.Clock.Move(time.Second)
	if err := m.h.Try(use); err != nil {
		m.t.Fatal(err)
	}
}

func (m *ledgerModel) drawEvents() []string {
	kinds := []string{"task.created", "task.updated", "document.sent"}
	chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(kinds), 0, 2, rapid.ID).Draw(m.t, "events")
	if len(chosen) == 0 {
		return []string{subscription.AllEvents}
	}
	return chosen
}

func (m *ledgerModel) drawMerchants() []uuid.UUID {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(m.merchants), 0, 2, rapid.ID).
		Draw(m.t, "merchants")
}

// one draws a subscription that is not deleted; false if there is none.
func (m *ledgerModel) one() (uuid.UUID, bool) {
	uids := slices.SortedFunc(maps.Keys(m.subscriptions), func(a, b uuid.UUID) int {
		return slices.Compare(a[:], b[:])
	})
	uids = slices.DeleteFunc(uids, func(uid uuid.UUID) bool {
		return m.subscriptions[uid].State == subscription.StateDeleted
	})
	if len(uids) == 0 {
		return uuid.Nil, false
	}
	return rapid.SampledFrom(uids).Draw(m.t, "subscription"), true
}

func (m *ledgerModel) subscribe() {
	settings := subscription.Settings{
		URL: "https://hooks.example/in", Auth: sender.AuthNone,
		Events: m.drawEvents(), Merchants: m.drawMerchants(),
	}
	m.try(func(ctx context.Context, tx *postgres.Tx) error {
		made, _, err := m.h.Subscriptions.Subscribe(ctx, tx, m.partner, settings, "operator")
		m.subscriptions[made.UID] = made
		return err
	})
}

func (m *ledgerModel) amend() {
	uid, found := m.one()
	if !found {
		return
	}
	patch := subscription.Patch{Events: m.drawEvents(), Merchants: m.drawMerchants()}
	m.try(func(ctx context.Context, tx *postgres.Tx) error {
		made, _, err := m.h.Subscriptions.Amend(ctx, tx, uid, patch, "operator")
		m.subscriptions[uid] = made
		return err
	})
}

func (m *ledgerModel) enter() {
	uid, found := m.one()
	if !found {
		return
	}
	use := rapid.SampledFrom([]func(
		context.Context, *postgres.Tx, uuid.UUID, string,
	) (subscription.Subscription, error){
		m.h.Subscriptions.Pause, m.h.Subscriptions.Resume, m.h.Subscriptions.Delete,
	}).Draw(m.t, "transition")
	m.try(func(ctx context.Context, tx *postgres.Tx) error {
		made, err := use(ctx, tx, uid, "operator")
		m.subscriptions[uid] = made
		return err
	})
}

func (m *ledgerModel) publish() {
	event := m.h.NewEvent()
	event.Kind = rapid.SampledFrom([]lending.EventKind{
		lending.EventTaskCreated, lending.EventTaskUpdated, lending.EventDocumentSent,
	}).Draw(m.t, "kind")
	merchant := rapid.SampledFrom(m.merchants).Draw(m.t, "merchant")
	event.ApplicationUID = m.applications[merchant]
	m.try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := m.h.Deliveries.Publish(ctx, tx, event)
		return err
	})
	known := modelEvent{event.UID, make(map[uuid.UUID]modelVerdict)}
	for uid, s := range m.subscriptions {
		switch {
		case s.State == subscription.StateDeleted:
			known.verdicts[uid] = modelVerdict{delivery.VerdictDeleted, 0}
		case !s.Wants(event.Kind):
			known.verdicts[uid] = modelVerdict{delivery.VerdictEvent, s.Version}
		case len(s.Merchants) > 0 && !slices.Contains(s.Merchants, merchant):
			known.verdicts[uid] = modelVerdict{delivery.VerdictMerchant, s.Version}
		default:
			known.verdicts[uid] = modelVerdict{delivery.VerdictSent, 0}
		}
	}
	m.events = append(m.events, known)
}

// check compares every ledger with the model.
func (m *ledgerModel) check() {
	for _, event := range m.events {
		lines, err := m.h.Deliveries.EventVerdicts(context.Background(), event.uid)
		if err != nil {
			if len(m.subscriptions) == 0 {
				continue
			}
			m.t.Fatal(err)
		}
		if len(lines) != len(m.subscriptions) {
			m.t.Fatalf("%d lines for %d subscriptions", len(lines), len(m.subscriptions))
		}
		for _, line := range lines {
			want, considered := event.verdicts[line.SubscriptionUID]
			if !considered {
				want = modelVerdict{delivery.VerdictLater, 0}
			}
			if want.verdict == delivery.VerdictSent &&
				m.subscriptions[line.SubscriptionUID].State == subscription.StatePaused {
				want.verdict = delivery.VerdictWaiting
			}
			if line.Verdict != want.verdict || line.Version != want.version {
				m.t.Fatalf("verdict %s of version %d, want %s of %d",
					line.Verdict, line.Version, want.verdict, want.version)
			}
			made := line.Verdict == delivery.VerdictSent || line.Verdict == delivery.VerdictWaiting
			if made != (line.DeliveryUID != nil) {
				m.t.Fatalf("%s with delivery %v", line.Verdict, line.DeliveryUID)
			}
		}
	}
}

// For any order of subscribing, changing, pausing, deleting and publishing, each event's
// ledger says for each subscription what happened, and why.
func TestLedgerIsExact(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := newLedgerModel(t, h, rt)
		steps := map[string]func(){
			"subscribe": m.subscribe, "amend": m.amend, "enter": m.enter,
			"publish": m.publish, "publish again": m.publish,
		}
		names := slices.Sorted(maps.Keys(steps))
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			steps[rapid.SampledFrom(names).Draw(rt, "step")]()
		}
		m.check()
	})
}

// While a subscription's choice is changed again and again, each event is either
// scheduled for it or names the version that passed it over.
func TestLedgerHoldsBesideConcurrentChanges(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example/in", nil)
	const many = 40
	var events []delivery.Event
	for range many {
		events = append(events, h.NewEvent())
	}
	var running sync.WaitGroup
	running.Go(func() {
		for n := range many {
			patch := subscription.Patch{Events: []string{"task.created"}}
			if n%2 == 0 {
				patch.Events = []string{"document.sent"}
			}
			if err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
				_, _, err := h.Subscriptions.Amend(ctx, tx, subscribed.UID, patch, "operator")
				return err
			}); err != nil {
				t.Error(err)
			}
		}
	})
	for part := range 4 {
		running.Go(func() {
			for n := part; n < many; n += 4 {
				if err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
					_, err := h.Deliveries.Publish(ctx, tx, events[n])
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	for _, event := range events {
		lines, err := h.Deliveries.EventVerdicts(t.Context(), event.UID)
		if err != nil || len(lines) != 1 {
			t.Fatalf("%d lines, %v", len(lines), err)
		}
		sent := lines[0].Verdict == delivery.VerdictSent && lines[0].DeliveryUID != nil
		// The first version wanted everything, and each even one documents only.
		passed := lines[0].Verdict == delivery.VerdictEvent && lines[0].Version%2 == 0 &&
			lines[0].DeliveryUID == nil
		if sent == passed {
			t.Errorf("line %+v", lines[0])
		}
	}
}

func TestLedgerOfOlderReleasesAndTestEvents(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	quiet, _ := h.Subscribe(t, "https://quiet.example/in", func(s *subscription.Settings) {
		s.Events = []string{"document.sent"}
	})
	h.Clock.Move(time.Minute)
	event := h.Publish(t)
	// What the previous release wrote, which kept no ledger.
	h.Exec(t, `UPDATE events SET passed_over = NULL WHERE event_uid = $1`, event.UID)
	h.Clock.Move(time.Minute)
	h.Subscribe(t, "https://later.example/in", nil)
	lines, err := h.Deliveries.EventVerdicts(t.Context(), event.UID)
	if err != nil || fmt.Sprint(verdictsOf(lines)) != "[not_recorded created_later]" {
		t.Errorf("verdicts %v, %v", verdictsOf(lines), err)
	}
	var found uuid.UUID
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		found, err = h.Deliveries.Test(ctx, tx, quiet.UID, lending.EventTaskCreated)
		return err
	})
	lines, err = h.Deliveries.EventVerdicts(t.Context(), h.Detail(t, found).EventUID)
	if err != nil || len(lines) != 1 || lines[0].SubscriptionUID != quiet.UID ||
		lines[0].Verdict != delivery.VerdictSent {
		t.Errorf("a test event's ledger: %+v, %v", lines, err)
	}
	_, err = h.Deliveries.EventVerdicts(t.Context(), uuid.New())
	webhooktest.WantRefusal(t, err, lending.CodeNotFound)
}

func verdictsOf(lines []delivery.LedgerLine) (verdicts []delivery.Verdict) {
	for _, line := range lines {
		verdicts = append(verdicts, line.Verdict)
	}
	return verdicts
}
