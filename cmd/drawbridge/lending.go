package main

import (
	"fmt"
	"io"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/web/api"
)

type productCmd struct {
	Create productCreateCmd `cmd:"" help:"Create a product."`
	Update productUpdateCmd `cmd:"" help:"Change when draws of a product are overdue; its terms never change."`
	List   productListCmd   `cmd:"" help:"List products, newest first."`
}

func printProduct(w io.Writer, p catalog.Product) {
	note := ""
	if !p.Active {
		note = " (not on offer)"
	}
	fmt.Fprintf(w, "%s\t%s\t%s months\trate %s %%\tfee %s %%\tdraws %s\t%s to %s\t%s%s\n",
		p.UID, p.Code, p.Term, p.InterestRate, p.MerchantFeePercentage, p.Schedule, p.Min, p.Max,
		p.Name, note)
}

// productCreateCmd takes numbers as text, so that the domain parses them.
type productCreateCmd struct {
	Code         string `required:"" help:"Unique short name." placeholder:"TEXT"`
	Name         string `required:"" help:"Name that borrowers see." placeholder:"TEXT"`
	Term         string `required:"" help:"Months, such as 120." placeholder:"N"`
	Rate         string `required:"" help:"Annual interest rate, such as 7.99." placeholder:"PERCENT"`
	Fee          string `required:"" help:"Merchant fee, such as 3.75." placeholder:"PERCENT"`
	Schedule     string `required:"" help:"Draw shares, such as 40,40,20." placeholder:"LIST"`
	Min          string `required:"" help:"Minimum amount, such as 1000.00." placeholder:"AMOUNT"`
	Max          string `required:"" help:"Maximum amount, such as 100000.00." placeholder:"AMOUNT"`
	OverdueHours string `default:"16" help:"Business hours in one state after which a draw is overdue, from 1 to 400." placeholder:"N"`
	JSON         bool   `name:"json" help:"Print one JSON document."`
}

// Run creates a product.
func (cmd productCreateCmd) Run(env *environment) error {
	request := catalog.NewProduct{
		Code: cmd.Code, Name: cmd.Name, Term: cmd.Term, Rate: cmd.Rate, Fee: cmd.Fee,
		Schedule: cmd.Schedule, Min: cmd.Min, Max: cmd.Max,
		OverdueHours: cmd.OverdueHours,
	}
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		created, err := s.Catalog.Create(env.ctx, tx, request)
		return did(entry("product.create", created.UID, "", created),
			output{created, aligned(func(w io.Writer) { printProduct(w, created) })}), byFlags(err)
	})
}

type productUpdateCmd struct {
	UID          string `arg:"" help:"Product."`
	OverdueHours string `required:"" help:"Business hours in one state after which a draw is overdue, from 1 to 400." placeholder:"N"`
	JSON         bool   `name:"json" help:"Print one JSON document."`
}

// Run changes when draws of a product are overdue.
func (cmd productUpdateCmd) Run(env *environment) error {
	uid := env.uid("the product", cmd.UID)
	return env.change(cmd.JSON, func(s *app.Services, tx *postgres.Tx) (done, error) {
		before, after, err := s.Catalog.SetOverdueHours(env.ctx, tx, uid, cmd.OverdueHours)
		return did(changeEntry("product.overdue", after.UID, "",
			map[string]any{"overdue_hours": before.OverdueHours},
			map[string]any{"overdue_hours": after.OverdueHours}),
			output{after, aligned(func(w io.Writer) { printProduct(w, after) })}), byFlags(err)
	})
}

type productListCmd struct{ listFlags }

// Run lists products.
func (cmd productListCmd) Run(env *environment) error {
	return rowsOf("products", itself,
		"PRODUCT\tCODE\tTERM\tRATE\tFEE\tSCHEDULE\tAMOUNTS\tNAME", printProduct).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]catalog.Product, postgres.Cursor, error) {
			return s.Catalog.Newest(env.ctx, page)
		})
}

type drawCmd struct {
	List drawListCmd `cmd:"" help:"List the draws whose money is under way, or those in one state, oldest request first, with the next step of each."`
}

type drawListCmd struct {
	Status   string `help:"Draws in this state, such as FUNDING_SETTLED, instead of those under way." placeholder:"STATUS"`
	Partner  string `help:"Only this partner's." placeholder:"UID"`
	Merchant string `help:"Only this merchant's." placeholder:"UID"`
	Product  string `help:"Only those of this product." placeholder:"UID"`
	Hours    int    `help:"Only draws under way that have been in their state for at least this many business hours." placeholder:"N"`
	Overdue  bool   `help:"Only draws under way that have been in their state for longer than their product allows."`
	listFlags
}

// Run lists the draws.
func (cmd drawListCmd) Run(env *environment) error {
	filter := loan.DeskFilter{
		Status:      oneOf(env, "--status", cmd.Status, lending.AllFundingStatuses()),
		PartnerUID:  env.optionalUID("--partner", cmd.Partner),
		MerchantUID: env.optionalUID("--merchant", cmd.Merchant),
		ProductUID:  env.optionalUID("--product", cmd.Product),
		Age:         time.Duration(cmd.Hours) * time.Hour, Overdue: cmd.Overdue,
	}
	if cmd.Hours < 0 || cmd.Hours > maxDeskHours {
		env.refusef("--hours must be from 0 to %d", maxDeskHours)
	}
	return rowsOf("disbursements", api.NewWaitingBody,
		"DRAW\tSTATE\tHOURS\tNET\tBORROWER\tMERCHANT\tNEXT STEP",
		func(w io.Writer, d loan.Waiting) {
			fmt.Fprintf(w, "%d\t%s\t%.1f\t%s\t%s\t%s\t%s\n", d.ID, d.Status, d.Age.Hours(), d.Net,
				d.Borrower, d.MerchantName, d.NextStep)
		}).page(env, cmd.listFlags,
		func(s *app.Services, page postgres.Paging) ([]loan.Waiting, postgres.Cursor, error) {
			return s.Loans.Desk(env.ctx, filter, page)
		})
}

// maxDeskHours is more than the business hours of a year.
const maxDeskHours = 10_000
