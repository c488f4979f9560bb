package main

import (
	"drawbridge/internal/config"
	"drawbridge/internal/operator"
	"drawbridge/internal/secret"
	"drawbridge/views/operations"
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

// configRows shows the environment's settings in the console.
func configRows(settings []config.Setting) []operations.ConfigRow {
	rows := make([]operations.ConfigRow, 0, len(settings))
	for _, setting := range settings {
		rows = append(rows, operations.ConfigRow{
			Name: setting.Name, Value: setting.Value, From: string(setting.Source),
			Meaning: setting.Meaning,
		})
	}
	return rows
}

// effective is what the environment sets, secrets masked.
func (env *environment) effective() []config.Setting {
	getenv, err := config.WithDotEnv(env.getenv, ".env")
	if err != nil {
		getenv = env.getenv // the start would have failed on an unreadable file
	}
	return config.Effective(env.getenv, getenv)
}
