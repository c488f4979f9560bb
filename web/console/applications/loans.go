package applications

import (
	"strings"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// loans lists loans with their draws in progress.
func (f *Feature) loans() list.Spec[loan.Summary] {
	tabs := list.Options("All", loan.ListStates(), func(state loan.ListState) string {
		return applications.LoanChip(string(state)).Word
	})
	draws := list.Options("Any or none", lending.AllFundingStatuses(), applications.DrawWord)
	return list.Spec[loan.Summary]{
		Name: "console.loans", Path: paths.Loans, Role: operator.RoleSupport,
		Place: page.Place{Section: ui.SectionLoans, Title: "Loans and draws"},
		Intro: "Loans of all partners. Each leads to its schedule, draws and certificates.",
		One:   "loan", Many: "loans", Order: "Newest first",
		Tabs: list.Tabs{Name: "state", Options: tabs},
		Filters: []list.Filter{
			list.Partner, list.Product,
			{
				Name: "draw", Label: "Has a draw that is", Kind: list.Choice, Options: draws,
				Thing: "state of a draw",
			},
		},
		Read: func(v *list.Values) list.Source[loan.Summary] {
			return list.Filtered(loan.ListFilter{
				State:      list.OneOf(v, "state", loan.ListStates()),
				PartnerUID: v.UID("partner"), ProductUID: v.UID("product"),
				Draw: list.OneOf(v, "draw", lending.AllFundingStatuses()),
			}, f.Loans.List, f.Loans.Count)
		},
		Table: applications.LoanTable,
		NoMatch: ui.EmptyProps{
			Title: "No loan matches these filters", Text: "Choose another state, partner, product or draw.",
		},
		Empty: ui.EmptyProps{
			Icon: "landmark", Title: "No loans yet",
			Text: "A loan opens once its application is Approved and an offered product is selected.",
			Href: paths.Applications, Action: "See applications",
		},
		File: &list.File[loan.Summary]{
			Path: paths.LoansCSV, Name: "loans", Action: "loan.export", Subject: "loan",
			Columns: []string{
				"application_id", "opened_at", "state", "borrower", "partner", "merchant", "product",
				"loan_amount", "drawn_amount", "pending_disbursement_id", "pending_amount", "next_stage",
				"next_amount",
			},
			Cells: func(s loan.Summary) []string {
				return []string{
					s.UID.String(), list.CellTime(s.OpenedAt), string(s.State()),
					strings.TrimSpace(s.FirstName + " " + s.LastName), s.PartnerName, s.MerchantName,
					s.ProductCode, s.Amount.String(), s.Drawn.String(),
					list.CellNumber(ui.Value(s.PendingID)), list.CellMoney(s.Pending),
					list.CellNumber(int64(ui.Value(s.NextStage))), list.CellMoney(s.NextAmount),
				}
			},
		},
	}
}
