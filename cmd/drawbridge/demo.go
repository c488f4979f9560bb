package main

import (
	"errors"
	"fmt"
	"io"
	"net"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/demo"
	"drawbridge/internal/postgres"
	"drawbridge/internal/seed"
)

type demoCmd struct{ jsonFlag }

// Run loads the demo data and prints it.
func (cmd demoCmd) Run(env *environment) error {
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		if s.Settings.PublicURL == "" {
			// The URL reported by a serving process, or the one that a process would have.
			origin, err := s.Processes.Serving(env.ctx)
			if err != nil {
				return output{}, err
			}
			if origin == "" {
				address, err := net.ResolveTCPAddr("tcp", s.Settings.Listen)
				if err != nil {
					return output{}, fmt.Errorf("reading DRAWBRIDGE_LISTEN: %w", err)
				}
				origin = "http://" + app.Reachable(address)
			}
			s.Settings.PublicURL = origin
		}
		data, err := demo.Load(env.ctx, s)
		for _, lapsed := range data.Lapsed {
			fmt.Fprintln(env.stderr, lapsed)
		}
		return output{data, func(w io.Writer) {
			fmt.Fprintf(w, "API      %s\nConsole  %s\n\n", data.BaseURL, data.ConsoleURL)
			for _, user := range data.Users {
				fmt.Fprintf(w, "user     %-30s %-9s password %s\n", user.Email, user.Role, user.Password)
			}
			for _, partner := range data.Partners {
				fmt.Fprintf(w, "\npartner  %s  %s\n", partner.UID, partner.Name)
				for _, client := range partner.Clients {
					fmt.Fprintf(w, "  client %s\n  secret %s\n", client.ID, client.Secret)
					for _, merchant := range client.Merchants {
						fmt.Fprintf(w, "  merchant %s\n", merchant)
					}
				}
			}
			fmt.Fprintln(w)
			for _, product := range data.Products {
				fmt.Fprintf(w, "product  %s  %-12s %-17s %s\n", product.UID, product.Code,
					product.Schedule, product.Name)
			}
			fmt.Fprintln(w)
			for _, loan := range data.Loans {
				fmt.Fprintf(w, "loan     %s  %-16s %s\n", loan.UID, loan.Stage, loan.Description)
			}
			for _, application := range data.Applications {
				fmt.Fprintf(w, "waiting  %s  %s\n", application.UID, application.Description)
			}
		}}, err
	})
}

// loadDemo loads the demo data for serve and returns a text that says how to try it. Its command
// can be pasted repeatedly: each run takes another loan through its first draw.
func loadDemo(env *environment, s *app.Services) (string, error) {
	data, err := demo.Load(env.ctx, s)
	if err != nil {
		return "", err
	}
	note, err := demo.Subscribe(env.ctx, s, data)
	if err != nil {
		return "", err
	}
	if err := demo.History(env.ctx, s.DB); err != nil {
		return "", err
	}
	after := ""
	if s.Settings.DatabaseURL == "" {
		after = "  To start over, stop it and remove the folder " + app.DataDir + "\n"
	}
	notes := data.Lapsed
	if note != "" {
		notes = append(notes, note)
	}
	for _, line := range notes {
		after += "\n  " + line + "\n"
	}
	user, client := data.Users[0], data.Partners[0].Clients[0]
	return fmt.Sprintf(`
  Drawbridge is running.

  Console   %s
            sign in as %s with the password %s
  Docs      %s/docs

  Take a loan to its first draw, and watch the webhooks arrive under Deliveries:

    curl %s/v2/sandbox/scenario -d '{"name": "three_stages"}' \
      -H 'content-type: application/json' -H 'x-service-client-id: %s' \
      -H 'x-service-client-secret: %s'

  More loans, partners and credentials: drawbridge demo
%s
`, data.ConsoleURL, user.Email, user.Password, s.Settings.PublicURL,
		data.BaseURL, client.ID, client.Secret, after), nil
}

type seedCmd struct {
	Deliveries int  `help:"Number of deliveries to create." default:"2000000"`
	Attempts   int  `help:"Approximate number of attempts, 1 to 1.8 per delivery." default:"3000000"`
	Partners   int  `help:"Number of partners that share them." default:"40"`
	Days       int  `help:"Number of days back that they are spread over." default:"182"`
	JSON       bool `help:"Print one JSON document."`
}

// errSeedInProduction keeps generated rows out of real data.
var errSeedInProduction = errors.New(
	"seed makes up data; it is allowed only with DRAWBRIDGE_ENV=development")

// Run fills the database and prints its totals.
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
