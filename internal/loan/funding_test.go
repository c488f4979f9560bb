package loan_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

func TestFundingTellsEachStepOnce(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	known := len(w.EventsOf(t, app.UID))

	made := w.Draw(t, app.UID, loan.DrawInput{})
	clock.Move(time.Minute)
	w.Fund(t, made.ID, lending.FundingRequested, lending.FundingProcessing)
	w.Fund(t, made.ID, lending.FundingProcessing)
	clock.Move(time.Minute)
	w.Fund(t, made.ID, lending.FundingSettled, lending.FundingSettled)

	want := []string{
		"disbursement.funding.status-changed: FUNDING_REQUESTED",
		"disbursement.funding.status-changed: FUNDING_PROCESSING",
		"disbursement.funding.settled: FUNDING_SETTLED",
	}
	if got := w.Statuses(t, app.UID)[known:]; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	for _, recorded := range w.EventsOf(t, app.UID)[known:] {
		want := fmt.Sprintf(`{"application_id":%q,"status":%q,"timestamp":%q}`,
			app.UID, recorded.Status, recorded.OccurredAt.UTC().Format("2006-01-02T15:04:05.000000Z"))
		if recorded.Body != want {
			t.Errorf("body %s\nwant %s", recorded.Body, want)
		}
	}
	settled := w.GetLoan(t, app.UID).History[0]
	if settled.SettledAt == nil || !settled.SettledAt.Equal(clock.Now()) {
		t.Errorf("settled at %v, want %v", settled.SettledAt, clock.Now())
	}
	if got := w.Count(t, `
		SELECT count(*)
		  FROM disbursements
		 WHERE processing_at = requested_at + interval '1 minute'
		   AND settled_at = requested_at + interval '2 minutes'`); got != 1 {
		t.Error("the disbursement lacks the times of its steps")
	}
}

// Of two transactions the later one may have begun first: still no step precedes the one before.
func TestFundingNeverGoesBack(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	product := w.NewProduct(t, "SOLAR", "50,50")
	var ids []int64
	for range 3 {
		ids = append(ids, w.Draw(t, w.Loan(t, product).UID, loan.DrawInput{}).ID)
	}
	begun := clock.Now()
	clock.Move(time.Minute)
	w.Fund(t, ids[0], lending.FundingProcessing)
	w.Fund(t, ids[2], lending.FundingProcessing, lending.FundingSettled)
	later := clock.Now()
	clock.Set(begun)
	var moves []loan.Move
	for _, move := range []struct {
		id int64
		to lending.FundingStatus
	}{
		{ids[0], lending.FundingSettled},
		{ids[1], lending.FundingProcessing},
		{ids[1], lending.FundingSettled},
		{ids[0], lending.FundingReturned},
	} {
		reason := "sent back"
		moves = append(moves, loan.Move{
			ID: move.id, FundingChange: lending.FundingChange{
				Status: move.to, Evidence: lending.Evidence{Reason: &reason},
			},
		})
	}
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		moved, err := w.Loans.MoveFundings(ctx, tx, loan.Caller{}, moves)
		for i, one := range moved {
			if one.Refusal != nil || !one.Changed {
				t.Errorf("move %d: %+v", i, one)
			}
		}
		return err
	})
	w.Fund(t, ids[2], lending.FundingReturned)
	for i, want := range []time.Time{later, begun, later} {
		var app uuid.UUID
		if err := w.DB.Get(&app, `
			SELECT application_uid FROM disbursements WHERE merchant_disbursement_id = $1`,
			ids[i]); err != nil {
			t.Fatal(err)
		}
		draw := w.GetLoan(t, app).History[0]
		for _, step := range draw.Changes {
			if !step.At.Equal(want) {
				t.Errorf("draw %d became %s at %s, want %s", i, step.Status, step.At, want)
			}
		}
		if draw.SettledAt == nil || !draw.SettledAt.Equal(want) {
			t.Errorf("draw %d was settled at %v, want %s", i, draw.SettledAt, want)
		}
		if got := w.Get(t, app).UpdatedAt; got.Before(want) {
			t.Errorf("the application of draw %d was changed at %s, before %s", i, got, want)
		}
	}
}

func TestCancelledDrawGivesAllBack(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	tests := []struct {
		name string
		// settled is how many draws were settled before the test.
		settled int
		input   func() loan.DrawInput
		passed  []lending.FundingStatus
	}{
		{name: "regular", input: func() loan.DrawInput { return reduced("1500") }},
		{name: "final", settled: 2, input: func() loan.DrawInput { return completed(false, "8500") }},
		{name: "early", settled: 1, input: func() loan.DrawInput { return completed(true, "5000") }},
		{
			name: "in processing", settled: 1,
			input:  func() loan.DrawInput { return completed(true, "5000") },
			passed: []lending.FundingStatus{lending.FundingProcessing},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			app := w.Loan(t, product)
			for range test.settled {
				w.Settle(t, w.Draw(t, app.UID, loan.DrawInput{}).ID)
			}
			before := w.GetLoan(t, app.UID)
			first := w.Draw(t, app.UID, test.input())
			w.Fund(t, first.ID, test.passed...)
			recorded := w.Statuses(t, app.UID)
			w.Fund(t, first.ID, lending.FundingCancelled, lending.FundingCancelled)

			after := w.GetLoan(t, app.UID)
			if diff := cmp.Diff(before.Loan, after.Loan,
				cmpopts.IgnoreFields(lending.Loan{}, "Disbursements")); diff != "" ||
				!after.Balance().Equal(before.Balance()) {
				t.Errorf("balance %s after, %s before; the loan (-before +after):\n%s",
					after.Balance(), before.Balance(), diff)
			}
			want := append(slices.Clone(recorded), "disbursement.funding.cancelled: FUNDING_CANCELLED")
			if got := w.Statuses(t, app.UID); !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
			if got := w.Count(t, `
				SELECT count(*)
				  FROM disbursements
				 WHERE merchant_disbursement_id = $1
				   AND cancelled_at IS NOT NULL`, first.ID); got != 1 {
				t.Error("the cancellation has no time")
			}
			again := w.Draw(t, app.UID, test.input())
			if again.Stage != first.Stage || again.Number != first.Number+1 ||
				!again.Gross.Equal(first.Gross) {
				t.Errorf("drawn again %+v, first %+v", again.Disbursement, first.Disbursement)
			}
		})
	}
}

func TestMoveFundingRefusals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	requested := w.Draw(t, w.Loan(t, product).UID, loan.DrawInput{})
	settled := w.Draw(t, w.Loan(t, product).UID, loan.DrawInput{})
	w.Settle(t, settled.ID)
	cancelled := w.Draw(t, w.Loan(t, product).UID, loan.DrawInput{})
	w.Fund(t, cancelled.ID, lending.FundingCancelled)
	stranger := loan.Caller{MerchantUID: w.NewMerchant(t, w.Partner, "Other"), Name: "other"}

	tests := []struct {
		name   string
		caller loan.Caller
		id     int64
		to     lending.FundingStatus
		want   lending.Code
	}{
		{"unknown", w.Caller(), 1, lending.FundingProcessing, lending.CodeNotFound},
		{"another merchant's", stranger, requested.ID, lending.FundingProcessing, lending.CodeNotFound},
		{"skipped step", w.Caller(), requested.ID, lending.FundingSettled, lending.CodeInvalidState},
		{"settled money", w.Caller(), settled.ID, lending.FundingCancelled, lending.CodeInvalidState},
		{"back", w.Caller(), settled.ID, lending.FundingProcessing, lending.CodeInvalidState},
		{"cancelled draw", w.Caller(), cancelled.ID, lending.FundingProcessing, lending.CodeInvalidState},
		{"no status", w.Caller(), requested.ID, "FUNDED", lending.CodeValidation},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, _, err := w.Loans.MoveFunding(ctx, tx, test.caller, test.id,
					lending.FundingChange{Status: test.to})
				return err
			})
			if got := codeOf(t, err); got != test.want {
				t.Errorf("code %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

// The services never reach these database checks; they hold even if a service has a bug.
func TestDatabaseRefusesWhatNoServiceDoes(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	app := w.Loan(t, product)
	w.Draw(t, app.UID, loan.DrawInput{})
	const again = `
		INSERT INTO disbursements (application_uid, disbursement_number, stage, kind, status,
		                           gross_amount, fee_amount, net_amount, fee_percentage,
		                           requested_by, requested_at)
		SELECT application_uid, %s, %s, kind, '%s', %s, 0, %s, 0, 'nobody', now()
		  FROM disbursements
		 WHERE application_uid = $1`
	tests := []struct {
		name, statement, constraint string
	}{
		{
			"drawn above the loan",
			`UPDATE loans SET drawn_amount = loan_amount + 0.01 WHERE application_uid = $1`,
			"loans_check1",
		},
		{
			"loan below what is drawn",
			`UPDATE loans SET loan_amount = drawn_amount - 0.01 WHERE application_uid = $1`,
			"loans_check1",
		},
		{
			"loan above the original",
			`UPDATE loans SET loan_amount = original_amount + 0.01 WHERE application_uid = $1`,
			"loans_check",
		},
		{
			"negative draws",
			`UPDATE loans SET drawn_amount = -0.01 WHERE application_uid = $1`,
			"loans_drawn_amount_check",
		},
		{
			"second loan",
			`INSERT INTO loans SELECT * FROM loans WHERE application_uid = $1`,
			"loans_pkey",
		},
		{
			"second pending draw",
			fmt.Sprintf(again, "2", "2", "FUNDING_PROCESSING", "1", "1"),
			"disbursements_one_pending",
		},
		{
			"second draw of a stage",
			fmt.Sprintf(again, "2", "1", "FUNDING_SETTLED", "1", "1"),
			"disbursements_one_in_force",
		},
		{
			"number used twice",
			fmt.Sprintf(again, "1", "2", "CANCELLED", "1", "1"),
			"disbursements_application_uid_disbursement_number_key",
		},
		{
			"stage that is not in the schedule",
			fmt.Sprintf(again, "2", "4", "CANCELLED", "1", "1"),
			"disbursements_application_uid_stage_fkey",
		},
		{
			"draw of nothing",
			fmt.Sprintf(again, "2", "2", "CANCELLED", "0", "0"),
			"disbursements_gross_amount_check",
		},
		{
			"net that is not gross less fee",
			fmt.Sprintf(again, "2", "2", "CANCELLED", "1", "0.99"),
			"disbursements_check",
		},
		{
			"invented status",
			fmt.Sprintf(again, "2", "2", "FUNDED", "1", "1"),
			"disbursements_status_known",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := w.DB.ExecContext(t.Context(), test.statement, app.UID)
			pqErr, ok := errors.AsType[*pq.Error](err)
			if !ok || pqErr.Constraint != test.constraint {
				t.Errorf("the database answered %v, want a violation of %s", err, test.constraint)
			}
		})
	}
}
