package statement_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// changed selects the steps of disbursements from their time columns, independently of the code
// of statements.
const changed = `
	SELECT d.merchant_disbursement_id, d.gross_amount, d.fee_amount, d.net_amount,
	       step.status AS reached, step.at
	  FROM disbursements d
	  JOIN applications a USING (application_uid)
	 CROSS JOIN LATERAL (VALUES ('FUNDING_REQUESTED', d.requested_at),
	                            ('FUNDING_PROCESSING', d.processing_at),
	                            ('FUNDING_SETTLED', d.settled_at),
	                            ('CANCELLED', d.cancelled_at),
	                            ('RETURNED', d.returned_at)) AS step (status, at)
	 WHERE a.merchant_uid = $1
	   AND step.at >= $2
	   AND step.at < $3`

// Over random histories of draws of two merchants, over days and time zones, the totals of each
// statement equal the SQL sums over the tables, and every step is in exactly one statement.
func TestTotalsAreTheSumsOfTheTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	w.Statements.Calendar.Zone = zone
	product := w.NewProduct(t, "TENTHS", "10,10,10,10,10,10,10,10,10,10")
	neighbour := *w.Harness
	neighbour.Merchant = w.NewMerchant(t, w.Partner, "Neighbour")
	merchants := []*apptest.Harness{w.Harness, &neighbour}
	days := 0
	rapid.Check(t, func(r *rapid.T) {
		uids := make([]uuid.UUID, rapid.IntRange(1, 3).Draw(r, "loans"))
		owners := make(map[uuid.UUID]*apptest.Harness, len(uids))
		for i := range uids {
			of := rapid.SampledFrom(merchants).Draw(r, "merchant")
			amount := lending.Cents(rapid.Int64Range(100_000, 9_999_999).Draw(r, "amount"))
			uids[i] = of.Loan(t, product, apptest.Requesting(amount.String())).UID
			owners[uids[i]] = of
		}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			uid := rapid.SampledFrom(uids).Draw(r, "loan")
			to := rapid.SampledFrom(lending.AllFundingStatuses()).Draw(r, "to")
			// Refusals are steps too: they must not appear anywhere.
			_ = w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := w.Loans.RequestDraw(ctx, tx, owners[uid].Caller(), uid, loan.DrawInput{})
				return err
			})
			for _, draw := range w.GetLoan(t, uid).History {
				if rapid.Bool().Draw(r, "moves") {
					_ = w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
						_, _, err := w.Loans.MoveFunding(ctx, tx, apptest.Operator(), draw.ID,
							lending.FundingChange{Status: to})
						return err
					})
				}
			}
			w.clock.Move(time.Duration(rapid.IntRange(0, 30*60).Draw(r, "minutes")) * time.Minute)
		}
		days += len(w.freeze().Days)
	})
	w.clock.Move(5 * 24 * time.Hour)
	days += len(w.freeze().Days)
	if days < 20 {
		t.Errorf("only %d days had statements", days)
	}
	var steps [2]int
	var dates []string
	if err := w.DB.SelectContext(t.Context(), &dates,
		`SELECT day::text FROM statement_days ORDER BY day`); err != nil {
		t.Fatal(err)
	}
	for _, date := range dates {
		for i, of := range merchants {
			on := *w
			on.Harness = of
			steps[i] += on.checkTotals(date)
		}
	}
	for i, of := range merchants {
		if all := w.Count(t, `
			SELECT count(requested_at) + count(processing_at) + count(settled_at) +
			       count(cancelled_at) + count(returned_at)
			  FROM disbursements JOIN applications USING (application_uid)
			 WHERE merchant_uid = $1`, of.Merchant); steps[i] != all || all < 50 {
			t.Errorf("the statements of merchant %d have %d steps of %d", i, steps[i], all)
		}
	}
}

// checkTotals compares a statement with the tables and returns its number of steps.
func (w *world) checkTotals(date string) int {
	w.t.Helper()
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		w.t.Fatal(err)
	}
	_, read := w.read(int(day.Sub(w.tuesday.Truncate(24*time.Hour)).Hours()/24), 0)
	data := read.Result.Data
	if data.State != "frozen" {
		w.t.Errorf("the statement of %s is %s", date, data.State)
	}
	summed := func(of string, args ...any) (found sums) {
		err := w.DB.GetContext(w.t.Context(), &found, `
			SELECT count(*), coalesce(sum(gross_amount), 0.00)::text AS gross,
			       coalesce(sum(fee_amount), 0.00)::text AS fee,
			       coalesce(sum(net_amount), 0.00)::text AS net
			  FROM (`+of+`) AS d`, append([]any{w.Merchant, data.From, data.Until}, args...)...)
		if err != nil {
			w.t.Fatal(err)
		}
		return found
	}
	once := summed(`
		SELECT DISTINCT ON (merchant_disbursement_id) gross_amount, fee_amount, net_amount
		  FROM (` + changed + `) AS c`)
	if once != data.Totals.sums || once.Count != len(data.Disbursements) {
		w.t.Errorf("%s: the tables sum up to %+v, the statement to %+v", date, once, data.Totals.sums)
	}
	steps := 0
	for _, status := range lending.AllFundingStatuses() {
		want := summed(`
			SELECT gross_amount, fee_amount, net_amount
			  FROM (`+changed+`) AS c
			 WHERE reached = $4`, string(status))
		if got := data.Totals.ByStatus[string(status)]; got != want {
			w.t.Errorf("%s, %s: the tables sum up to %+v, the statement to %+v", date, status, want, got)
		}
		steps += want.Count
	}
	for _, draw := range data.Disbursements {
		steps -= len(draw.Changes)
	}
	if steps != 0 {
		w.t.Errorf("%s: the changes differ from the tables by %d", date, steps)
	}
	return summed(changed).Count
}
