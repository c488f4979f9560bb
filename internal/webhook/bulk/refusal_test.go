package bulk_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

func TestDraftBulkIsRefused(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscription, _ := h.Subscribe(t, "https://hooks.example.com", nil)
	h.Failures(t, 1)
	found := h.Newest(t).UID
	mine := h.Partner
	h.Partner = h.NewPartner(t)
	foreign, _ := h.Subscribe(t, "https://hooks.example.com", nil)
	since := h.Clock.Now().Add(-time.Hour)
	named := []uuid.UUID{subscription.UID}
	tests := []struct {
		name   string
		scope  bulk.Scope
		pace   int
		code   lending.Code
		fields []string
	}{
		{
			"no partner",
			bulk.Scope{Kind: bulk.KindFilter},
			1,
			lending.CodeValidation,
			[]string{"partner"},
		},
		{"no kind", bulk.Scope{PartnerUID: mine}, 1, lending.CodeValidation, []string{"kind"}},
		{
			"nothing selected",
			bulk.Scope{PartnerUID: mine, Kind: bulk.KindSelection},
			1,
			lending.CodeValidation,
			[]string{"delivery"},
		},
		{"no pace, no beginning", bulk.Scope{
			PartnerUID: mine, Kind: bulk.KindRecover, Subscriptions: named,
		}, 0, lending.CodeValidation, []string{"since", "pace"}},
		{
			"too fast",
			bulk.Scope{PartnerUID: mine, Kind: bulk.KindFilter},
			501,
			lending.CodeValidation,
			[]string{"pace"},
		},
		{"an end before the beginning", bulk.Scope{
			PartnerUID: mine, Kind: bulk.KindReplay, Subscriptions: named,
			Since: since, Until: since,
		}, 1, lending.CodeValidation, []string{"until"}},
		{
			"no such delivery", bulk.Scope{
				PartnerUID: mine, Kind: bulk.KindSelection,
				Deliveries: []uuid.UUID{found, uuid.New()},
			}, 1, lending.CodeNotFound, nil,
		},
		{"another partner's delivery", bulk.Scope{
			PartnerUID: h.Partner, Kind: bulk.KindSelection, Deliveries: []uuid.UUID{found},
		}, 1, lending.CodeNotFound, nil},
		{
			"another partner's subscription", bulk.Scope{
				PartnerUID: mine, Kind: bulk.KindRecover, Since: since,
				Subscriptions: []uuid.UUID{subscription.UID, foreign.UID},
			}, 1, lending.CodeNotFound, nil,
		},
		{"no such event", bulk.Scope{
			PartnerUID: mine, Kind: bulk.KindReplay, EventUID: uuid.New(), Subscriptions: named,
		}, 1, lending.CodeNotFound, nil},
	}
	for _, test := range tests {
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Bulk.Draft(ctx, tx, test.scope, bulk.Options{Pace: test.pace}, "s")
			return err
		})
		t.Run(test.name, func(t *testing.T) {
			webhooktest.WantRefusal(t, err, test.code, test.fields...)
		})
	}
}

func TestConfirmBulkIsRefused(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, bulk.TypedAbove+2)
	large := h.Draft(t, h.Everything(), nil)
	scope := h.Everything()
	scope.Filter.State = delivery.StateDelivered
	empty := h.Draft(t, scope, nil)
	started := h.Begin(t, bulk.Scope{
		PartnerUID: h.Partner, Kind: bulk.KindSelection, Deliveries: []uuid.UUID{h.Newest(t).UID},
	}, nil)
	tests := []struct {
		name    string
		uid     uuid.UUID
		consent bulk.Consent
		code    lending.Code
		fields  []string
	}{
		{
			"no reason", large,
			bulk.Consent{Count: 1001},
			lending.CodeValidation,
			[]string{"reason"},
		},
		{
			"a reason too long", large,
			bulk.Consent{Reason: strings.Repeat("x", 501)},
			lending.CodeValidation,
			[]string{"reason"},
		},
		{
			"many without their count", large,
			bulk.Consent{Reason: "r"},
			lending.CodeValidation,
			[]string{"count"},
		},
		{
			"another count", large,
			bulk.Consent{Reason: "r", Count: 1000},
			lending.CodeInvalidState, nil,
		},
		{"nothing", empty, bulk.Consent{Reason: "r"}, lending.CodeInvalidState, nil},
		{"twice", started, bulk.Consent{Reason: "r"}, lending.CodeInvalidState, nil},
		{"no such", uuid.New(), bulk.Consent{Reason: "r"}, lending.CodeNotFound, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := h.Bulk.Confirm(ctx, tx, test.uid, test.consent)
				return err
			})
			webhooktest.WantRefusal(t, err, test.code, test.fields...)
		})
	}
	if state := h.LoadBulk(t, large).State; state != bulk.StateDraft {
		t.Errorf("a refused one is %s", state)
	}
}

// More than one bulk re-send may hold is refused at once, before anything is looked up
// for each of them. In several parts they can be recovered.
func TestTooManyAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example.com", nil)
	began := h.Clock.Now()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		// Otherwise every foreign key is checked for each row, with a plan for an empty table.
		_, err := tx.ExecContext(ctx, `SET LOCAL session_replication_role = replica`)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			WITH event AS (
				INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
				                    application_uid, status, body)
				SELECT drawbridge_uid($1), $1::timestamptz + n * interval '1 microsecond',
				       'task.created', $2, $3, $4, 'Pending', '{}'
				  FROM generate_series(1, $5) AS n
				RETURNING *
			)
			INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
			                        event, application_uid, status, state, attempt_count, queued)
			SELECT drawbridge_uid($1), $1, $6, event_uid, occurred_at, kind,
			       application_uid, status, 'failed', 3, false
			  FROM event`, began, h.Partner, h.Merchant, h.Application, bulk.MaxItems+1,
			subscribed.UID)
		return err
	})
	h.Clock.Move(time.Second)
	draft := h.Draft(t, h.Everything(), nil)
	ask := func(until time.Time) (begun bulk.Resend, err error) {
		err = h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			begun, err = h.Bulk.Recover(ctx, tx, bulk.Recovery{
				PartnerUID: h.Partner, SubscriptionUID: subscribed.UID, Since: began, Until: until,
				By: "client",
			})
			return err
		})
		return begun, err
	}
	recorder := pgtest.Record(t, h.DB)
	_, err := h.Bulk.Plan(t.Context(), draft)
	webhooktest.WantRefusal(t, err, lending.CodeValidation)
	err = h.Try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Bulk.Confirm(ctx, tx, draft, bulk.Consent{Reason: "r", Count: bulk.MaxItems + 1})
		return err
	})
	webhooktest.WantRefusal(t, err, lending.CodeValidation)
	_, err = ask(time.Time{})
	webhooktest.WantRefusal(t, err, lending.CodeValidation, "since")
	for _, query := range recorder.Take() {
		if strings.Contains(query.Text, "judged") {
			t.Errorf("what is too much was looked up: %s", query.Text)
		}
	}
	const part = 1500
	begun, err := ask(began.Add((part + 1) * time.Microsecond))
	if err != nil || begun.Counts.Waiting != part {
		t.Errorf("a part of them: %+v, %v", begun.Counts, err)
	}
}

func TestBulkStatesRefuseWhatComesTooLate(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 2)
	draft := h.Draft(t, h.Everything(), nil)
	sent := h.Begin(t, h.Everything(), nil)
	h.Advance(t, sent, 1)
	ended := h.Draft(t, h.Everything(), nil) // all are under way
	h.FailAll(t)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		return h.Bulk.Amend(ctx, tx, ended, bulk.Options{Pace: 7, SkipNewer: true})
	})
	if got := h.LoadBulk(t, ended).Options; got != (bulk.Options{Pace: 7, SkipNewer: true}) {
		t.Errorf("amended to %+v", got)
	}
	h.Confirm(t, ended)
	cancel := func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
		_, err := h.Bulk.Cancel(ctx, tx, uid)
		return err
	}
	amend := func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
		return h.Bulk.Amend(ctx, tx, uid, bulk.Options{Pace: 1})
	}
	tests := []struct {
		name string
		do   func(context.Context, *postgres.Tx, uuid.UUID) error
		uid  uuid.UUID
		code lending.Code
	}{
		{"pausing a draft", h.Bulk.Pause, draft, lending.CodeInvalidState},
		{"resuming a draft", h.Bulk.Resume, draft, lending.CodeInvalidState},
		{"pausing after all was sent", h.Bulk.Pause, sent, lending.CodeInvalidState},
		{"cancelling after all was sent", cancel, sent, lending.CodeInvalidState},
		{"changing what runs", amend, sent, lending.CodeInvalidState},
		{"cancelling", cancel, ended, ""},
		{"cancelling twice", cancel, ended, lending.CodeInvalidState},
		{"resuming what was cancelled", h.Bulk.Resume, ended, lending.CodeInvalidState},
		{"discarding a draft", cancel, draft, ""},
		{"discarding it twice", cancel, draft, lending.CodeNotFound},
	}
	for _, test := range tests {
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			return test.do(ctx, tx, test.uid)
		})
		if got := lending.ErrorCode(err); got != test.code {
			t.Errorf("%s: %v, want %q", test.name, err, test.code)
		}
	}
}

func TestBulksAreListedAndCounted(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 2)
	var made []uuid.UUID
	for range 3 {
		made = append(made, h.Draft(t, h.Everything(), nil))
		h.Clock.Move(time.Second)
	}
	h.Confirm(t, made[1])
	filter, page := bulk.Filter{PartnerUID: h.Partner}, postgres.Paging{Limit: 2}
	first, next, err := h.Bulk.List(t.Context(), filter, page)
	if err != nil || len(first) != 2 || first[0].UID != made[2] || first[1].Counts.Waiting != 2 {
		t.Fatalf("first page: %+v, %v", first, err)
	}
	page.From = next
	last, next, err := h.Bulk.List(t.Context(), filter, page)
	if err != nil || len(last) != 1 || last[0].UID != made[0] || !next.IsZero() {
		t.Errorf("last page: %+v, %v", last, err)
	}
	for state, want := range map[bulk.State]int{
		"": 3, bulk.StateDraft: 2, bulk.StateRunning: 1, bulk.StateFinished: 0,
	} {
		got, err := h.Bulk.Count(t.Context(), bulk.Filter{State: state}, 100)
		if err != nil || got != want {
			t.Errorf("%d are %q, %v, want %d", got, state, err, want)
		}
	}
	shares, err := h.Bulk.PartnersOf(t.Context(), delivery.Filter{State: delivery.StateFailed})
	if err != nil || len(shares) != 1 || shares[0].Count != 2 || shares[0].UID != h.Partner {
		t.Errorf("shares %+v, %v", shares, err)
	}
}
