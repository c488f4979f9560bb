package migrations_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/migrations"
)

// beforeLoanAmounts takes the migration back that keeps what draws said of the loan amount.
func beforeLoanAmounts(t *testing.T, w *apptest.Harness) {
	t.Helper()
	for done := ""; !strings.HasPrefix(done, "0114"); {
		var err error
		if done, err = migrations.Down(t.Context(), w.DB.DB.DB); err != nil || done == "" {
			t.Fatalf("migration 114 was not taken back (%v)", err)
		}
	}
}

func upAgain(t *testing.T, w *apptest.Harness) {
	t.Helper()
	if err := migrations.Up(t.Context(), w.DB.DB.DB); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeFindsWhatDrawsSaid: the amounts that draws said are found again in a database that
// kept those before them, also on draws that had said nothing, and so is the loan's own.
func TestUpgradeFindsWhatDrawsSaid(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "25,25,25,25"), apptest.Requesting("1000"))
	draw := func(revised string) int64 {
		t.Helper()
		input := loan.DrawInput{}
		if revised != "" {
			amount := apptest.Money(revised)
			input = apptest.Documented()
			input.Request.UpdatedLoanAmount = &amount
			input.Request.ProjectCompletedEarly = true
		}
		made := w.Draw(t, app.UID, input)
		w.Settle(t, made.ID)
		return made.ID
	}
	first, second := draw(""), draw("")
	draw("550")
	w.Fund(t, first, lending.FundingReturned)
	fourth := draw("900")
	w.Fund(t, second, lending.FundingReturned)
	fifth := draw("1000")
	w.Fund(t, fourth, lending.FundingReturned)
	draw("")
	w.Settle(t, w.Draw(t, app.UID, apptest.Documented()).ID)
	w.Fund(t, fifth, lending.FundingReturned)
	want := w.GetLoan(t, app.UID)

	beforeLoanAmounts(t, w)
	// As the code before left it: the newest draws hold what was before a revision of another one.
	w.Exec(t, `
		UPDATE disbursements
		   SET loan_amount_before = (ARRAY[NULL, NULL, 1000, 550, 550, 550, 550])[disbursement_number]`)
	w.Exec(t, `UPDATE loans SET loan_amount = 900`)
	upAgain(t, w)

	got := w.GetLoan(t, app.UID)
	if diff := cmp.Diff(want.Loan, got.Loan); diff != "" {
		t.Errorf("the loan after the upgrade (-want +got):\n%s", diff)
	}
	if got.Amount().String() != "650.00" || w.Count(t,
		`SELECT count(*) FROM loans WHERE loan_amount = 650`) != 1 {
		t.Errorf("the loan's amount is %s, or another one in its table", got.Amount())
	}
}

// TestPreviousReleaseRevisesLoanAmounts: both releases find what a draw of the other one needs.
func TestPreviousReleaseRevisesLoanAmounts(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "50,50"), apptest.Requesting("1000"))
	w.Settle(t, w.Draw(t, app.UID, loan.DrawInput{}).ID)
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx, `
			WITH loan AS (
				UPDATE loans SET loan_amount = 800, drawn_amount = 800 WHERE application_uid = $1
			)
			INSERT INTO disbursements (application_uid, disbursement_number, stage, kind, status,
			                           gross_amount, fee_amount, net_amount, fee_percentage,
			                           loan_amount_before, requested_by, requested_at)
			VALUES ($1, 2, 2, 'final', 'FUNDING_REQUESTED', 300, 0, 300, 0, 1000, 'previous', now())`,
			app.UID)
		return err
	})
	revised := w.GetLoan(t, app.UID)
	if revised.Amount().String() != "800.00" {
		t.Errorf("after a draw of the previous release the loan is one of %s", revised.Amount())
	}
	w.Fund(t, revised.Disbursements[1].ID, lending.FundingCancelled)
	if amount := w.GetLoan(t, app.UID).Amount(); amount.String() != "1000.00" {
		t.Errorf("after it was cancelled the loan is one of %s", amount)
	}

	amount, input := apptest.Money("700"), apptest.Documented()
	input.Request.UpdatedLoanAmount = &amount
	made := w.Draw(t, app.UID, input)
	if w.Count(t, `
		SELECT count(*)
		  FROM disbursements
		 WHERE merchant_disbursement_id = $1
		   AND loan_amount_before = 1000`, made.ID) != 1 {
		t.Error("the previous release does not find what was before a draw of this one")
	}
}
