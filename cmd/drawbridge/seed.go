package main

import (
	"errors"
	"fmt"
	"io"

	"drawbridge/internal/config"
	"drawbridge/internal/postgres"
	"drawbridge/internal/seed"
)

type seedCmd struct {
	Deliveries int  `help:"How many deliveries to make." default:"2000000"`
	Attempts   int  `help:"About how many attempts they have, 1 to 1.8 for each." default:"3000000"`
	Partners   int  `help:"How many partners share them." default:"40"`
	Days       int  `help:"How many days back they go." default:"182"`
	JSON       bool `help:"Print one JSON document."`
}

// errSeedInProduction keeps made-up rows out of real data.
var errSeedInProduction = errors.New(
	"seed makes up data; it is refused but with DRAWBRIDGE_ENV=development")

// Run fills the database and prints what it holds then.
func (cmd seedCmd) Run(env *environment) error {
	if cmd.Deliveries < 1 || cmd.Partners < 1 || cmd.Days < 1 {
		return usagef("--deliveries, --partners and --days must be at least 1")
	}
	ratio := float64(cmd.Attempts) / float64(cmd.Deliveries)
	if ratio < 1 || ratio > 1.8 {
		return usagef("--attempts must be from 1 to 1.8 times --deliveries")
	}
	return env.use(func(settings config.Config, db *postgres.DB) error {
		if settings.Env.Hosted() {
			return errSeedInProduction
		}
		totals, err := seed.Fill(env.ctx, db, seed.Plan{
			Deliveries: cmd.Deliveries, Attempts: cmd.Attempts, Partners: cmd.Partners, Days: cmd.Days,
			Progress: func(made int) { fmt.Fprintf(env.stderr, "%d deliveries\n", made) },
		})
		if err != nil {
			return err
		}
		return env.print(cmd.JSON, output{totals, func(w io.Writer) {
			fmt.Fprintf(w, "%d partners, %d subscriptions, %d applications, %d loans, %d deliveries, "+
				"%d attempts, %d e-mails, %d API requests, %d entries in the audit log\n",
				totals.Partners, totals.Subscriptions, totals.Applications, totals.Loans,
				totals.Deliveries, totals.Attempts, totals.Emails, totals.Requests,
				totals.AuditEntries)
		}})
	})
}
