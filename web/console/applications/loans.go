package applications

import (
	"context"
	"strings"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/search"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
	"drawbridge/web/console/list"
	"drawbridge/web/console/page"
)

// loans lists loans with their draws under way.
func (f *Feature) loans() list.Spec[loan.Summary] {
	tabs := []ui.Option{{Label: "All"}}
	for _, state := range loan.ListStates() {
		tabs = append(tabs, ui.Option{
			Value: string(state), Label: applications.LoanChip(string(state)).Word,
		})
	}
	drawOptions := []ui.Option{{Label: "Any or none"}}
	for _, state := range lending.AllFundingStatuses() {
		drawOptions = append(drawOptions,
			ui.Option{Value: string(state), Label: applications.DrawWord(state)})
	}
	return list.Spec[loan.Summary]{
		Name: "console.loans", Path: paths.Loans, Role: operator.RoleSupport,
		Place: page.Place{Section: ui.SectionLoans, Title: "Loans and draws"},
		Intro: "Loans of all partners. Each leads to its schedule, draws and certificates.",
		One:   "loan", Many: "loans", Order: "Newest first",
		Tabs: list.Tabs{Name: "state", Options: tabs},
		Filters: []list.Filter{
			{
				Name: "partner", Label: "Partner", Kind: list.Choice,
				Pick: search.Partner, Options: list.Any("All partners"),
			},
			{
				Name: "product", Label: "Product", Kind: list.Choice,
				Pick: search.Product, Options: list.Any("All products"),
			},
			{
				Name: "draw", Label: "Has a draw that is", Kind: list.Choice, Options: drawOptions,
				Thing: "state of a draw",
			},
		},
		Read:  f.readLoans,
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
			Cells: loanCells,
		},
	}
}

func (f *Feature) readLoans(v *list.Values) list.Source[loan.Summary] {
	filter := loan.ListFilter{
		State:      list.OneOf(v, "state", loan.ListStates()),
		PartnerUID: v.UID("partner"), ProductUID: v.UID("product"),
		Draw: list.OneOf(v, "draw", lending.AllFundingStatuses()),
	}
	return list.Source[loan.Summary]{
		Load: list.Keyset(func(
			ctx context.Context, from postgres.Cursor, limit int,
		) ([]loan.Summary, postgres.Cursor, error) {
			filter := filter // the count reads it meanwhile
			filter.Cursor, filter.Limit = from, limit
			return f.Loans.List(ctx, filter)
		}),
		Count: func(ctx context.Context, limit int) (int, error) {
			return f.Loans.Count(ctx, filter, limit)
		},
	}
}

func loanCells(s loan.Summary) []string {
	return []string{
		s.UID.String(), list.CellTime(s.OpenedAt), string(s.State()),
		strings.TrimSpace(s.FirstName + " " + s.LastName), s.PartnerName, s.MerchantName,
		s.ProductCode, s.Amount.String(), s.Drawn.String(), list.CellNumber(page.Value(s.PendingID)),
		list.CellMoney(s.Pending), list.CellNumber(int64(page.Value(s.NextStage))),
		list.CellMoney(s.Scheduled),
	}
}
