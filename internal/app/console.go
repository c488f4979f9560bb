package app

import (
	"strings"

	"drawbridge/internal/operator"
	"drawbridge/internal/secret"
	"drawbridge/web/api"
	"drawbridge/web/console"
	"drawbridge/web/docs"
)

// ConsoleOptions returns the options of the console.
func (s *Services) ConsoleOptions() (console.Options, error) {
	snippets, err := docs.Snippets()
	if err != nil {
		return console.Options{}, err
	}
	board, err := s.newJobConsole()
	if err != nil {
		return console.Options{}, err
	}
	var development *console.Development
	if s.Receiver != nil {
		development = &console.Development{Receiver: s.Receiver, Sends: s.Settings.SMTPURL != ""}
	}
	bucket, _, _ := strings.Cut(blobURL(s.Settings), "://")
	return console.Options{
		DB:           s.DB,
		Operators:    s.Operators,
		Webhooks:     s.Webhooks,
		Search:       s.Search,
		Why:          s.Why,
		Emails:       s.Emails,
		Partners:     s.Partners,
		Development:  development,
		Snippets:     snippets,
		Applications: s.Applications,
		Loans:        s.Loans,
		Documents:    s.Documents,
		Products:     s.Catalog,
		Requests:     s.Requests,
		Alerts:       s.Alerts,
		Processes:    s.Processes,
		Restored:     s.Restored,
		System: console.SystemFacts{
			KeyIDs: s.Keys.IDs(), MailServer: s.Settings.SMTPURL != "",
			// Not its address, which may hold credentials.
			Bucket: map[string]string{"file": "a folder", "s3": "an S3 bucket"}[bucket],
		},
		BasePath:   s.Settings.BasePath,
		Currency:   s.Settings.Currency,
		Provider:   s.newProvider(),
		Retention:  s.Retention,
		Statements: s.Statements,

		Configuration: s.Effective,
		Queues:        s.Queues(),
		JobConsole:    board,
		PublicURL:     s.Settings.PublicURL,
		Environment:   s.Settings.Env.HeaderValue(),
		Version:       s.Version,
		Status:        api.Status,
	}, nil
}

// newProvider is the OpenID Connect provider of the settings, nil for none.
func (s *Services) newProvider() *operator.Provider {
	settings := s.Settings.OIDC
	if settings.Issuer == "" {
		return nil
	}
	return operator.NewProvider(operator.ProviderConfig{
		Issuer: settings.Issuer, ClientID: settings.ClientID,
		Secret: secret.New(settings.ClientSecret), Name: settings.Name,
		Domains: settings.Domains, ReturnURL: settings.ReturnURL(s.Settings.PublicURL),
	})
}
