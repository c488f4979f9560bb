package loan_test

import (
	"context"
	"testing"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// The list shows the stage and the amount of the next draw if it is requested without amounts.
func TestListForetellsTheDraw(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	tests := []struct {
		name    string
		product lending.Product
		draws   []loan.DrawInput
		amount  string // the approved amount afterwards
		want    string // the gross amount, empty for no draw
	}{
		{"first", solar, nil, "", "4000.00"},
		{"middle", solar, []loan.DrawInput{reduced("1000")}, "", "4000.00"},
		{"last after a reduced one", solar, []loan.DrawInput{reduced("1000"), {}}, "", "5000.00"},
		{"lowered to less than the stage", solar, []loan.DrawInput{{}}, "5000", "1000.00"},
		{"completed early", solar, []loan.DrawInput{{}, completed(true, "")}, "", ""},
		{"lowered to what is drawn", solar, []loan.DrawInput{{}}, "4000", ""},
		{"a stage of nothing", w.NewProduct(t, "TINY", "0.01,50,49.99"), nil, "1", "0.50"},
		{"a single stage", w.NewProduct(t, "ONCE", "100"), nil, "", "10000.00"},
	}
	for _, test := range tests { // each adds the newest loan
		uid := w.Loan(t, test.product).UID
		for _, input := range test.draws {
			w.Settle(t, w.Draw(t, uid, input).ID)
		}
		if test.amount != "" {
			w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
				_, err := w.Applications.ChangeAmount(ctx, tx, w.Caller(), uid,
					apptest.Money(test.amount))
				return err
			})
		}
		preview, err := w.Loans.PreviewDraw(t.Context(), w.Caller(), uid, lending.DrawRequest{})
		if err != nil {
			t.Fatal(err)
		}
		page, _, err := w.Loans.List(t.Context(), loan.ListFilter{}, postgres.Paging{Limit: 1})
		if err != nil || len(page) != 1 || page[0].UID != uid {
			t.Fatalf("%s: listed %+v, %v", test.name, page, err)
		}
		got := page[0]
		state := loan.ListReady
		if test.want == "" {
			state = loan.ListCompleted
		}
		filtered, _, err := w.Loans.List(t.Context(), loan.ListFilter{State: state},
			postgres.Paging{Limit: 1})
		if err != nil || len(filtered) != 1 || filtered[0].UID != uid || got.State() != state {
			t.Errorf("%s: state %s, want %s, of which are %+v, %v",
				test.name, got.State(), state, filtered, err)
		}
		if test.want == "" {
			if got.NextStage != nil || got.NextAmount != nil || preview.Refusal == nil {
				t.Errorf("%s: listed %+v, preview %+v", test.name, got, preview)
			}
			continue
		}
		if got.NextStage == nil || *got.NextStage != preview.Stage ||
			!got.NextAmount.Equal(preview.Gross) || got.NextAmount.String() != test.want {
			t.Errorf("%s: listed %v of stage %v, want %s as in the preview %+v",
				test.name, got.NextAmount, got.NextStage, test.want, preview)
		}
	}
}
