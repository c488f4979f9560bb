package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// loanRoutes lists the pages about loans and products.
func (c *Console) loanRoutes() []Route {
	const support, admin = operator.RoleSupport, operator.RoleAdmin
	get, post := http.MethodGet, http.MethodPost
	return []Route{
		{get, paths.Loans, "console.loans", support, c.loans},
		{post, paths.LoansCSV, "console.loans.csv", support, c.exportLoans},
		{get, paths.Products, "console.products", support, c.products},
		{get, paths.ProductNew, "console.product.new", admin, c.newProduct},
		{post, paths.ProductNew, "console.product.create", admin, c.createProduct},
		{get, paths.ProductActive, "console.product.switch", admin, c.switchProduct},
		{post, paths.ProductActive, "console.product.switch.submit", admin, c.switchProduct},
	}
}

// loans lists loans with their draws under way.
func (c *Console) loans(ctx echo.Context) error {
	request, query := ctx.Request().Context(), ctx.QueryParams()
	owners, err := c.Applications.Owners(request, maxOptions)
	if err != nil {
		return err
	}
	products, err := c.Products.List(request)
	if err != nil {
		return err
	}
	page := loanList(query)
	page.Draws, page.Partners = drawOptions(), partnerOptions(owners)
	page.Products, page.Export = productOptions(products), loanQuery(page).Encode()
	page.Tabs = loanTabs(page)
	filter := readLoanFilter(&page, query.Get("cursor"))
	status := http.StatusOK
	if len(page.Faults) > 0 {
		status = http.StatusBadRequest
	} else if err := c.fillLoans(ctx, &page, filter); err != nil {
		return err
	}
	page.Frame, err = c.frame(ctx, ui.SectionLoans, "Loans and draws",
		ui.Crumb{Label: "Loans and draws"})
	if err != nil {
		return err
	}
	return render(ctx, status, applications.LoanListPage(page))
}

// loanList is the list that an address asks for, its filter not looked at yet.
func loanList(query url.Values) applications.LoanList {
	return applications.LoanList{
		State: query.Get("state"), Partner: query.Get("partner"), Product: query.Get("product"),
		Draw: query.Get("draw"), Faults: map[string]string{},
	}
}

func readLoanFilter(page *applications.LoanList, cursor string) loan.ListFilter {
	filter := loan.ListFilter{
		State:      loan.ListState(page.State),
		PartnerUID: readUID(page.Faults, "partner", page.Partner),
		ProductUID: readUID(page.Faults, "product", page.Product),
		Draw:       lending.FundingStatus(page.Draw), Limit: pageSize,
	}
	if page.Draw != "" && drawWords[page.Draw] == "" {
		page.Faults["draw"] = "There is no such state of a draw; choose one."
	}
	if filter.State != "" && !slices.Contains(loan.ListStates(), filter.State) {
		page.Faults["state"] = "There is no such state; choose one above."
	}
	var err error
	if filter.Cursor, err = postgres.ParseCursor(cursor); err != nil {
		page.Faults["cursor"] = "The page's place in the list cannot be read; start from the newest."
	}
	return filter
}

func (c *Console) fillLoans(
	ctx echo.Context, page *applications.LoanList, filter loan.ListFilter,
) error {
	request := ctx.Request().Context()
	count := startCount(request, c, filter, c.Loans.Count)
	rows, next, err := c.Loans.List(request, filter)
	if err != nil {
		return err
	}
	all, err := count.with(len(rows), filter.Cursor.IsZero() && next.IsZero())
	if err != nil {
		return err
	}
	page.Summary = all.in("loan", "loans")
	for _, row := range rows {
		page.Rows = append(page.Rows, loanRow(row))
	}
	query := loanQuery(*page)
	if !next.IsZero() {
		page.Older = paths.With(paths.Loans, with(query, "cursor", next.String()))
	}
	if !filter.Cursor.IsZero() {
		page.Newest = paths.With(paths.Loans, query)
	}
	return nil
}

func loanRow(s loan.Summary) applications.LoanRow {
	row := applications.LoanRow{
		UID: s.UID.String(), Borrower: strings.TrimSpace(s.FirstName + " " + s.LastName),
		Partner: s.PartnerName, Merchant: s.MerchantName, Product: s.ProductCode,
		Amount: ui.Amount(s.Amount), Drawn: ui.Amount(s.Drawn),
		Balance: ui.Amount(s.Amount.Sub(s.Drawn)), State: string(s.State()), Opened: s.OpenedAt,
	}
	if s.PendingID != nil {
		row.Pending = fmt.Sprintf("#%d, %s", *s.PendingID, ui.Amount(*s.Pending))
	}
	if s.NextStage != nil && !s.Completed {
		row.Next = fmt.Sprintf("stage %d, %s", *s.NextStage, ui.Amount(*s.Scheduled))
	}
	return row
}

func loanQuery(page applications.LoanList) url.Values {
	query := url.Values{}
	for name, text := range map[string]string{
		"state": page.State, "partner": page.Partner, "product": page.Product,
		"draw": page.Draw,
	} {
		if text != "" {
			query.Set(name, text)
		}
	}
	return query
}

func loanTabs(page applications.LoanList) []ui.Tab {
	query := loanQuery(page)
	tabs := []ui.Tab{{
		Label: "All", Href: paths.With(paths.Loans, with(query, "state", "")), Current: page.State == "",
	}}
	for _, state := range loan.ListStates() {
		tabs = append(tabs, ui.Tab{
			Label:   applications.LoanChip(string(state)).Word,
			Href:    paths.With(paths.Loans, with(query, "state", string(state))),
			Current: page.State == string(state),
		})
	}
	return tabs
}

// drawOptions are the states of draws as choices of the filter.
func drawOptions() []ui.Option {
	options := []ui.Option{{Label: "Any or none"}}
	for _, state := range []lending.FundingStatus{
		lending.FundingRequested, lending.FundingProcessing, lending.FundingSettled,
		lending.FundingCancelled,
	} {
		options = append(options, ui.Option{Value: string(state), Label: drawWords[string(state)]})
	}
	return options
}

func productOptions(products []catalog.Product) []ui.Option {
	options := []ui.Option{{Label: "All products"}}
	for _, product := range products {
		options = append(options, ui.Option{
			Value: product.UID, Label: product.Code + ", " + product.Name,
		})
	}
	return options
}
