package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"drawbridge/internal/app"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/web/api"
)

type drawCmd struct {
	List drawListCmd `cmd:"" help:"List the draws whose money is under way, or those of a state, oldest request first, with what has to be done about each."`
}

type drawListCmd struct {
	Status   string `help:"Those in this state, such as FUNDING_SETTLED." placeholder:"STATUS"`
	Partner  string `help:"Only this partner's." placeholder:"UID"`
	Merchant string `help:"Only this merchant's." placeholder:"UID"`
	Product  string `help:"Only those of this product." placeholder:"UID"`
	Hours    int    `help:"In their state for at least so many business hours." placeholder:"N"`
	Overdue  bool   `help:"Only those that are in their state for longer than their product allows."`
	listFlags
}

// Run lists the draws.
func (cmd drawListCmd) Run(env *environment) error {
	filter := loan.DeskFilter{
		Status:      lending.FundingStatus(cmd.Status),
		PartnerUID:  env.optionalUID("--partner", cmd.Partner),
		MerchantUID: env.optionalUID("--merchant", cmd.Merchant),
		ProductUID:  env.optionalUID("--product", cmd.Product),
		Age:         time.Duration(cmd.Hours) * time.Hour, Overdue: cmd.Overdue,
	}
	if all := lending.AllFundingStatuses(); cmd.Status != "" && !slices.Contains(all, filter.Status) {
		env.refusef("--status is %q; it must be one of %s", cmd.Status, lending.JoinNames(all))
	}
	if cmd.Hours < 0 || cmd.Hours > maxDeskHours {
		env.refusef("--hours must be from 0 to %d", maxDeskHours)
	}
	filter.Limit, filter.Cursor = env.page(cmd.listFlags)
	return rowsOf("disbursements", api.NewWaitingBody,
		"DRAW\tSTATE\tHOURS\tNET\tBORROWER\tMERCHANT\tNEXT STEP",
		func(w io.Writer, d loan.Waiting) {
			fmt.Fprintf(w, "%d\t%s\t%.1f\t%s\t%s\t%s\t%s\n", d.ID, d.Status, d.Age.Hours(), d.Net,
				d.Borrower, d.MerchantName, d.NextStep)
		}).page(env, cmd.JSON, func(s *app.Services) ([]loan.Waiting, postgres.Cursor, error) {
		return s.Loans.Desk(env.ctx, filter)
	})
}

// maxDeskHours is a year of business hours and more.
const maxDeskHours = 10_000
