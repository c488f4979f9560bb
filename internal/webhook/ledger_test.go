package webhook_test

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
	"drawbridge/internal/webhook"
)

// ledgerModel knows what the ledger must say, from what was done alone.
type ledgerModel struct {
	h             *house
	t             *rapid.T
	partner       uuid.UUID
	merchants     []uuid.UUID
	applications  map[uuid.UUID]uuid.UUID
	subscriptions map[uuid.UUID]webhook.Subscription
	events        []modelEvent
}

// modelEvent is an event and the verdicts that were certain when it happened.
type modelEvent struct {
	uid      uuid.UUID
	verdicts map[uuid.UUID]modelVerdict
}

type modelVerdict struct {
	verdict webhook.Verdict
	version int
}

func newLedgerModel(t *testing.T, h *house, rt *rapid.T) *ledgerModel {
	m := &ledgerModel{
		h: h, t: rt, partner: h.newPartner(t),
		applications:  make(map[uuid.UUID]uuid.UUID),
		subscriptions: make(map[uuid.UUID]webhook.Subscription),
	}
	for range 3 {
		merchant := h.newMerchant(t, m.partner)
		m.merchants = append(m.merchants, merchant)
		m.applications[merchant] = h.newApplication(t, merchant)
	}
	return m
}

func (m *ledgerModel) try(use func(ctx context.Context, tx *postgres.Tx) error) {
	m.h.clock.move(time.Second)
	if err := m.h.try(use); err != nil {
		m.t.Fatal(err)
	}
}

func (m *ledgerModel) drawEvents() []string {
	kinds := []string{"task.created", "task.updated", "document.sent"}
	chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(kinds), 0, 2, rapid.ID).Draw(m.t, "events")
	if len(chosen) == 0 {
		return []string{webhook.AllEvents}
	}
	return chosen
}

func (m *ledgerModel) drawMerchants() []uuid.UUID {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(m.merchants), 0, 2, rapid.ID).
		Draw(m.t, "merchants")
}

// one draws a subscription that is not deleted, false without any.
func (m *ledgerModel) one() (uuid.UUID, bool) {
	uids := slices.SortedFunc(maps.Keys(m.subscriptions), func(a, b uuid.UUID) int {
		return slices.Compare(a[:], b[:])
	})
	uids = slices.DeleteFunc(uids, func(uid uuid.UUID) bool {
		return m.subscriptions[uid].State == webhook.StateDeleted
	})
	if len(uids) == 0 {
		return uuid.Nil, false
	}
	return rapid.SampledFrom(uids).Draw(m.t, "subscription"), true
}

func (m *ledgerModel) subscribe() {
	settings := webhook.Settings{
		URL: "https://hooks.example/in", Auth: webhook.AuthNone,
		Events: m.drawEvents(), Merchants: m.drawMerchants(),
	}
	m.try(func(ctx context.Context, tx *postgres.Tx) error {
		made, _, err := m.h.Subscribe(ctx, tx, m.partner, settings, "operator")
		m.subscriptions[made.UID] = made
		return err
	})
}

func (m *ledgerModel) amend() {
	uid, found := m.one()
	if !found {
		return
	}
	patch := webhook.Patch{Events: m.drawEvents(), Merchants: m.drawMerchants()}
	m.try(func(ctx context.Context, tx *postgres.Tx) error {
		made, _, err := m.h.Amend(ctx, tx, uid, patch, "operator")
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
	) (webhook.Subscription, error){
		m.h.Pause, m.h.Resume, m.h.Delete,
	}).Draw(m.t, "transition")
	m.try(func(ctx context.Context, tx *postgres.Tx) error {
		made, err := use(ctx, tx, uid, "operator")
		m.subscriptions[uid] = made
		return err
	})
}

func (m *ledgerModel) publish() {
	event := m.h.event()
	event.Kind = rapid.SampledFrom([]lending.EventKind{
		lending.EventTaskCreated, lending.EventTaskUpdated, lending.EventDocumentSent,
	}).Draw(m.t, "kind")
	merchant := rapid.SampledFrom(m.merchants).Draw(m.t, "merchant")
	event.ApplicationUID = m.applications[merchant]
	m.try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := m.h.Publish(ctx, tx, event)
		return err
	})
	known := modelEvent{event.UID, make(map[uuid.UUID]modelVerdict)}
	for uid, s := range m.subscriptions {
		switch {
		case s.State == webhook.StateDeleted:
			known.verdicts[uid] = modelVerdict{webhook.VerdictDeleted, 0}
		case !s.Wants(event.Kind):
			known.verdicts[uid] = modelVerdict{webhook.VerdictEvent, s.Version}
		case len(s.Merchants) > 0 && !slices.Contains(s.Merchants, merchant):
			known.verdicts[uid] = modelVerdict{webhook.VerdictMerchant, s.Version}
		default:
			known.verdicts[uid] = modelVerdict{webhook.VerdictSent, 0}
		}
	}
	m.events = append(m.events, known)
}

// check compares every ledger with what the model knows.
func (m *ledgerModel) check() {
	for _, event := range m.events {
		lines, err := m.h.EventVerdicts(context.Background(), event.uid)
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
				want = modelVerdict{webhook.VerdictLater, 0}
			}
			if want.verdict == webhook.VerdictSent &&
				m.subscriptions[line.SubscriptionUID].State == webhook.StatePaused {
				want.verdict = webhook.VerdictWaiting
			}
			if line.Verdict != want.verdict || line.Version != want.version {
				m.t.Fatalf("verdict %s of version %d, want %s of %d",
					line.Verdict, line.Version, want.verdict, want.version)
			}
			made := line.Verdict == webhook.VerdictSent || line.Verdict == webhook.VerdictWaiting
			if made != (line.DeliveryUID != nil) {
				m.t.Fatalf("%s with delivery %v", line.Verdict, line.DeliveryUID)
			}
		}
	}
}

// Whatever is subscribed, changed, paused, deleted and published in whatever
// order: each event's ledger says of each subscription what happened, and why.
func TestLedgerIsExact(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
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

// While a subscription's choice is changed again and again, each event is
// either scheduled for it or names the version that passed it over.
func TestLedgerHoldsBesideConcurrentChanges(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	subscription, _ := h.subscribe(t, "https://hooks.example/in", nil)
	const many = 40
	var events []webhook.Event
	for range many {
		events = append(events, h.event())
	}
	var running sync.WaitGroup
	running.Go(func() {
		for n := range many {
			patch := webhook.Patch{Events: []string{"task.created"}}
			if n%2 == 0 {
				patch.Events = []string{"document.sent"}
			}
			if err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, _, err := h.Amend(ctx, tx, subscription.UID, patch, "operator")
				return err
			}); err != nil {
				t.Error(err)
			}
		}
	})
	for part := range 4 {
		running.Go(func() {
			for n := part; n < many; n += 4 {
				if err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
					_, err := h.Publish(ctx, tx, events[n])
					return err
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	for _, event := range events {
		lines, err := h.EventVerdicts(t.Context(), event.UID)
		if err != nil || len(lines) != 1 {
			t.Fatalf("%d lines, %v", len(lines), err)
		}
		sent := lines[0].Verdict == webhook.VerdictSent && lines[0].DeliveryUID != nil
		// The first version wanted everything, and each even one documents only.
		passed := lines[0].Verdict == webhook.VerdictEvent && lines[0].Version%2 == 0 &&
			lines[0].DeliveryUID == nil
		if sent == passed {
			t.Errorf("line %+v", lines[0])
		}
	}
}

func TestLedgerOfOlderReleasesAndTestEvents(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	quiet, _ := h.subscribe(t, "https://quiet.example/in", func(s *webhook.Settings) {
		s.Events = []string{"document.sent"}
	})
	h.clock.move(time.Minute)
	event := h.publish(t)
	// What the release before wrote, which kept no ledger.
	h.exec(t, `UPDATE events SET passed_over = NULL WHERE event_uid = $1`, event.UID)
	h.clock.move(time.Minute)
	h.subscribe(t, "https://later.example/in", nil)
	lines, err := h.EventVerdicts(t.Context(), event.UID)
	if err != nil || fmt.Sprint(verdictsOf(lines)) != "[not_recorded created_later]" {
		t.Errorf("verdicts %v, %v", verdictsOf(lines), err)
	}
	var delivery uuid.UUID
	h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		delivery, err = h.Test(ctx, tx, quiet.UID, lending.EventTaskCreated)
		return err
	})
	lines, err = h.EventVerdicts(t.Context(), h.detail(t, delivery).EventUID)
	if err != nil || len(lines) != 1 || lines[0].SubscriptionUID != quiet.UID ||
		lines[0].Verdict != webhook.VerdictSent {
		t.Errorf("a test event's ledger: %+v, %v", lines, err)
	}
	_, err = h.EventVerdicts(t.Context(), uuid.New())
	wantRefusal(t, err, lending.CodeNotFound)
}

func verdictsOf(lines []webhook.LedgerLine) (verdicts []webhook.Verdict) {
	for _, line := range lines {
		verdicts = append(verdicts, line.Verdict)
	}
	return verdicts
}
