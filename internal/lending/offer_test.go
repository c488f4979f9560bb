package lending_test

import (
	"slices"
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

// offer returns an offer of a product whose uid and code are the same.
func offer(t testing.TB, code, approved, maximum string) lending.Offer {
	t.Helper()
	return lending.Offer{
		ProductUID: code, ProductCode: code, ProductName: "Product " + code, Term: "120",
		InterestRate: percent(t, "7.99"), MerchantFeePercentage: percent(t, "3.75"),
		BorrowerMax: money(t, maximum), ProjectMax: money(t, maximum),
		MaxAmount: money(t, maximum), ApprovedAmount: money(t, approved),
	}
}

func TestReportedOffer(t *testing.T) {
	t.Parallel()
	low, high := offer(t, "A", "100", "100"), offer(t, "C", "200", "200")
	tied := offer(t, "B", "200", "200")
	for name, tc := range map[string]struct {
		offers   []lending.Offer
		selected string
		want     string
	}{
		"no offers":                        {nil, "", ""},
		"no offers though one is selected": {nil, "A", ""},
		"the selected one":                 {[]lending.Offer{low, high}, "A", "A"},
		"the highest":                      {[]lending.Offer{low, high}, "", "C"},
		"of equal ones by product code":    {[]lending.Offer{low, high, tied}, "", "B"},
		"in any order":                     {[]lending.Offer{tied, high, low}, "", "B"},
		"selected without an offer":        {[]lending.Offer{low, high}, "X", "C"},
	} {
		got := ""
		if reported := lending.ReportedOffer(tc.offers, tc.selected); reported != nil {
			got = reported.ProductCode
		}
		if got != tc.want {
			t.Errorf("%s: reported %q, want %q", name, got, tc.want)
		}
	}
}

// drawnLoan returns a loan of 1000.00 in stages of 40, 40 and 20 %, with one settled
// disbursement of each given gross amount.
func drawnLoan(t testing.TB, gross ...string) *lending.Loan {
	t.Helper()
	loan := lending.OpenLoan(offer(t, "A", "1000", "1500"), schedule(t, "40,40,20"))
	for i, amount := range gross {
		kind := lending.DrawRegular
		if i == 2 {
			kind = lending.DrawFinal
		}
		loan.Disbursements = append(loan.Disbursements, lending.Disbursement{
			ID: int64(i + 1), Number: i + 1, Stage: i + 1, Kind: kind,
			Gross: money(t, amount), Net: money(t, amount), Status: lending.FundingSettled,
		})
	}
	return &loan
}

func TestChangeAmountIsRefused(t *testing.T) {
	t.Parallel()
	selected := []lending.Offer{offer(t, "A", "1000", "1500"), offer(t, "B", "900", "950")}
	onlyA := lending.Approval{Offers: selected, ProductUID: "A"}
	early := drawnLoan(t, "400")
	early.Disbursements = append(early.Disbursements, lending.Disbursement{
		ID: 2, Number: 2, Stage: 2, Kind: lending.DrawEarly, Gross: money(t, "600"),
		Status: lending.FundingRequested,
	})
	for name, tc := range map[string]struct {
		approval lending.Approval
		amount   string
		want     lending.Code
	}{
		"zero":               {onlyA, "0", "VALIDATION_ERROR"},
		"above the maximum":  {onlyA, "1500.01", "VALIDATION_ERROR"},
		"at the maximum":     {onlyA, "1500", ""},
		"above any maximum":  {lending.Approval{Offers: selected}, "951", "VALIDATION_ERROR"},
		"below all maximums": {lending.Approval{Offers: selected}, "950", ""},
		"no offers":          {lending.Approval{ProductUID: "A"}, "900", "INVALID_STATE"},
		"below what was drawn": {lending.Approval{
			Offers: selected, ProductUID: "A", Loan: drawnLoan(t, "400"),
		}, "399.99", "VALIDATION_ERROR"},
		"what was drawn": {lending.Approval{
			Offers: selected, ProductUID: "A", Loan: drawnLoan(t, "400"),
		}, "400", ""},
		"last stage drawn": {lending.Approval{
			Offers: selected, ProductUID: "A", Loan: drawnLoan(t, "400", "400", "200"),
		}, "1200", "INVALID_STATE"},
		"completed early": {lending.Approval{
			Offers: selected, ProductUID: "A", Loan: early,
		}, "1200", "INVALID_STATE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.approval.Status = lending.StatusApproved
			_, err := tc.approval.ChangeAmount(money(t, tc.amount))
			wantCode(t, err, tc.want)
			if tc.want == lending.CodeValidation && wrongFields(err)[0] != "approved_amount" {
				t.Errorf("the error names %v", wrongFields(err))
			}
		})
	}
}

func TestChangeAmountOfTheSelectedOffer(t *testing.T) {
	t.Parallel()
	approval := lending.Approval{
		Status: lending.StatusApproved, ProductUID: "A",
		Offers: []lending.Offer{offer(t, "B", "900", "950"), offer(t, "A", "1000", "1500")},
	}
	change, err := approval.ChangeAmount(money(t, "1200"))
	wantCode(t, err, "")
	if !change.Changed || change.Loan != nil {
		t.Errorf("changed %v, loan %v", change.Changed, change.Loan)
	}
	if got := approved(change.Offers); got != "B=900.00 A=1200.00" {
		t.Errorf("offers are %s", got)
	}
	got := approved([]lending.Offer{change.Previous, change.Updated})
	if got != "A=1000.00 A=1200.00" {
		t.Errorf("reported are %s", got)
	}
	if got := approved(approval.Offers); got != "B=900.00 A=1000.00" {
		t.Errorf("the offers given became %s", got)
	}
}

func TestChangeAmountOfEveryOffer(t *testing.T) {
	t.Parallel()
	approval := lending.Approval{
		Status: lending.StatusApproved,
		Offers: []lending.Offer{offer(t, "A", "900", "950"), offer(t, "B", "1000", "1500")},
	}
	change, err := approval.ChangeAmount(money(t, "800"))
	wantCode(t, err, "")
	if got := approved(change.Offers); got != "A=800.00 B=800.00" {
		t.Errorf("offers are %s", got)
	}
	// A comes first now that both are equal, but what changed for the receiver is B.
	if got := approved([]lending.Offer{change.Previous, change.Updated}); got != "B=1000.00 B=800.00" {
		t.Errorf("reported are %s", got)
	}
	again := approval
	again.Offers = change.Offers
	if change, err = again.ChangeAmount(money(t, "800")); err != nil || change.Changed {
		t.Errorf("the same amount again: changed %v, %v", change.Changed, err)
	}
}

// While no product is selected, the offer that would be reported may already have the new terms:
// the reported one is then the best of those that changed.
func TestChangeReportsAnOfferThatChanged(t *testing.T) {
	t.Parallel()
	best := offer(t, "C", "900", "900")
	best.Term = "12"
	others := []lending.Offer{
		offer(t, "D", "800", "800"), offer(t, "B", "800", "800"), offer(t, "A", "700", "700"),
	}
	for term, want := range map[string]string{"12": "B 120 12", "60": "C 12 60"} {
		change, err := lending.Approval{
			Status: lending.StatusHardPull, Offers: append(slices.Clip(others), best),
		}.ChangeTerms(lending.Terms{Term: &term})
		wantCode(t, err, "")
		got := change.Previous.ProductCode + " " + change.Previous.Term + " " + change.Updated.Term
		if got != want || !change.Changed || change.Updated.ProductCode != change.Previous.ProductCode {
			t.Errorf("to %s months: reported %q, changed %t; want %q", term, got, change.Changed, want)
		}
	}
}

func approved(offers []lending.Offer) string {
	parts := make([]string, len(offers))
	for i, offer := range offers {
		parts[i] = offer.ProductCode + "=" + offer.ApprovedAmount.String()
	}
	return strings.Join(parts, " ")
}

func TestChangeAmountOfAnOpenLoan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		drawn        []string
		amount, want string
		balance      string
	}{
		"nothing drawn":            {nil, "1200", "480.00 480.00 240.00", "1200.00"},
		"one stage drawn":          {[]string{"400"}, "1200", "400.00 480.00 320.00", "800.00"},
		"two stages drawn":         {[]string{"400", "400"}, "1200", "400.00 400.00 400.00", "400.00"},
		"less":                     {[]string{"400"}, "800", "400.00 320.00 80.00", "400.00"},
		"a reduced draw":           {[]string{"100"}, "1200", "400.00 480.00 320.00", "1100.00"},
		"no more than was drawn":   {[]string{"400"}, "400", "400.00 160.00 0.00", "0.00"},
		"to a third, half up":      {nil, "333.33", "133.33 133.33 66.67", "333.33"},
		"less than the next stage": {[]string{"400"}, "500", "400.00 200.00 0.00", "100.00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			approval := lending.Approval{
				Status: lending.StatusApproved, ProductUID: "A",
				Offers: []lending.Offer{offer(t, "A", "1000", "1500")},
				Loan:   drawnLoan(t, tc.drawn...),
			}
			change, err := approval.ChangeAmount(money(t, tc.amount))
			wantCode(t, err, "")
			loan := change.Loan
			if got := scheduled(*loan); got != tc.want {
				t.Errorf("stages are %s, want %s", got, tc.want)
			}
			if !loan.Amount().Equal(money(t, tc.amount)) || !loan.OriginalAmount.Equal(loan.Amount()) {
				t.Errorf("loan of %s, originally %s", loan.Amount(), loan.OriginalAmount)
			}
			if loan.Balance().String() != tc.balance {
				t.Errorf("balance %s, want %s", loan.Balance(), tc.balance)
			}
			if got := scheduled(*approval.Loan); got != "400.00 400.00 200.00" {
				t.Errorf("the loan given became %s", got)
			}
		})
	}
}

func scheduled(loan lending.Loan) string {
	parts := make([]string, len(loan.Stages))
	for i, stage := range loan.Stages {
		parts[i] = stage.Scheduled.String()
	}
	return strings.Join(parts, " ")
}

func TestParseTerms(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	for name, tc := range map[string]struct {
		term, rate, fee *string
		want            []string
	}{
		"all":  {text("120"), text("7.99"), text("3.75"), nil},
		"one":  {nil, nil, text("0"), nil},
		"none": {nil, nil, nil, []string{"term"}},
		"all wrong": {
			text("ten"), text("-1"), text("101"),
			[]string{"term", "interest_rate", "merchant_fee_percentage"},
		},
		"no months":    {text("0"), nil, nil, []string{"term"}},
		"fifty years":  {text("600"), nil, nil, nil},
		"a month more": {text("601"), nil, nil, []string{"term"}},
		"signed":       {text("+12"), nil, nil, []string{"term"}},
		"a fraction":   {text("12.5"), nil, nil, []string{"term"}},
		"empty":        {text(""), nil, nil, []string{"term"}},
		"endless":      {text(strings.Repeat("9", 99)), nil, nil, []string{"term"}},
	} {
		_, err := lending.ParseTerms(tc.term, tc.rate, tc.fee)
		if got := wrongFields(err); !slices.Equal(got, tc.want) {
			t.Errorf("%s: faults in %v (%v), want %v", name, got, err, tc.want)
		}
	}
}

func TestChangeTerms(t *testing.T) {
	t.Parallel()
	term, fee := "0240", "5.50"
	terms, err := lending.ParseTerms(&term, nil, &fee)
	wantCode(t, err, "")
	approval := lending.Approval{
		Status: lending.StatusApproved, ProductUID: "A", Loan: drawnLoan(t, "400"),
		Offers: []lending.Offer{offer(t, "A", "1000", "1500"), offer(t, "B", "900", "950")},
	}
	change, err := approval.ChangeTerms(terms)
	wantCode(t, err, "")
	updated := change.Updated
	if updated.Term != "240" || updated.MerchantFeePercentage.String() != "5.5" ||
		updated.InterestRate.String() != "7.99" {
		t.Errorf("updated to %+v", updated)
	}
	if change.Previous.Term != "120" || !change.Changed {
		t.Errorf("changed %v from %+v", change.Changed, change.Previous)
	}
	if !change.Offers[1].Equal(approval.Offers[1]) {
		t.Errorf("the offer of another product became %+v", change.Offers[1])
	}
	loan := change.Loan
	if loan.FeePercent.String() != "5.5" || scheduled(*loan) != "400.00 400.00 200.00" {
		t.Errorf("the loan pays %s %% over %s", loan.FeePercent, scheduled(*loan))
	}
	if !loan.Disbursements[0].Fee.Equal(approval.Loan.Disbursements[0].Fee) {
		t.Error("an earlier draw pays the new fee")
	}
	approval.Offers = change.Offers
	if change, err = approval.ChangeTerms(terms); err != nil || change.Changed {
		t.Errorf("the same terms again: changed %v, %v", change.Changed, err)
	}
	_, err = lending.Approval{Status: lending.StatusHardPull}.ChangeTerms(terms)
	wantCode(t, err, lending.CodeInvalidState)
}
