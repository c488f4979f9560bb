package main

import (
	"drawbridge/internal/operator"
	"drawbridge/internal/secret"
)

// newProvider is the OpenID Connect provider of the settings, nil for none.
func newProvider(s *services) *operator.Provider {
	settings := s.settings.OIDC
	if settings.Issuer == "" {
		return nil
	}
	return operator.NewProvider(operator.ProviderConfig{
		Issuer: settings.Issuer, ClientID: settings.ClientID,
		Secret: secret.New(settings.ClientSecret), Name: settings.Name,
		Domains: settings.Domains, ReturnURL: settings.ReturnURL(s.settings.PublicURL),
	})
}
