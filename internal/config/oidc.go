package config

import "strings"

// oidcReturn is the path under the public URL to which the provider redirects.
const oidcReturn = "/console/sign-in/provider/return"

// OIDC configures sign-in by OpenID Connect.
type OIDC struct {
	Issuer       string   `env:"DRAWBRIDGE_OIDC_ISSUER" is:"issuer" help:"OpenID Connect provider for signing in to the console, as https://issuer; empty: passwords only"`
	ClientID     string   `env:"DRAWBRIDGE_OIDC_CLIENT_ID" is:"text" help:"client id at that provider; its return address is PUBLIC_URL/console/sign-in/provider/return"`
	ClientSecret string   `env:"DRAWBRIDGE_OIDC_CLIENT_SECRET" secret:"true" is:"text" help:"client secret at that provider"`
	Name         string   `env:"DRAWBRIDGE_OIDC_NAME" default:"single sign-on" is:"text" help:"name of that provider on the sign-in button"`
	Domains      []string `env:"DRAWBRIDGE_OIDC_DOMAINS" is:"domains" help:"domains of e-mail addresses that may sign in with that provider without an invitation, with the role support; empty: invited people only"`
}

// ReturnURL is the URL to which the provider redirects.
func (o OIDC) ReturnURL(publicURL string) string {
	return strings.TrimRight(publicURL, "/") + oidcReturn
}
