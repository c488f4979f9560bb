package lending_test

import (
	"strings"
	"testing"

	"drawbridge/internal/lending"
)

func product(t testing.TB, code, minimum, maximum string) lending.Product {
	t.Helper()
	return lending.Product{
		UID: "uid-" + code, Code: code, Name: "Product " + code, Term: "120",
		InterestRate: percent(t, "7.99"), MerchantFeePercentage: percent(t, "3.75"),
		Schedule: schedule(t, "40,40,20"), Min: money(t, minimum), Max: money(t, maximum),
	}
}

func TestDecideOffers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		requested, income string
		minimum, maximum  string
		// borrower, project, lesser of both, approved; empty for no offer
		want string
	}{
		"all fits":              {"10000", "60000", "1000", "50000", "24000 10000 10000 10000"},
		"income binds":          {"10000", "20000", "1000", "50000", "8000 10000 8000 8000"},
		"product binds":         {"90000", "900000", "1000", "50000", "360000 50000 50000 50000"},
		"no income given":       {"10000", "", "1000", "50000", "50000 10000 10000 10000"},
		"income of nothing":     {"10000", "0", "1000", "50000", ""},
		"nothing at no minimum": {"10000", "0", "0", "50000", ""},
		"at the minimum":        {"1000", "60000", "1000", "50000", "24000 1000 1000 1000"},
		"below the minimum":     {"999.99", "60000", "1000", "50000", ""},
		"income below minimum":  {"10000", "2499.99", "1000.01", "50000", ""},
		"cents round half up":   {"10000", "2500.01", "1000", "50000", "1000 10000 1000 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			decision, err := lending.Decide(lending.DecisionRequest{
				Status:    lending.StatusPendingReview,
				Products:  []lending.Product{product(t, "A", tc.minimum, tc.maximum)},
				Requested: money(t, tc.requested), AnnualIncome: moneyOrNil(t, tc.income),
			})
			wantCode(t, err, "")
			if tc.want == "" {
				if decision.Status != lending.StatusDeclined || len(decision.Offers) != 0 {
					t.Fatalf("decided %+v, want declined", decision)
				}
				return
			}
			if decision.Status != lending.StatusHardPullAuthorization || len(decision.Offers) != 1 {
				t.Fatalf("decided %+v, want one offer", decision)
			}
			made := decision.Offers[0]
			amounts := []lending.Money{
				made.BorrowerMax, made.ProjectMax, made.MaxAmount, made.ApprovedAmount,
			}
			got := strings.ReplaceAll(strings.Join(texts(amounts), " "), ".00", "")
			if got != tc.want {
				t.Errorf("offer is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestDecideTakesEachProduct(t *testing.T) {
	t.Parallel()
	decision, err := lending.Decide(lending.DecisionRequest{
		Status: lending.StatusPendingReview, Requested: money(t, "5000"),
		Products: []lending.Product{
			product(t, "C", "1000", "4000"), product(t, "A", "1000", "9000"),
			product(t, "B", "6000", "9000"),
		},
	})
	wantCode(t, err, "")
	if got := approved(decision.Offers); got != "A=5000.00 C=4000.00" {
		t.Errorf("offers are %s, want the two products in question by code", got)
	}
	made := decision.Offers[0]
	if made.ProductUID != "uid-A" || made.ProductName != "Product A" || made.Term != "120" ||
		made.InterestRate.String() != "7.99" || made.MerchantFeePercentage.String() != "3.75" {
		t.Errorf("the offer does not carry the product's terms: %+v", made)
	}
}

// An application that a person moved on before the decision gets the offers and keeps its
// status. Without an offer it is declined like any other, if its status still allows that.
func TestDecideWhatAPersonMovedOn(t *testing.T) {
	t.Parallel()
	for _, status := range lending.AllApplicationStatuses() {
		if status == lending.StatusPendingReview || status.IsFinal() {
			continue
		}
		declined := lending.StatusDeclined
		if status == lending.StatusApproved {
			declined = "" // refused
		}
		for _, tc := range []struct {
			requested, name string
			want            lending.ApplicationStatus
			offers          int
		}{
			{"5000", "Miller", status, 1},
			{"5000", "Clearance", status, 1},
			{"500", "Miller", declined, 0},
			{"5000", "Declined", declined, 0},
			{"500", "Clearance", "Pend Clearance", 0},
			{"5000", "Review", "Pending Review", 0},
		} {
			decision, err := lending.Decide(lending.DecisionRequest{
				Status: status, Requested: money(t, tc.requested),
				Products: []lending.Product{product(t, "A", "1000", "9000")},
				LastName: tc.name, Switches: true,
			})
			if tc.want == "" {
				wantCode(t, err, lending.CodeInvalidState)
			} else {
				wantCode(t, err, "")
			}
			if decision.Status != tc.want || len(decision.Offers) != tc.offers {
				t.Errorf("%s, %s for %s: decided %+v, want %q with %d offers",
					status, tc.name, tc.requested, decision, tc.want, tc.offers)
			}
		}
	}
}

func TestDecideByLastName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		switches bool
		want     lending.ApplicationStatus
		offers   int
	}{
		{"Declined", true, "Declined", 0},
		{"Review", true, "Pending Review", 0},
		{"Clearance", true, "Pend Clearance", 1},
		{"Miller", true, "Hard Pull Authorization", 1},
		{"Declined", false, "Hard Pull Authorization", 1},
		{"Review", false, "Hard Pull Authorization", 1},
		{"Clearance", false, "Hard Pull Authorization", 1},
	} {
		decision, err := lending.Decide(lending.DecisionRequest{
			Status: lending.StatusPendingReview, Requested: money(t, "5000"),
			Products: []lending.Product{product(t, "A", "1000", "9000")},
			LastName: tc.name, Switches: tc.switches,
		})
		if err != nil || decision.Status != tc.want || len(decision.Offers) != tc.offers {
			t.Errorf("%s (switches %v): %+v, %v; want %s", tc.name, tc.switches, decision, err, tc.want)
		}
	}
}
