package lending_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

// Each action in each status: only Approved allows draws and changes of the amount, three
// statuses allow changes of terms, and applications that have not ended are decided, once.
func TestEveryStatusByEveryAction(t *testing.T) {
	t.Parallel()
	const no, conflict = lending.CodeApplicationNotApproved, lending.CodeInvalidState
	for _, tc := range []struct {
		status                      lending.ApplicationStatus
		draw, amount, terms, decide lending.Code
		opens                       bool
	}{
		{"Pending Review", no, conflict, conflict, "", false},
		{"Hard Pull Authorization", no, conflict, conflict, "", false},
		{"Hard Pull", no, conflict, "", "", false},
		{"Pend Clearance", no, conflict, "", "", false},
		{"Approved", "", "", "", "", true},
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
			_, decideErr := lending.Decide(lending.DecisionRequest{
				Status: tc.status, Requested: money(t, "1000"),
				Products: []lending.Product{product(t, "A", "1000", "9000")},
			})
			_, againErr := lending.Decide(lending.DecisionRequest{Status: tc.status, Decided: true})
			_, opens := lending.LoanToOpen(tc.status, offers, "A")
			for _, check := range []struct {
				action    string
				got, want lending.Code
			}{
				{"draw", lending.ErrorCode(drawErr), tc.draw},
				{"change amount", lending.ErrorCode(amountErr), tc.amount},
				{"change terms", lending.ErrorCode(termsErr), tc.terms},
				{"decide", lending.ErrorCode(decideErr), tc.decide},
				{"decide again", lending.ErrorCode(againErr), conflict},
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
	if loan.Amount().String() != "900.00" || loan.OriginalAmount.String() != "900.00" ||
		loan.FeePercent.String() != "3.75" || scheduled(loan) != "450.00 450.00" {
		t.Errorf("the loan is %+v", loan)
	}
	if loan.Balance().String() != "900.00" || !loan.Drawn().IsZero() || loan.NextNumber() != 1 {
		t.Errorf("balance %s, drawn %s, next %d", loan.Balance(), loan.Drawn(), loan.NextNumber())
	}
}

// draw grants the request on the loan and moves it through the given statuses.
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

// Returned money is recorded whatever was revised and drawn since, and the loan amount becomes
// that of the newest revision in force. Several completing draws exist at once if earlier ones
// were returned: random sequences seldom get there.
func TestLoanAmountAfterReturnsBesideRevisions(t *testing.T) {
	t.Parallel()
	type step struct{ do, want string } // want is the loan amount and what is drawn of it
	thrice := []step{
		{"draw", "10000.00 5000.00"},
		{"draw", "10000.00 5500.00"},
		{"complete 8000", "8000.00 8000.00"},
		{"return 1", "8000.00 3000.00"},
		{"complete 9000", "9000.00 9000.00"},
		{"return 2", "9000.00 8500.00"},
		{"complete 9500", "9500.00 9500.00"},
		{"return 4", "9500.00 3500.00"},
		{"complete", "9500.00 9500.00"},
		{"return 5", "8500.00 8500.00"}, // disbursement 3 had set it lower
	}
	for name, tc := range map[string]struct {
		amount, schedule string
		steps            []step
	}{
		"the approved amount falls before a regular draw comes back": {
			"1000", "20,20,20,20,20",
			[]step{
				{"draw 100", "1000.00 100.00"},
				{"draw", "1000.00 300.00"},
				{"complete 350", "350.00 350.00"},
				{"return 1", "350.00 250.00"},
				{"complete 900", "900.00 900.00"},
				{"return 2", "900.00 700.00"},
				{"complete 1000", "1000.00 1000.00"},
				{"return 4", "1000.00 350.00"},
				{"draw", "1000.00 550.00"},
				{"draw", "1000.00 750.00"},
				{"return 5", "450.00 450.00"},
				{"return 3", "1000.00 400.00"},
				{"approve 800", "800.00 400.00"},
				{"return 7", "800.00 200.00"},
			},
		},
		"a regular draw comes back that was drawn above a revision": {
			"1000", "25,25,25,25",
			[]step{
				{"draw", "1000.00 250.00"},
				{"draw", "1000.00 500.00"},
				{"complete 550", "550.00 550.00"},
				{"return 1", "550.00 300.00"},
				{"complete 900", "900.00 900.00"},
				{"return 2", "900.00 650.00"},
				{"complete 1000", "1000.00 1000.00"},
				{"return 4", "1000.00 400.00"},
				{"draw", "1000.00 650.00"},
				{"complete", "1000.00 1000.00"},
				{"return 5", "650.00 650.00"},
				{"return 6", "550.00 400.00"},
				{"complete", "550.00 550.00"},
			},
		},
		"the last revision comes back": {
			"10000", "50,5,45", append(slices.Clip(thrice), step{"return 3", "10000.00 6000.00"}),
		},
		"an older revision stands again": {
			"10000", "50,5,45", append(slices.Clip(thrice), step{"return 6", "8000.00 2500.00"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loan := lending.OpenLoan(
				offer(t, "A", tc.amount, tc.amount), schedule(t, tc.schedule))
			for _, step := range tc.steps {
				loan = after(t, loan, step.do)
				if got := loan.Amount().String() + " " + loan.Drawn().String(); got != step.want {
					t.Fatalf("after %q amount and drawn are %s, want %s", step.do, got, step.want)
				}
			}
		})
	}
}

// after returns the loan after a step: "draw", "complete", "return" or "approve", with its
// amount or disbursement.
func after(t testing.TB, loan lending.Loan, step string) lending.Loan {
	t.Helper()
	do, argument, _ := strings.Cut(step, " ")
	paid := []lending.FundingStatus{lending.FundingProcessing, lending.FundingSettled}
	switch do {
	case "draw":
		return draw(t, loan,
			lending.DrawRequest{UpdatedDisbursementAmount: moneyOrNil(t, argument)}, paid...)
	case "complete":
		return draw(t, loan, lending.DrawRequest{
			UpdatedLoanAmount: moneyOrNil(t, argument), ProjectCompletedEarly: true,
			Documents: lending.DocumentsGiven,
		}, paid...)
	case "approve":
		change, err := lending.Approval{
			Status: lending.StatusApproved, ProductUID: "A", Loan: &loan,
			Offers: []lending.Offer{offer(t, "A", loan.OriginalAmount.String(), "10000")},
		}.ChangeAmount(money(t, argument))
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		return *change.Loan
	}
	id, err := strconv.ParseInt(argument, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	moved, changed, err := loan.MoveDisbursement(id, lending.FundingReturned)
	if err != nil || !changed {
		t.Fatalf("%s: changed %v, %v", step, changed, err)
	}
	return moved
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
	// It is a first draw again, for early completion too.
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
		if loan.Amount().String() != "900.00" || loan.OriginalAmount.String() != "1000.00" ||
			!loan.Balance().IsZero() || !loan.IsCompleted() {
			t.Errorf("early %v: amount %s of %s, balance %s, completed %v", early,
				loan.Amount(), loan.OriginalAmount, loan.Balance(), loan.IsCompleted())
		}
		loan, changed, err := loan.MoveDisbursement(int64(len(loan.Disbursements)), "CANCELLED")
		if err != nil || !changed {
			t.Fatalf("cancelling: %v", err)
		}
		if loan.Amount().String() != "1000.00" || !loan.Balance().Equal(before.Balance()) ||
			loan.IsCompleted() || scheduled(loan) != "400.00 400.00 200.00" {
			t.Errorf("early %v: amount %s, balance %s, stages %s", early, loan.Amount(), loan.Balance(),
				scheduled(loan))
		}
	}
}

// When a draw that was pending while the amount changed frees its stage, the stage gets its
// share of the new amount.
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
