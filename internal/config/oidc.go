package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// oidcReturn is where the provider leads back to, under the public URL.
const oidcReturn = "/console/sign-in/provider/return"

// OIDC says how people sign in by OpenID Connect.
type OIDC struct {
	// Issuer is the provider's URL; empty for none.
	Issuer       string
	ClientID     string
	ClientSecret string
	Name         string
	// Domains are those of addresses that need no invitation.
	Domains []string
}

// ReturnURL is where the provider leads back to.
func (o OIDC) ReturnURL(publicURL string) string {
	return strings.TrimRight(publicURL, "/") + oidcReturn
}

func readOIDCIssuer(c *Config, value string) error {
	if value == "" {
		return nil
	}
	issuer, err := url.Parse(value)
	if err != nil || issuer.Host == "" || issuer.User != nil || issuer.RawQuery != "" ||
		(issuer.Scheme != "https" && issuer.Scheme != "http") {
		return errors.New("must look like https://issuer.example")
	}
	c.OIDC.Issuer = value
	return nil
}

// readOIDC reads a text of the provider's settings.
func readOIDC(field func(*OIDC) *string) func(c *Config, value string) error {
	return func(c *Config, value string) error {
		*field(&c.OIDC) = value
		return nil
	}
}

func readOIDCDomains(c *Config, value string) error {
	for name := range strings.SplitSeq(value, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		if strings.ContainsAny(name, "@ /:*") {
			return fmt.Errorf("names %q; it must hold domains such as lender.example", name)
		}
		c.OIDC.Domains = append(c.OIDC.Domains, name)
	}
	return nil
}

// faults lists what does not fit together.
func (o OIDC) faults(env Env) []string {
	if o.Issuer == "" {
		return nil
	}
	var found []string
	if env == Production && !strings.HasPrefix(o.Issuer, "https://") {
		found = append(found, "DRAWBRIDGE_OIDC_ISSUER must be https:// in production")
	}
	if o.ClientID == "" {
		found = append(found, "DRAWBRIDGE_OIDC_CLIENT_ID is empty; the provider needs it")
	}
	return found
}
