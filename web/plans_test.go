package web_test

import (
	"net/http"
	"testing"

	"drawbridge/internal/app/apptest"
)

// TestCallsKeepTheirPlans repeats each request over one connection: planning a statement
// again each time costs more than running it.
func TestCallsKeepTheirPlans(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	s.DB.SetMaxOpenConns(1)
	const calls = 12
	for range calls {
		uid := s.Loan("P404020")
		s.DrawSettled(uid)
		path := "/v2/loan/" + uid.String()
		if answer := s.Do(apptest.Call{Path: path}); answer.Status != http.StatusOK {
			t.Fatalf("reading the loan answered %s", answer.Raw)
		}
	}
	var kept, again []string
	for into, condition := range map[*[]string]string{&kept: `>=`, &again: `<`} {
		err := s.DB.SelectContext(t.Context(), into, `
			SELECT statement
			  FROM pg_prepared_statements
			 WHERE generic_plans + custom_plans >= $1
			   AND generic_plans `+condition+` custom_plans`, calls)
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(kept) < 5 {
		t.Errorf("only %d statements were run often over the connection", len(kept))
	}
	for _, statement := range again {
		t.Errorf("planned again for each call:%s", statement)
	}
}
