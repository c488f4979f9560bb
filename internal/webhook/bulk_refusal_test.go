package webhook_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func TestDraftBulkIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	subscription, _ := h.subscribe(t, "https://hooks.example.com", nil)
	h.failures(t, 1)
	delivery := h.newest(t).UID
	mine := h.partner
	h.partner = h.newPartner(t)
	foreign, _ := h.subscribe(t, "https://hooks.example.com", nil)
	since := h.clock.now().Add(-time.Hour)
	named := []uuid.UUID{subscription.UID}
	tests := []struct {
		name   string
		scope  webhook.BulkScope
		pace   int
		code   lending.Code
		fields []string
	}{
		{
			"no partner",
			webhook.BulkScope{Kind: webhook.BulkFilter},
			1,
			lending.CodeValidation,
			[]string{"partner"},
		},
		{"no kind", webhook.BulkScope{PartnerUID: mine}, 1, lending.CodeValidation, []string{"kind"}},
		{
			"nothing selected",
			webhook.BulkScope{PartnerUID: mine, Kind: webhook.BulkSelection},
			1,
			lending.CodeValidation,
			[]string{"delivery"},
		},
		{"no pace, no beginning", webhook.BulkScope{
			PartnerUID: mine, Kind: webhook.BulkRecover, Subscriptions: named,
		}, 0, lending.CodeValidation, []string{"since", "pace"}},
		{
			"too fast",
			webhook.BulkScope{PartnerUID: mine, Kind: webhook.BulkFilter},
			501,
			lending.CodeValidation,
			[]string{"pace"},
		},
		{"an end before the beginning", webhook.BulkScope{
			PartnerUID: mine, Kind: webhook.BulkReplay, Subscriptions: named,
			Since: since, Until: since,
		}, 1, lending.CodeValidation, []string{"until"}},
		{
			"no such delivery", webhook.BulkScope{
				PartnerUID: mine, Kind: webhook.BulkSelection,
				Deliveries: []uuid.UUID{delivery, uuid.New()},
			}, 1, lending.CodeNotFound, nil,
		},
		{"another partner's delivery", webhook.BulkScope{
			PartnerUID: h.partner, Kind: webhook.BulkSelection, Deliveries: []uuid.UUID{delivery},
		}, 1, lending.CodeNotFound, nil},
		{
			"another partner's subscription", webhook.BulkScope{
				PartnerUID: mine, Kind: webhook.BulkRecover, Since: since,
				Subscriptions: []uuid.UUID{subscription.UID, foreign.UID},
			}, 1, lending.CodeNotFound, nil,
		},
		{"no such event", webhook.BulkScope{
			PartnerUID: mine, Kind: webhook.BulkReplay, EventUID: uuid.New(), Subscriptions: named,
		}, 1, lending.CodeNotFound, nil},
	}
	for _, test := range tests {
		err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.DraftBulk(ctx, tx, test.scope, webhook.BulkOptions{Pace: test.pace}, "s")
			return err
		})
		t.Run(test.name, func(t *testing.T) { wantRefusal(t, err, test.code, test.fields...) })
	}
}

func TestConfirmBulkIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.manyFailed(t, webhook.TypedAbove+2)
	large := h.draft(t, h.everything(), nil)
	scope := h.everything()
	scope.Filter.State = webhook.DeliveryDelivered
	empty := h.draft(t, scope, nil)
	started := h.begin(t, webhook.BulkScope{
		PartnerUID: h.partner, Kind: webhook.BulkSelection, Deliveries: []uuid.UUID{h.newest(t).UID},
	}, nil)
	tests := []struct {
		name    string
		uid     uuid.UUID
		consent webhook.BulkConsent
		code    lending.Code
		fields  []string
	}{
		{
			"no reason", large,
			webhook.BulkConsent{Count: 1001},
			lending.CodeValidation,
			[]string{"reason"},
		},
		{
			"a reason too long", large,
			webhook.BulkConsent{Reason: strings.Repeat("x", 501)},
			lending.CodeValidation,
			[]string{"reason"},
		},
		{
			"many without their count", large,
			webhook.BulkConsent{Reason: "r"},
			lending.CodeValidation,
			[]string{"count"},
		},
		{
			"another count", large,
			webhook.BulkConsent{Reason: "r", Count: 1000},
			lending.CodeInvalidState, nil,
		},
		{"nothing", empty, webhook.BulkConsent{Reason: "r"}, lending.CodeInvalidState, nil},
		{"twice", started, webhook.BulkConsent{Reason: "r"}, lending.CodeInvalidState, nil},
		{"no such", uuid.New(), webhook.BulkConsent{Reason: "r"}, lending.CodeNotFound, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := h.ConfirmBulk(ctx, tx, test.uid, test.consent)
				return err
			})
			wantRefusal(t, err, test.code, test.fields...)
		})
	}
	if state := h.bulk(t, large).State; state != webhook.BulkDraft {
		t.Errorf("a refused one is %s", state)
	}
}

func TestBulkStatesRefuseWhatComesTooLate(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.manyFailed(t, 2)
	draft := h.draft(t, h.everything(), nil)
	sent := h.begin(t, h.everything(), nil)
	h.advance(t, sent, 1)
	ended := h.draft(t, h.everything(), nil) // all are under way
	h.failAll(t)
	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		return h.AmendBulk(ctx, tx, ended, webhook.BulkOptions{Pace: 7, SkipNewer: true})
	})
	if got := h.bulk(t, ended).Options; got != (webhook.BulkOptions{Pace: 7, SkipNewer: true}) {
		t.Errorf("amended to %+v", got)
	}
	h.confirm(t, ended)
	cancel := func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
		_, err := h.CancelBulk(ctx, tx, uid)
		return err
	}
	amend := func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
		return h.AmendBulk(ctx, tx, uid, webhook.BulkOptions{Pace: 1})
	}
	tests := []struct {
		name string
		do   func(context.Context, *postgres.Tx, uuid.UUID) error
		uid  uuid.UUID
		code lending.Code
	}{
		{"pausing a draft", h.PauseBulk, draft, lending.CodeInvalidState},
		{"resuming a draft", h.ResumeBulk, draft, lending.CodeInvalidState},
		{"pausing after all was sent", h.PauseBulk, sent, lending.CodeInvalidState},
		{"cancelling after all was sent", cancel, sent, lending.CodeInvalidState},
		{"changing what runs", amend, sent, lending.CodeInvalidState},
		{"cancelling", cancel, ended, ""},
		{"cancelling twice", cancel, ended, lending.CodeInvalidState},
		{"resuming what was cancelled", h.ResumeBulk, ended, lending.CodeInvalidState},
		{"discarding a draft", cancel, draft, ""},
		{"discarding it twice", cancel, draft, lending.CodeNotFound},
	}
	for _, test := range tests {
		err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
			return test.do(ctx, tx, test.uid)
		})
		if got := lending.ErrorCode(err); got != test.code {
			t.Errorf("%s: %v, want %q", test.name, err, test.code)
		}
	}
}

func TestBulksAreListedAndCounted(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.manyFailed(t, 2)
	var made []uuid.UUID
	for range 3 {
		made = append(made, h.draft(t, h.everything(), nil))
		h.clock.move(time.Second)
	}
	h.confirm(t, made[1])
	filter := webhook.BulksFilter{PartnerUID: h.partner, Limit: 2}
	first, next, err := h.Bulks(t.Context(), filter)
	if err != nil || len(first) != 2 || first[0].UID != made[2] || first[1].Counts.Waiting != 2 {
		t.Fatalf("first page: %+v, %v", first, err)
	}
	filter.Cursor = next
	last, next, err := h.Bulks(t.Context(), filter)
	if err != nil || len(last) != 1 || last[0].UID != made[0] || !next.IsZero() {
		t.Errorf("last page: %+v, %v", last, err)
	}
	for state, want := range map[webhook.BulkState]int{
		"": 3, webhook.BulkDraft: 2, webhook.BulkRunning: 1, webhook.BulkFinished: 0,
	} {
		got, err := h.CountBulks(t.Context(), webhook.BulksFilter{State: state}, 100)
		if err != nil || got != want {
			t.Errorf("%d are %q, %v, want %d", got, state, err, want)
		}
	}
	shares, err := h.PartnersOf(t.Context(), webhook.DeliveryFilter{State: webhook.DeliveryFailed})
	if err != nil || len(shares) != 1 || shares[0].Count != 2 || shares[0].UID != h.partner {
		t.Errorf("shares %+v, %v", shares, err)
	}
}
