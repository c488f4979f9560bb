// Package config reads the settings of a process from its environment.
//
// Every variable stands once in the table of variables.go with its default,
// its meaning and how it is read, so the help text cannot drift from what is
// done. Load reports all faults at once. Only cmd reads configuration; every
// other package receives values.
package config

import (
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Env is the kind of installation.
type Env string

// The kinds of installation.
const (
	Development Env = "development"
	Production  Env = "production"
)

// Role is a part of the service that a process runs.
type Role string

// The roles.
const (
	RoleAPI     Role = "api"
	RoleConsole Role = "console"
	RoleWorker  Role = "worker"
)

// Config holds the settings of a process.
type Config struct {
	// DatabaseURL is a postgres:// URL; empty means the embedded server.
	DatabaseURL string
	// PreparedStatements lets connections keep prepared statements.
	PreparedStatements bool
	// DatabaseTimeout is how long a request may take because of the database.
	DatabaseTimeout time.Duration
	Env             Env
	// Listen is host:port; port 0 picks a free one.
	Listen string
	// PublicURL is the origin that users see, without a path; empty means
	// that it follows from the address listened on.
	PublicURL string
	// BasePath stands before /v2, with a leading and no trailing slash; it is
	// empty for the root.
	BasePath string
	Roles    []Role
	// Drain is how long a process that is to stop goes on accepting while it says
	// that it is not ready.
	Drain time.Duration
	// SecretsKey names the keys for secrets at rest; empty means generated.
	SecretsKey string
	// BlobURL is the bucket for uploaded documents; empty means a folder
	// under the data directory.
	BlobURL string
	SMTPURL string
	// OIDC is the provider that people may sign in by; without an issuer there
	// is none.
	OIDC     OIDC
	MailFrom string
	// WebhookAllow are networks that a webhook may reach although they are
	// not public.
	WebhookAllow         []netip.Prefix
	WebhookAllowHTTP     bool
	WebhookTimeout       time.Duration
	WebhookRetry         []time.Duration
	WebhookRetryAfterMax time.Duration
	// TLSCert and TLSKey are PEM files of the service's own certificate.
	TLSCert, TLSKey string
	// TLSAutocert are the names for which certificates are asked of the
	// authority at TLSAutocertDirectory.
	TLSAutocert          []string
	TLSAutocertDirectory string
	// TrustedProxies may say in X-Forwarded-For where a request comes from.
	TrustedProxies []netip.Prefix
	// WebhookTraceparent tells endpoints the trace of each attempt.
	WebhookTraceparent bool
	// OTLPURL is where traces go, empty for nowhere; TraceRatio is the share
	// of requests whose trace is recorded, from 0 to 1.
	OTLPURL    string
	TraceRatio float64
	// PprofListen is the local host:port of Go's profiler, empty for none.
	PprofListen string
}

// Faults are all the wrong settings of one environment.
type Faults []string

// Error joins the faults in one line.
func (f Faults) Error() string { return strings.Join(f, "; ") }

// Load reads the settings through getenv, which has the signature of os.Getenv.
// The error is of type Faults and names every wrong variable.
func Load(getenv func(string) string) (Config, error) {
	var c Config
	var faults Faults
	c.Env = Env(valueOf(getenv, "DRAWBRIDGE_ENV", Development))
	if c.Env != Development && c.Env != Production {
		faults = append(faults, fmt.Sprintf(
			"DRAWBRIDGE_ENV is %q; it must be development or production", c.Env))
		c.Env = Development
	}
	for _, variable := range table {
		if variable.read == nil {
			continue
		}
		if err := variable.read(&c, valueOf(getenv, variable.Name, c.Env)); err != nil {
			faults = append(faults, fmt.Sprintf("%s %s", variable.Name, err))
		}
	}
	faults = append(faults, c.contradictions()...)
	faults = append(faults, c.OIDC.faults(c.Env)...)
	faults = append(faults, c.developmentDefaults()...)
	if len(faults) > 0 {
		return Config{}, faults
	}
	return c, nil
}

// Has tells whether the process runs the role.
func (c Config) Has(role Role) bool { return slices.Contains(c.Roles, role) }

// ParseRoles reads a list such as "api,worker".
func ParseRoles(text string) ([]Role, error) {
	var roles []Role
	for name := range strings.SplitSeq(text, ",") {
		role := Role(strings.TrimSpace(name))
		if role != RoleAPI && role != RoleConsole && role != RoleWorker {
			return nil, fmt.Errorf("names the role %q; the roles are api, console and worker", role)
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

// ServesTLS tells whether the process itself answers https.
func (c Config) ServesTLS() bool { return c.TLSCert != "" || len(c.TLSAutocert) > 0 }

// contradictions lists settings that are good alone and not together.
func (c Config) contradictions() []string {
	var faults []string
	if (c.TLSCert == "") != (c.TLSKey == "") {
		faults = append(faults,
			"DRAWBRIDGE_TLS_CERT and DRAWBRIDGE_TLS_KEY must both be set, or neither")
	}
	if c.TLSCert != "" && len(c.TLSAutocert) > 0 {
		faults = append(faults,
			"DRAWBRIDGE_TLS_AUTOCERT must be empty while DRAWBRIDGE_TLS_CERT is set")
	}
	return faults
}

// developmentDefaults lists what production must not run on.
func (c Config) developmentDefaults() []string {
	if c.Env != Production {
		return nil
	}
	var faults []string
	if c.DatabaseURL == "" {
		faults = append(faults, "DATABASE_URL is empty; production needs a Postgres of its own")
	}
	if c.SecretsKey == "" {
		faults = append(faults, "DRAWBRIDGE_SECRETS_KEY is empty; production needs a key of its own, "+
			"such as base64key:// followed by the output of: openssl rand -base64 32")
	}
	if public, err := url.Parse(c.PublicURL); err != nil || public.Scheme != "https" {
		faults = append(faults, "DRAWBRIDGE_PUBLIC_URL must be an https:// origin in production")
	}
	if c.SMTPURL != "" && sentByLocalhost(c.MailFrom) {
		faults = append(faults, fmt.Sprintf("DRAWBRIDGE_MAIL_FROM is %q, which no mail server takes "+
			"from another machine; give it an address of your own domain, such as "+
			"Lender <mail@lender.example>", c.MailFrom))
	}
	return faults
}

// sentByLocalhost tells whether a sender's address is nobody's outside this machine.
func sentByLocalhost(from string) bool {
	address, err := mail.ParseAddress(from)
	if err != nil {
		return false // readMailFrom has said so
	}
	domain := strings.ToLower(address.Address[strings.LastIndexByte(address.Address, '@')+1:])
	return domain == "localhost" || domain == "localhost.localdomain" ||
		strings.HasSuffix(domain, ".localhost")
}

// Warnings lists what the service may run on and probably should not.
func (c Config) Warnings() []string {
	var warnings []string
	if strings.HasPrefix(c.PublicURL, "https://") && !c.ServesTLS() && len(c.TrustedProxies) == 0 {
		warnings = append(warnings, "DRAWBRIDGE_TRUSTED_PROXIES is empty while DRAWBRIDGE_PUBLIC_URL "+
			"is https and this process answers http: everybody has the address of the proxy in "+
			"front, and 20 wrong passwords lock all of them out; name the proxy's network, or set "+
			"DRAWBRIDGE_TLS_CERT")
	}
	if c.Env != Production {
		return warnings
	}
	if c.BlobURL == "" {
		warnings = append(warnings, "DRAWBRIDGE_BLOB_URL is empty: uploaded documents are kept in "+
			"./.data/blobs; a bucket or an absolute file:// folder is safer")
	}
	if c.WebhookAllowHTTP {
		warnings = append(warnings, "DRAWBRIDGE_WEBHOOK_ALLOW_HTTP is true: webhooks to the ranges "+
			"of DRAWBRIDGE_WEBHOOK_ALLOW may go in the clear")
	}
	return warnings
}
