package lending_test

import (
	"fmt"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

// drawCase is one request on a loan of 1000.00 in stages of 40, 40 and 20 %, with a fee of 3.75
// %.
type drawCase struct {
	// drawn are the gross amounts of settled draws, one per stage.
	drawn []string
	// reduced and revised are the requested amounts; proof means documents.
	reduced, revised string
	proof, early     bool
	// want is "kind stage gross fee net", or the code of the refusal.
	want string
}

func (c drawCase) request(t testing.TB) lending.DrawRequest {
	request := lending.DrawRequest{
		UpdatedDisbursementAmount: moneyOrNil(t, c.reduced),
		UpdatedLoanAmount:         moneyOrNil(t, c.revised),
		ProjectCompletedEarly:     c.early,
	}
	if c.proof {
		request.Documents = lending.DocumentsGiven
	}
	return request
}

func outcome(draw lending.Draw, err error) string {
	if err != nil {
		return string(lending.ErrorCode(err))
	}
	return fmt.Sprintf("%s %d %s %s %s", draw.Kind, draw.Stage, draw.Gross, draw.Fee, draw.Net)
}

func TestDecideDraw(t *testing.T) {
	t.Parallel()
	const required, exceeds = "COMPLETION_DOCUMENTS_REQUIRED", "AMOUNT_EXCEEDS_BALANCE"
	const notAllowed = "COMPLETION_DOCUMENTS_NOT_ALLOWED"
	one, two, all := []string{"400"}, []string{"400", "400"}, []string{"400", "400", "200"}
	for name, tc := range map[string]drawCase{
		"regular":                  {want: "regular 1 400.00 15.00 385.00"},
		"second":                   {drawn: one, want: "regular 2 400.00 15.00 385.00"},
		"reduced":                  {reduced: "399.99", want: "regular 1 399.99 15.00 384.99"},
		"reduced to a cent":        {reduced: "0.01", want: "regular 1 0.01 0.00 0.01"},
		"reduced to all of it":     {reduced: "400", want: exceeds},
		"raised":                   {reduced: "400.01", want: exceeds},
		"reduced to nothing":       {reduced: "0", want: "VALIDATION_ERROR"},
		"regular with documents":   {proof: true, want: notAllowed},
		"regular with new total":   {revised: "900", want: "VALIDATION_ERROR"},
		"documents before amounts": {proof: true, reduced: "0", want: notAllowed},

		"final":                   {drawn: two, proof: true, want: "final 3 200.00 7.50 192.50"},
		"final without documents": {drawn: two, want: required},
		"final and early is final": {
			drawn: two, proof: true, early: true,
			want: "final 3 200.00 7.50 192.50",
		},
		"final takes what was left": {
			drawn: []string{"100", "400"}, proof: true,
			want: "final 3 500.00 18.75 481.25",
		},
		"final with new total": {
			drawn: two, proof: true, revised: "900",
			want: "final 3 100.00 3.75 96.25",
		},
		"new total is the old": {
			drawn: two, proof: true, revised: "1000",
			want: "final 3 200.00 7.50 192.50",
		},
		"new total too high":   {drawn: two, proof: true, revised: "1000.01", want: exceeds},
		"new total just drawn": {drawn: two, proof: true, revised: "800", want: "VALIDATION_ERROR"},
		"new total of nothing": {drawn: two, proof: true, revised: "0", want: "VALIDATION_ERROR"},
		"new total just above": {
			drawn: two, proof: true, revised: "800.01",
			want: "final 3 0.01 0.00 0.01",
		},
		"reduction is not used": {
			drawn: two, proof: true, reduced: "999999",
			want: "final 3 200.00 7.50 192.50",
		},
		"documents are required": {drawn: two, revised: "5000", want: required},

		"early": {drawn: one, proof: true, early: true, want: "early 2 600.00 22.50 577.50"},
		"early with new total": {
			drawn: one, proof: true, early: true, revised: "500",
			want: "early 2 100.00 3.75 96.25",
		},
		"early without documents": {drawn: one, early: true, want: required},
		"early at once":           {proof: true, early: true, want: "EARLY_COMPLETION_NOT_ALLOWED"},
		"early at once, bare":     {early: true, want: "EARLY_COMPLETION_NOT_ALLOWED"},

		"nothing left": {drawn: all, proof: true, want: exceeds},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			draw, err := lending.DecideDraw("Approved", drawnLoan(t, tc.drawn...), tc.request(t))
			if got := outcome(draw, err); got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
			if draw.Kind != "" && draw.DocumentsRequired != (draw.Kind != lending.DrawRegular) {
				t.Errorf("a %s draw requires documents: %v", draw.Kind, draw.DocumentsRequired)
			}
			if given := err == nil && tc.revised != ""; given != (draw.NewLoanAmount != nil) {
				t.Errorf("the new loan amount is %v", draw.NewLoanAmount)
			}
		})
	}
}

func TestFirstDrawOfASingleStageIsFinal(t *testing.T) {
	t.Parallel()
	loan := lending.OpenLoan(offer(t, "A", "1000", "1000"), schedule(t, "100"))
	for _, early := range []bool{false, true} {
		request := lending.DrawRequest{ProjectCompletedEarly: early, Documents: lending.DocumentsGiven}
		draw, err := lending.DecideDraw("Approved", &loan, request)
		if got := outcome(draw, err); got != "final 1 1000.00 37.50 962.50" {
			t.Errorf("early %v: %s, %v", early, got, err)
		}
	}
}

// After a cut of the amount the balance no longer covers the next stage.
func TestStageThatTheBalanceDoesNotCoverIsFinal(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]string{
		"500":    "final 2 100.00 3.75 96.25",
		"666.66": "final 2 266.66 10.00 256.66", // 40 % of it is 266.66, the whole balance
		"666.68": "COMPLETION_DOCUMENTS_NOT_ALLOWED",
		"400":    "AMOUNT_EXCEEDS_BALANCE",
	} {
		approval := lending.Approval{
			Status: "Approved", ProductUID: "A", Loan: drawnLoan(t, "400"),
			Offers: []lending.Offer{offer(t, "A", "1000", "1500")},
		}
		change, err := approval.ChangeAmount(money(t, amount))
		wantCode(t, err, "")
		request := lending.DrawRequest{Documents: lending.DocumentsGiven}
		draw, err := lending.DecideDraw("Approved", change.Loan, request)
		if got := outcome(draw, err); got != want {
			t.Errorf("amount %s: %s, want %s", amount, got, want)
		}
	}
}

func TestStagesThatRoundToNothingArePassedOver(t *testing.T) {
	t.Parallel()
	loan := lending.OpenLoan(offer(t, "A", "0.01", "1"), schedule(t, "40,40,20"))
	request := lending.DrawRequest{Documents: lending.DocumentsGiven}
	draw, err := lending.DecideDraw("Approved", &loan, request)
	if got := outcome(draw, err); got != "final 3 0.01 0.00 0.01" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestOrderOfDrawChecks(t *testing.T) {
	t.Parallel()
	pending, empty := drawnLoan(t, "400"), drawnLoan(t, "400", "400", "200")
	pending.Disbursements[0].Status = lending.FundingProcessing
	pendingEmpty := drawnLoan(t, "400", "400", "200")
	pendingEmpty.Disbursements[2].Status = lending.FundingRequested
	// Everything about this request is wrong for a first draw.
	wrong := lending.DrawRequest{
		UpdatedDisbursementAmount: moneyOrNil(t, "0"), UpdatedLoanAmount: moneyOrNil(t, "5000"),
		ProjectCompletedEarly: true,
	}
	for _, tc := range []struct {
		name   string
		status lending.ApplicationStatus
		loan   *lending.Loan
		want   lending.Code
		// next is the kind and stage of the next draw, which the refusal still has.
		next string
	}{
		{"not approved and no loan", "Hard Pull", nil, "APPLICATION_NOT_APPROVED", " 0"},
		{"not approved", "Closed", drawnLoan(t, "400"), "APPLICATION_NOT_APPROVED", "early 2"},
		{"not approved and pending", "Closed", pending, "APPLICATION_NOT_APPROVED", "early 2"},
		{"no loan", "Approved", nil, "INVALID_STATE", " 0"},
		{"pending", "Approved", pending, "DRAW_PENDING", "early 2"},
		{"pending and nothing left", "Approved", pendingEmpty, "DRAW_PENDING", " 0"},
		{"nothing left", "Approved", empty, "AMOUNT_EXCEEDS_BALANCE", " 0"},
		{"kind", "Approved", drawnLoan(t), "EARLY_COMPLETION_NOT_ALLOWED", "early 1"},
		{"documents", "Approved", drawnLoan(t, "400"), "COMPLETION_DOCUMENTS_REQUIRED", "early 2"},
	} {
		draw, err := lending.DecideDraw(tc.status, tc.loan, wrong)
		if got := lending.ErrorCode(err); got != tc.want {
			t.Errorf("%s: %s (%v), want %s", tc.name, got, err, tc.want)
		}
		next := fmt.Sprintf("%s %d", draw.Kind, draw.Stage)
		if next != tc.next || draw.DocumentsRequired != (draw.Kind != "") {
			t.Errorf("%s: next is %s, documents required: %v; want %s",
				tc.name, next, draw.DocumentsRequired, tc.next)
		}
	}
	wrong.Documents = lending.DocumentsGiven
	_, err := lending.DecideDraw("Approved", drawnLoan(t, "400"), wrong)
	wantCode(t, err, lending.CodeAmountExceedsBalance)
}

func TestDrawRefusalsInTheSpecificationsWords(t *testing.T) {
	t.Parallel()
	pending := drawnLoan(t, "400")
	pending.Disbursements[0].Status = lending.FundingRequested
	given := lending.DrawRequest{Documents: lending.DocumentsGiven}
	for name, tc := range map[string]struct {
		status  lending.ApplicationStatus
		loan    *lending.Loan
		request lending.DrawRequest
		want    string
	}{
		"pending": {
			"Approved", pending, given,
			"Error in requestPublicDrawV2: a currently pending draw exists for this loan",
		},
		"documents missing": {
			"Approved", drawnLoan(t, "400", "400"),
			lending.DrawRequest{},
			"File or metadata is required for completion certificate upload",
		},
		"documents too early": {
			"Approved", drawnLoan(t), given,
			"Completion documentation was provided but this is not the final draw for the loan",
		},
		"certificate before approval": {
			"Hard Pull", nil, given,
			"The application must be in Approved status before requesting a draw with an accompanying",
		},
		"draw before approval": {
			"Hard Pull", nil,
			lending.DrawRequest{},
			"The application must be in Approved status before requesting a draw",
		},
	} {
		_, err := lending.DecideDraw(tc.status, tc.loan, tc.request)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: message %v, want %q", name, err, tc.want)
		}
	}
}

// A preview assumes the documents that the draw will need, and otherwise returns what the draw
// itself would.
func TestPreviewAnswersLikeTheDraw(t *testing.T) {
	t.Parallel()
	for _, status := range lending.AllApplicationStatuses() {
		for _, drawn := range [][]string{nil, {"400"}, {"400", "400"}, {"400", "400", "200"}} {
			for _, early := range []bool{false, true} {
				loan := drawnLoan(t, drawn...)
				request := lending.DrawRequest{
					ProjectCompletedEarly: early, Documents: lending.DocumentsAssumed,
				}
				preview, previewErr := lending.DecideDraw(status, loan, request)
				completes := len(drawn) == 2 || len(drawn) < 3 && early
				request.Documents = lending.DocumentsAbsent
				if completes {
					request.Documents = lending.DocumentsGiven
				}
				draw, err := lending.DecideDraw(status, loan, request)
				if outcome(preview, previewErr) != outcome(draw, err) ||
					fmt.Sprint(previewErr) != fmt.Sprint(err) {
					t.Errorf("%s, %d drawn, early %v: preview %s (%v), draw %s (%v)", status, len(drawn),
						early, outcome(preview, previewErr), previewErr, outcome(draw, err), err)
				}
			}
		}
	}
}
