package main

import (
	"fmt"
	"io"
	"net"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/demo"
)

type demoCmd struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run loads the demo data and prints it.
func (cmd demoCmd) Run(env *environment) error {
	return env.show(cmd.JSON, func(s *app.Services) (output, error) {
		s.Settings.PublicURL = configuredURL(s.Settings)
		data, err := demo.Load(env.ctx, s)
		return output{data, func(w io.Writer) { printDemo(w, data) }}, err
	})
}

// configuredURL is the origin as far as the settings alone can tell.
func configuredURL(settings config.Config) string {
	if settings.PublicURL != "" {
		return settings.PublicURL
	}
	address, err := net.ResolveTCPAddr("tcp", settings.Listen)
	if err != nil {
		return "http://" + settings.Listen
	}
	return "http://" + app.Reachable(address)
}

// printDemo shows the data set to people.
func printDemo(w io.Writer, data demo.Data) {
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
}

// printWelcome loads the demo data for serve and says how to try it.
func printWelcome(env *environment, s *app.Services) error {
	data, err := demo.Load(env.ctx, s)
	if err != nil {
		return err
	}
	if err := demo.Subscribe(env.ctx, s, data); err != nil {
		return err
	}
	user, client, loan := data.Users[0], data.Partners[0].Clients[0], data.Loans[0]
	fmt.Fprintf(env.stderr, `
  Drawbridge runs.

  Console   %s
            sign in as %s with the password %s
  Docs      %s/docs

  Request a draw (works as it is):

    curl -X POST %s/v2/loan/%s/request-draw \
      -H 'x-service-client-id: %s' \
      -H 'x-service-client-secret: %s'

  Then watch its webhook under Deliveries in the console.
  More loans, partners and credentials: drawbridge demo

`, data.ConsoleURL, user.Email, user.Password, s.Settings.PublicURL,
		data.BaseURL, loan.UID, client.ID, client.Secret)
	return nil
}
