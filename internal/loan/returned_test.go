package loan_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// change returns a funding change to the status, with fields as alternating names and values.
func change(t testing.TB, to lending.FundingStatus, fields ...string) lending.FundingChange {
	t.Helper()
	values := make(map[string]string)
	for i := 0; i < len(fields); i += 2 {
		values[fields[i]] = fields[i+1]
	}
	made, err := lending.ParseFundingChange(to, values, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func fund(
	t testing.TB, w *apptest.Harness, id int64, to lending.FundingChange,
) (made loan.Disbursement, changed bool, err error) {
	t.Helper()
	err = w.Try(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, changed, err = w.Loans.MoveFunding(ctx, tx, w.Caller(), id, to)
		return err
	})
	return made, changed, err
}

// A return frees balance and stage whatever the application's status, and does not affect a
// later pending draw.
func TestReturnedDrawIsFreeAgain(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	first := w.Draw(t, app.UID, loan.DrawInput{})
	w.Settle(t, first.ID)
	later := w.Draw(t, app.UID, loan.DrawInput{})
	before := w.GetLoan(t, app.UID)
	w.Move(t, app.UID, lending.StatusPendClearance)
	w.Fund(t, first.ID, lending.FundingReturned, lending.FundingReturned)

	after := w.GetLoan(t, app.UID)
	if !after.Balance().Equal(before.Balance().Add(first.Gross)) {
		t.Errorf("balance %s after, %s before the return of %s",
			after.Balance(), before.Balance(), first.Gross)
	}
	if got := after.History[1]; !got.Gross.Equal(later.Gross) || !got.Status.IsPending() {
		t.Errorf("the later draw is %s of %s, want pending of %s", got.Status, got.Gross, later.Gross)
	}
	if got := after.History[0]; got.SettledAt == nil || got.ReturnedAt == nil {
		t.Errorf("settled %v and returned %v, want both", got.SettledAt, got.ReturnedAt)
	}
	w.Settle(t, later.ID)
	w.Move(t, app.UID, lending.StatusApproved)
	again := w.Draw(t, app.UID, loan.DrawInput{})
	if again.Stage != first.Stage || again.Number != 3 || !again.Gross.Equal(first.Gross) {
		t.Errorf("drawn again stage %d as number %d for %s", again.Stage, again.Number, again.Gross)
	}
	recorded := w.Statuses(t, app.UID)
	if !slices.Contains(recorded, "disbursement.funding.returned: FUNDING_RETURNED") {
		t.Errorf("the return is not among the events %q", recorded)
	}
}

func TestClaimsTellWhoMadeTheChange(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	draw := w.Draw(t, w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20")).UID, loan.DrawInput{})
	reasoned := change(t, lending.FundingReturned)
	reasoned.NeedsReason = true
	steps := []struct {
		name    string
		change  lending.FundingChange
		changed bool
		code    lending.Code
	}{
		{"claim", change(t, "FUNDING_PROCESSING", "reference", "A"), true, ""},
		{"same claim", change(t, "FUNDING_PROCESSING", "reference", "A"), false, ""},
		{"bare repeat", change(t, "FUNDING_PROCESSING"), false, ""},
		{"other claim", change(t, "FUNDING_PROCESSING", "reference", "B"), false, "INVALID_STATE"},
		{
			"field that was not given", change(t, "FUNDING_PROCESSING", "method", "ach"),
			false, "INVALID_STATE",
		},
		{"too early", change(t, "RETURNED", "reason", "R01"), false, "INVALID_STATE"},
		{
			"settled", change(t, "FUNDING_SETTLED", "method", "ach", "effective_date", "2026-01-31"),
			true, "",
		},
		{"without reason", reasoned, false, "VALIDATION_ERROR"},
		{"returned", change(t, "RETURNED", "reason", "R01", "reference", "C"), true, ""},
		{"repeat without reason", reasoned, false, ""},
		{"no way back", change(t, "FUNDING_SETTLED"), false, "INVALID_STATE"},
	}
	for _, step := range steps {
		_, changed, err := fund(t, w, draw.ID, step.change)
		code := lending.Code("")
		if err != nil {
			code = codeOf(t, err)
		}
		if changed != step.changed || code != step.code {
			t.Errorf("%s: changed %t, %v; want %t, %q", step.name, changed, err, step.changed, step.code)
		}
	}
	kept := w.GetLoan(t, draw.ApplicationUID).History[0]
	if len(kept.Changes) != 3 || *kept.Changes[0].Reference != "A" || kept.Changes[1].Reason != nil ||
		kept.Changes[2].By != w.Caller().Name {
		t.Errorf("kept %+v", kept.Changes)
	}
	newest := kept.Evidence()
	if *newest.Reference != "C" || *newest.Method != "ach" || *newest.EffectiveDate != "2026-01-31" ||
		*newest.Reason != "R01" {
		t.Errorf("the newest evidence is %+v", newest)
	}
	if _, err := w.DB.ExecContext(t.Context(),
		`UPDATE disbursement_changes SET reference = 'Z'`); err == nil {
		t.Error("evidence can be changed")
	}
}

// A step made by a release without evidence is shown with its time only.
func TestStepsWithoutEvidenceAreShown(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	draw := w.Draw(t, w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20")).UID, loan.DrawInput{})
	if _, err := w.DB.ExecContext(t.Context(), `
		UPDATE disbursements
		   SET status = 'FUNDING_PROCESSING',
		       processing_at = now()
		 WHERE merchant_disbursement_id = $1`, draw.ID); err != nil {
		t.Fatal(err)
	}
	w.Fund(t, draw.ID, lending.FundingSettled)
	kept := w.GetLoan(t, draw.ApplicationUID).History[0].Changes
	if len(kept) != 2 || kept[0].Status != lending.FundingProcessing || kept[0].By != "" {
		t.Errorf("kept %+v", kept)
	}
}

// book is a model of a loan's draws that uses only what a partner is told.
type book struct {
	drawn  lending.Money
	stages map[int]int64
	last   int
	status map[int64]lending.FundingStatus
	gross  map[int64]lending.Money
	stage  map[int64]int
}

func (b *book) draw(r *rapid.T, made loan.Disbursement) {
	if holder, taken := b.stages[made.Stage]; taken {
		r.Fatalf("stage %d is paid by draw %d and by draw %d", made.Stage, holder, made.ID)
	}
	if made.Number != b.last+1 {
		r.Fatalf("number %d follows %d", made.Number, b.last)
	}
	b.last, b.stages[made.Stage], b.drawn = made.Number, made.ID, b.drawn.Add(made.Gross)
	b.status[made.ID], b.gross[made.ID] = "FUNDING_REQUESTED", made.Gross
	b.stage[made.ID] = made.Stage
}

// move reports whether the step is allowed, and records it.
func (b *book) move(id int64, to lending.FundingStatus) bool {
	switch string(b.status[id]) + " " + string(to) {
	case "FUNDING_REQUESTED FUNDING_PROCESSING", "FUNDING_PROCESSING FUNDING_SETTLED":
	case "FUNDING_REQUESTED CANCELLED", "FUNDING_PROCESSING CANCELLED", "FUNDING_SETTLED RETURNED":
		b.drawn = b.drawn.Sub(b.gross[id])
		delete(b.stages, b.stage[id])
	default:
		return false
	}
	b.status[id] = to
	return true
}

// Whatever is drawn, settled, cancelled and returned: the drawn amount is the sum of draws in
// force, no stage is paid twice, no number is reused, and the loan amount is that of the newest
// revision in force, or the drawn amount if that is more.
func TestDrawnIsWhatIsInForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		schedule, err := lending.ParseSchedule(rapid.SampledFrom([]string{
			"100", "50,50", "40,40,20", "10,20,30,40",
		}).Draw(r, "schedule"))
		if err != nil {
			r.Fatal(err)
		}
		approved := lending.Cents(rapid.Int64Range(100_000, 9_999_999).Draw(r, "approved"))
		l := lending.OpenLoan(lending.Offer{ApprovedAmount: approved}, schedule)
		b := &book{
			stages: map[int]int64{}, status: map[int64]lending.FundingStatus{},
			gross: map[int64]lending.Money{}, stage: map[int64]int{},
		}
		revisions := map[int64]lending.Money{}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			if rapid.Bool().Draw(r, "draws") || len(l.Disbursements) == 0 {
				request := lending.DrawRequest{
					Documents:             lending.DocumentsAssumed,
					ProjectCompletedEarly: rapid.Bool().Draw(r, "early"),
				}
				if rapid.Bool().Draw(r, "revised") {
					to := lending.Cents(rapid.Int64Range(1, 9_999_999).Draw(r, "amount"))
					request.UpdatedLoanAmount = &to
				}
				granted, err := lending.DecideDraw(lending.StatusApproved, &l, request)
				if err != nil {
					continue
				}
				id := int64(len(l.Disbursements) + 1)
				l = l.WithDraw(id, granted)
				b.draw(r, loan.Disbursement{Disbursement: l.Disbursements[id-1]})
				if granted.NewLoanAmount != nil {
					revisions[id] = *granted.NewLoanAmount
				}
			} else {
				id := rapid.SampledFrom(l.Disbursements).Draw(r, "draw").ID
				to := rapid.SampledFrom(lending.AllFundingStatuses()).Draw(r, "to")
				after, changed, _ := l.MoveDisbursement(id, to)
				if allowed := b.move(id, to); allowed != changed {
					r.Fatalf("draw %d to %s: changed %t, allowed %t", id, to, changed, allowed)
				}
				l = after
			}
			amount := approved
			for id := int64(1); id <= int64(len(l.Disbursements)); id++ {
				said, revised := revisions[id]
				if status := b.status[id]; revised && status != "CANCELLED" && status != "RETURNED" {
					amount = said
				}
			}
			amount = lending.MaxMoney(amount, b.drawn)
			if !l.Amount().Equal(amount) || !l.Drawn().Equal(b.drawn) || l.Balance().IsNegative() {
				r.Fatalf("loan amount %s, drawn %s, balance %s; the book says %s and %s",
					l.Amount(), l.Drawn(), l.Balance(), amount, b.drawn)
			}
		}
	})
}
