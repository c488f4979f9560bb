package main

import (
	"fmt"
	"io"
	"net"

	"drawbridge/internal/app"
	"drawbridge/internal/demo"
)

type demoCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run loads the demo data and prints it.
func (cmd demoCmd) Run(env *environment) error {
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		if s.Settings.PublicURL == "" {
			// Where the process says that serves, or where one would.
			origin, err := s.Fleet.Serving(env.ctx)
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
				fmt.Fprintf(w, "product  %s  %-12s %s\n", product.UID, product.Code, product.Name)
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

// loadDemo loads the demo data for serve and says how to try it. The command works as often
// as it is pasted: each run takes another loan through its first draw.
func loadDemo(env *environment, s *app.Services) (string, error) {
	data, err := demo.Load(env.ctx, s)
	if err != nil {
		return "", err
	}
	if err := demo.Subscribe(env.ctx, s, data); err != nil {
		return "", err
	}
	if err := demo.History(env.ctx, s.DB); err != nil {
		return "", err
	}
	again := ""
	if s.Settings.DatabaseURL == "" {
		again = "  To begin anew, stop it and remove the folder " + app.DataDir + "\n"
	}
	user, client := data.Users[0], data.Partners[0].Clients[0]
	return fmt.Sprintf(`
  Drawbridge runs.

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
		data.BaseURL, client.ID, client.Secret, again), nil
}
