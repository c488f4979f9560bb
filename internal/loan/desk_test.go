package loan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// at parses a time in New York, the zone of the desk.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	found, err := time.ParseInLocation("2006-01-02 15:04", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestDesk follows two draws over a weekend: who has to do what, since when, and from when on it
// is overdue.
func TestDesk(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	clock.Set(at(t, "2026-11-20 14:00")) // a Friday
	w := apptest.NewAt(t, clock)
	slow := w.NewProduct(t, "SLOW", "50,50")
	fast := w.AddProduct(t, catalog.NewProduct{Code: "FAST", OverdueHours: "4"})
	first := w.Draw(t, w.Loan(t, slow).UID, loan.DrawInput{})
	clock.Set(at(t, "2026-11-20 16:00"))
	second := w.Draw(t, w.Loan(t, fast).UID, loan.DrawInput{})
	settled := w.Draw(t, w.Loan(t, slow).UID, loan.DrawInput{})
	w.Settle(t, settled.ID)

	list := func(filter loan.DeskFilter) (ids []int64, found []loan.Waiting) {
		t.Helper()
		asked := postgres.Paging{Limit: 1}
		for {
			page, next, err := w.Loans.Desk(t.Context(), filter, asked)
			if err != nil {
				t.Fatal(err)
			}
			for _, waiting := range page {
				ids, found = append(ids, waiting.ID), append(found, waiting)
			}
			if next.IsZero() {
				break
			}
			asked.From = next
		}
		if count, err := w.Loans.CountDesk(t.Context(), filter, 10); err != nil || count != len(ids) {
			t.Errorf("%+v: lists %d, counts %d, %v", filter, len(ids), count, err)
		}
		return ids, found
	}
	both := []int64{first.ID, second.ID}
	ids, found := list(loan.DeskFilter{})
	if !slices.Equal(ids, both) {
		t.Fatalf("lists %v, want %v", ids, both)
	}
	if got := found[0]; got.Age != 2*time.Hour || got.Overdue || got.MerchantName == "" ||
		!strings.HasPrefix(got.NextStep, "Fund it: order the transfer, then mark it as processing. "+
			"The cut-off is on Monday, 23 November at 15:00 EST.") {
		t.Errorf("after the cut-off: %+v", got)
	}

	// On Monday at noon the second has waited for an hour of Friday and three hours of Monday.
	clock.Set(at(t, "2026-11-23 11:59"))
	if ids, _ := list(loan.DeskFilter{Overdue: true}); len(ids) != 0 {
		t.Errorf("overdue a minute early: %v", ids)
	}
	clock.Set(at(t, "2026-11-23 12:00"))
	ids, found = list(loan.DeskFilter{Overdue: true})
	if !slices.Equal(ids, []int64{second.ID}) || !found[0].Overdue || found[0].Age != 4*time.Hour ||
		!strings.HasPrefix(found[0].NextStep, "Overdue since 2026-11-23 12:00 EST. Fund it: ") ||
		!strings.HasSuffix(found[0].NextStep, "The cut-off is today at 15:00 EST.") {
		t.Fatalf("overdue are %v: %+v", ids, found)
	}
	for name, one := range map[string]struct {
		filter loan.DeskFilter
		want   []int64
	}{
		"state":           {loan.DeskFilter{Status: lending.FundingProcessing}, nil},
		"age":             {loan.DeskFilter{Age: 5 * time.Hour}, []int64{first.ID}},
		"age of all":      {loan.DeskFilter{Age: 4 * time.Hour}, both},
		"product":         {loan.DeskFilter{ProductUID: uuid.MustParse(fast.UID)}, []int64{second.ID}},
		"partner":         {loan.DeskFilter{PartnerUID: w.Partner}, both},
		"another partner": {loan.DeskFilter{PartnerUID: uuid.New()}, nil},
		"merchant":        {loan.DeskFilter{MerchantUID: w.Merchant}, both},
		"another":         {loan.DeskFilter{MerchantUID: uuid.New(), Overdue: true}, nil},
	} {
		if ids, _ := list(one.filter); !slices.Equal(ids, one.want) {
			t.Errorf("%s: lists %v, want %v", name, ids, one.want)
		}
	}

	// Its age starts over in the new state. An application that left Approved is mentioned.
	w.Fund(t, second.ID, lending.FundingProcessing)
	w.Move(t, second.ApplicationUID, lending.StatusPendClearance)
	_, found = list(loan.DeskFilter{Status: lending.FundingProcessing})
	if len(found) != 1 || found[0].Overdue || found[0].Age != 0 ||
		!strings.HasPrefix(found[0].NextStep, "Its application is Pend Clearance: ") ||
		!strings.Contains(found[0].NextStep, "Wait for the bank: ") {
		t.Errorf("processing: %+v", found)
	}
}
