package lending_test

import (
	"testing"

	"drawbridge/internal/lending"
)

// Each action in each status: only Approved draws and changes its amount, three
// statuses change terms, only Pending Review is decided.
func TestEveryStatusByEveryAction(t *testing.T) {
	t.Parallel()
	const no, conflict = lending.CodeApplicationNotApproved, lending.CodeInvalidState
	for _, tc := range []struct {
		status                      lending.ApplicationStatus
		draw, amount, terms, decide lending.Code
		opens                       bool
	}{
		{"Pending Review", no, conflict, conflict, "", false},
		{"Hard Pull Authorization", no, conflict, conflict, conflict, false},
		{"Hard Pull", no, conflict, "", conflict, false},
		{"Pend Clearance", no, conflict, "", conflict, false},
		{"Approved", "", "", "", conflict, true},
		{"Declined", no, conflict, conflict, conflict, false},
		{"Closed", no, conflict, conflict, conflict, false},
	} {
		t.Run(string(tc.status), func(t *testing.T) {
			t.Parallel()
			offers := []lending.Offer{offer(t, "A", "1000", "1500")}
			approval := lending.Approval{
				Status: tc.status, Offers: offers, ProductUID: "A", Loan: drawnLoan(t),
			}
			rate := percent(t, "5")
			_, drawErr := lending.DecideDraw(tc.status, drawnLoan(t), lending.DrawRequest{})
			_, amountErr := approval.ChangeAmount(money(t, "1100"))
			_, termsErr := approval.ChangeTerms(lending.Terms{InterestRate: &rate})
			_, decideErr := lending.Decide(lending.DecisionRequest{Status: tc.status})
			_, opens := lending.LoanToOpen(tc.status, offers, "A")
			for _, check := range []struct {
				action    string
				got, want lending.Code
			}{
				{"draw", lending.ErrorCode(drawErr), tc.draw},
				{"change amount", lending.ErrorCode(amountErr), tc.amount},
				{"change terms", lending.ErrorCode(termsErr), tc.terms},
				{"decide", lending.ErrorCode(decideErr), tc.decide},
			} {
				if check.got != check.want {
					t.Errorf("%s is %q, want %q", check.action, check.got, check.want)
				}
			}
			if opens != tc.opens {
				t.Errorf("a loan opens: %v, want %v", opens, tc.opens)
			}
		})
	}
}

func TestLoanOpensForTheSelectedOffer(t *testing.T) {
	t.Parallel()
	offers := []lending.Offer{offer(t, "A", "1000", "1500"), offer(t, "B", "900", "900")}
	if _, due := lending.LoanToOpen("Approved", offers, ""); due {
		t.Error("a loan opens though no product is selected")
	}
	if _, due := lending.LoanToOpen("Approved", offers, "X"); due {
		t.Error("a loan opens for a product that made no offer")
	}
	accepted, due := lending.LoanToOpen("Approved", offers, "B")
	if !due {
		t.Fatal("no loan opens")
	}
	loan := lending.OpenLoan(accepted, schedule(t, "50,50"))
	if loan.Amount.String() != "900.00" || loan.OriginalAmount.String() != "900.00" ||
		loan.FeePercent.String() != "3.75" || scheduled(loan) != "450.00 450.00" {
		t.Errorf("the loan is %+v", loan)
	}
	if loan.Balance().String() != "900.00" || !loan.Drawn().IsZero() || loan.NextNumber() != 1 {
		t.Errorf("balance %s, drawn %s, next %d", loan.Balance(), loan.Drawn(), loan.NextNumber())
	}
}

// draw grants the request on the loan, moving it through the given statuses.
func draw(
	t testing.TB, loan lending.Loan, request lending.DrawRequest, moves ...lending.FundingStatus,
) lending.Loan {
	t.Helper()
	granted, err := lending.DecideDraw(lending.StatusApproved, &loan, request)
	if err != nil {
		t.Fatalf("drawing: %v", err)
	}
	id := int64(loan.NextNumber())
	loan = loan.WithDraw(id, granted)
	for _, to := range moves {
		moved, changed, err := loan.MoveDisbursement(id, to)
		if err != nil || !changed {
			t.Fatalf("moving disbursement %d to %s: changed %v, %v", id, to, changed, err)
		}
		loan = moved
	}
	return loan
}

func TestGrantedDrawIsPendingUntilItSettles(t *testing.T) {
	t.Parallel()
	before := *drawnLoan(t)
	loan := draw(t, before, lending.DrawRequest{})
	first := loan.Disbursements[0]
	if first.Status != "FUNDING_REQUESTED" || first.Number != 1 || first.Stage != 1 ||
		first.Gross.String() != "400.00" || first.Fee.String() != "15.00" ||
		first.Net.String() != "385.00" {
		t.Errorf("the disbursement is %+v", first)
	}
	if len(before.Disbursements) != 0 {
		t.Error("the loan given was changed")
	}
	for _, to := range []lending.FundingStatus{"FUNDING_PROCESSING", "FUNDING_SETTLED"} {
		if !loan.IsPending() {
			t.Errorf("not pending before %s", to)
		}
		loan, _, _ = loan.MoveDisbursement(1, to)
	}
	if loan.IsPending() || loan.Balance().String() != "600.00" {
		t.Errorf("after settling: pending %v, balance %s", loan.IsPending(), loan.Balance())
	}
}

// Money that comes back is recorded whatever was revised and drawn since: a loan's amount is never
// less than what was drawn of it.
func TestEveryReturnIsRecorded(t *testing.T) {
	t.Parallel()
	loan := lending.OpenLoan(offer(t, "A", "10000", "10000"), schedule(t, "50,5,45"))
	to := func(amount string) lending.DrawRequest {
		request := lending.DrawRequest{Documents: lending.DocumentsGiven}
		if amount != "" {
			revised := money(t, amount)
			request.UpdatedLoanAmount = &revised
		}
		return request
	}
	paid := []lending.FundingStatus{lending.FundingProcessing, lending.FundingSettled}
	returned := func(id int64) {
		t.Helper()
		moved, changed, err := loan.MoveDisbursement(id, lending.FundingReturned)
		if err != nil || !changed {
			t.Fatalf("the return of %d: changed %v, %v", id, changed, err)
		}
		if loan = moved; loan.Balance().IsNegative() {
			t.Errorf("after the return of %d %s of %s are drawn", id, loan.Drawn(), loan.Amount)
		}
	}
	loan = draw(t, loan, lending.DrawRequest{}, paid...)
	loan = draw(t, loan, lending.DrawRequest{}, paid...)
	loan = draw(t, loan, to("8000"), paid...)
	returned(1)
	loan = draw(t, loan, to("9000"), paid...)
	returned(2)
	loan = draw(t, loan, to("9500"), paid...)
	returned(4)
	early := to("")
	early.ProjectCompletedEarly = true
	loan = draw(t, loan, early, paid...)
	returned(5)
	if loan.Amount.String() != "8500.00" || !loan.Balance().IsZero() {
		t.Errorf("of %s are left %s", loan.Amount, loan.Balance())
	}
	returned(6)
	if loan.Amount.String() != "8000.00" { // as the draw that is left said
		t.Errorf("afterwards the loan's amount is %s", loan.Amount)
	}
}

func TestMoveDisbursementRefuses(t *testing.T) {
	t.Parallel()
	loan := *drawnLoan(t, "400")
	for _, tc := range []struct {
		id   int64
		to   lending.FundingStatus
		want lending.Code
	}{
		{1, "CANCELLED", "INVALID_STATE"},
		{1, "FUNDING_PROCESSING", "INVALID_STATE"},
		{1, "FUNDING_SETTLED", ""},
		{1, "SETTLED", "VALIDATION_ERROR"},
		{2, "CANCELLED", "NOT_FOUND"},
	} {
		_, changed, err := loan.MoveDisbursement(tc.id, tc.to)
		if got := lending.ErrorCode(err); got != tc.want || changed {
			t.Errorf("%d to %s: %q, changed %v; want %q", tc.id, tc.to, got, changed, tc.want)
		}
	}
}

func TestCancelledDrawFreesStageAndBalanceButNotItsNumber(t *testing.T) {
	t.Parallel()
	loan := draw(t, *drawnLoan(t), lending.DrawRequest{}, lending.FundingCancelled)
	if loan.IsPending() || loan.Balance().String() != "1000.00" || !loan.Drawn().IsZero() {
		t.Errorf("pending %v, balance %s, drawn %s", loan.IsPending(), loan.Balance(), loan.Drawn())
	}
	// It is the first draw again, for early completion too.
	_, err := lending.DecideDraw("Approved", &loan, lending.DrawRequest{ProjectCompletedEarly: true})
	wantCode(t, err, lending.CodeEarlyCompletionForbidden)
	loan = draw(t, loan, lending.DrawRequest{})
	second := loan.Disbursements[1]
	if second.Number != 2 || second.Stage != 1 || second.Gross.String() != "400.00" {
		t.Errorf("the next disbursement is %+v", second)
	}
}

func TestCancelledCompletionRestoresTheAmount(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		before := drawnLoan(t, "400")
		if !early {
			before = drawnLoan(t, "400", "400")
		}
		loan := draw(t, *before, lending.DrawRequest{
			UpdatedLoanAmount: moneyOrNil(t, "900"), ProjectCompletedEarly: early,
			Documents: lending.DocumentsGiven,
		})
		if loan.Amount.String() != "900.00" || loan.OriginalAmount.String() != "1000.00" ||
			!loan.Balance().IsZero() || !loan.IsCompleted() {
			t.Errorf("early %v: amount %s of %s, balance %s, completed %v", early,
				loan.Amount, loan.OriginalAmount, loan.Balance(), loan.IsCompleted())
		}
		loan, changed, err := loan.MoveDisbursement(int64(len(loan.Disbursements)), "CANCELLED")
		if err != nil || !changed {
			t.Fatalf("cancelling: %v", err)
		}
		if loan.Amount.String() != "1000.00" || !loan.Balance().Equal(before.Balance()) ||
			loan.IsCompleted() || scheduled(loan) != "400.00 400.00 200.00" {
			t.Errorf("early %v: amount %s, balance %s, stages %s", early, loan.Amount, loan.Balance(),
				scheduled(loan))
		}
	}
}

// The stage of a draw that was pending while the amount changed takes its share
// of the new amount once it is free.
func TestStageFreedAfterAChangeOfAmount(t *testing.T) {
	t.Parallel()
	loan := draw(t, *drawnLoan(t), lending.DrawRequest{})
	change, err := lending.Approval{
		Status: "Approved", ProductUID: "A", Loan: &loan,
		Offers: []lending.Offer{offer(t, "A", "1000", "1500")},
	}.ChangeAmount(money(t, "1200"))
	wantCode(t, err, "")
	if got := scheduled(*change.Loan); got != "400.00 480.00 320.00" {
		t.Errorf("stages while pending are %s", got)
	}
	loan, _, err = change.Loan.MoveDisbursement(1, lending.FundingCancelled)
	wantCode(t, err, "")
	if got := scheduled(loan); got != "480.00 480.00 240.00" {
		t.Errorf("stages once free are %s", got)
	}
}
