package applications

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// deskAges are the ages in the filter, in business hours.
var deskAges = []string{"1", "4", "8", "16", "40"}

// desk lists the draws whose funding is in progress, with the next step of each, and the
// draws of any other state with their evidence.
func (f *Feature) desk() list.Spec[loan.Waiting] {
	tabs := list.Options("Under way", lending.AllFundingStatuses(), applications.DrawWord)
	ages := list.Options("Any age", deskAges, func(hours string) string {
		if hours == "1" {
			return "1 business hour or more"
		}
		return hours + " business hours or more"
	})
	return list.Spec[loan.Waiting]{
		Name: "console.desk", Path: paths.Desk, Role: operator.RoleSupport,
		Place: page.Place{Section: ui.SectionDesk, Title: "Draw desk"},
		IntroOf: func(context.Context) (string, error) {
			cutoff := f.Loans.Calendar.NextCutoff(f.DB.Now())
			return "Draws whose money is under way, and what has to be done about each. The next " +
				"cut-off for transfers is on " + cutoff.Format("Monday, 2 January at 15:04 MST") + ".", nil
		},
		One: "draw", Many: "draws", Order: "Oldest request first",
		Tabs: list.Tabs{Name: "state", Options: tabs},
		Filters: []list.Filter{
			list.Only("overdue", "Overdue", "Overdue or not", "Overdue"),
			list.Choose("age", "In its state for", ages),
			list.Partner, list.Merchant, list.Product, list.Since.Called("Requested from "),
			list.Until.Called("Requested before "),
		},
		Read:  f.readDesk,
		Table: applications.DeskTable,
		Saved: true,
		NoMatch: ui.EmptyProps{
			Title: "No draw matches these filters",
			Text:  "Choose another state, age, partner or product.",
		},
		Empty: ui.EmptyProps{
			Icon: "circle-check", Title: "No draw waits",
			Text: "Draws stand here from their request until their money is settled or cancelled.",
			Href: paths.Loans, Action: "See loans",
		},
		File: &list.File[loan.Waiting]{
			Path: paths.DeskCSV, Name: "draw-desk", Action: "draw.export", Subject: "draw",
			Columns: []string{
				"disbursement_id", "application_id", "state", "requested_at", "in_state_since",
				"age_business_hours", "overdue", "overdue_at", "borrower", "partner", "merchant",
				"product", "gross_amount", "net_amount", "reference", "method", "effective_date", "reason",
				"next_step",
			},
			Cells: func(w loan.Waiting) []string {
				said := w.Evidence()
				return []string{
					list.CellNumber(w.ID), w.ApplicationUID.String(), string(w.Status),
					list.CellTime(w.RequestedAt), list.CellTime(w.Since), fmt.Sprintf("%.2f", w.Age.Hours()),
					strconv.FormatBool(w.Overdue), list.CellTime(w.Due), w.Borrower, w.PartnerName,
					w.MerchantName, w.ProductCode, w.Gross.String(), w.Net.String(),
					ui.Value(said.Reference), ui.Value(said.Method), ui.Value(said.EffectiveDate),
					ui.Value(said.Reason), w.NextStep,
				}
			},
		},
	}
}

func (f *Feature) readDesk(v *list.Values) list.Source[loan.Waiting] {
	hours, _ := strconv.Atoi(list.OneOf(v, "age", deskAges))
	filter := loan.DeskFilter{
		Status:     list.OneOf(v, "state", lending.AllFundingStatuses()),
		PartnerUID: v.UID("partner"), MerchantUID: v.UID("merchant"), ProductUID: v.UID("product"),
		Age: time.Duration(hours) * time.Hour, Overdue: v.Is("overdue"),
	}
	filter.Since, filter.Until = v.Span()
	return list.Filtered(filter, f.Loans.Desk, f.Loans.CountDesk)
}
