// Package config reads the settings of a process from its environment.
//
// Every variable is a field of Config, whose tags give its name, its default (and that of
// development, dev), its meaning, whether it is a secret, and which rule of rules.go its value must
// satisfy (is), so that the help text matches the behaviour. Load reports all errors at once. Only
// cmd reads configuration; every other package receives values.
package config

import (
	"cmp"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"drawbridge/internal/calendar"
)

// Env is the kind of installation.
type Env string

// The kinds of installation.
const (
	Development Env = "development"
	Sandbox     Env = "sandbox"
	Production  Env = "production"
)

// Hosted reports whether production's rules for keys, addresses, sign-in and destinations apply.
func (e Env) Hosted() bool { return e != Development }

// HeaderValue is the value of x-drawbridge-environment on every response and webhook, empty in
// production, which sends none.
func (e Env) HeaderValue() string {
	if e == Production {
		return ""
	}
	return string(e)
}

// envName returns the name of the environment that is set.
func envName(getenv func(string) string) string {
	return cmp.Or(strings.TrimSpace(getenv("DRAWBRIDGE_ENV")), string(Development))
}

// ParseEnv parses the name of an environment.
func ParseEnv(name string) (Env, error) {
	env := Env(name)
	if env != Development && env != Sandbox && env != Production {
		return env, fmt.Errorf("is %q; it must be development, sandbox or production", name)
	}
	return env, nil
}

// Role is a part of the service that a process runs.
type Role string

// The roles.
const (
	RoleAPI     Role = "api"
	RoleConsole Role = "console"
	RoleWorker  Role = "worker"
)

// Config holds the settings of a process. Its fields are in the order of the documentation.
type Config struct {
	DatabaseURL        string        `env:"DATABASE_URL" secret:"true" is:"postgres" help:"Postgres 14 or later, as postgres://user:password@host:5432/name; of several hosts, separated by commas, the writable one is used; empty: an embedded server under ./.data/postgres"`
	ReadURL            string        `env:"DRAWBRIDGE_DATABASE_READ_URL" secret:"true" is:"standby" help:"URL of one standby of that Postgres by streaming replication, from which lists, search and overview of the console and the feed are read; they may then be DRAWBRIDGE_DATABASE_READ_LAG old; empty: none"`
	ReadLag            time.Duration `env:"DRAWBRIDGE_DATABASE_READ_LAG" default:"10s" is:"duration" least:"1s" most:"1h" help:"how far that standby may lag behind, from 1s to 1h; if it lags further or is unreachable, it is not used"`
	PreparedStatements bool          `env:"DRAWBRIDGE_PREPARED_STATEMENTS" default:"true" is:"bool" help:"false if a pooler such as PgBouncer, in session mode, is in front of Postgres"`
	DatabaseTimeout    time.Duration `env:"DRAWBRIDGE_DATABASE_TIMEOUT" default:"10s" is:"duration" least:"1s" most:"1m" help:"how long an API request, a page or a metrics scrape may take because of the database, from 1s to 1m; after that it is answered with 503"`
	Env                Env           `env:"DRAWBRIDGE_ENV" default:"development" help:"development, sandbox or production; the latter two refuse development defaults, sandbox sends borrowers no mail, production has no sandbox routes"`
	Listen             string        `env:"DRAWBRIDGE_LISTEN" default:"127.0.0.1:8080" is:"listen" help:"host:port to listen on; port 0 picks a free one"`
	// PublicURL has no path; if empty it is derived from the listen address.
	PublicURL string `env:"DRAWBRIDGE_PUBLIC_URL" is:"origin" help:"origin that users see, for links and request checks; empty: the listen address"`
	// TLSCert and TLSKey are PEM files of the service's own certificate.
	TLSCert              string         `env:"DRAWBRIDGE_TLS_CERT" is:"text" help:"PEM file with the certificate chain for serving https; it is read again when it changes"`
	TLSKey               string         `env:"DRAWBRIDGE_TLS_KEY" is:"text" help:"PEM file with the private key of that certificate"`
	TLSAutocert          []string       `env:"DRAWBRIDGE_TLS_AUTOCERT" is:"names" help:"host names, separated by commas, for which to get certificates from an ACME authority, which must reach this process on port 443; setting them accepts the authority's terms"`
	TLSAutocertDirectory string         `env:"DRAWBRIDGE_TLS_AUTOCERT_DIRECTORY" default:"https://acme-v02.api.letsencrypt.org/directory" is:"text" help:"directory URL of that authority"`
	TrustedProxies       []netip.Prefix `env:"DRAWBRIDGE_TRUSTED_PROXIES" is:"networks" help:"networks in CIDR form of the proxies whose X-Forwarded-For names the client; empty: the peer is the client"`
	// BasePath has a leading and no trailing slash; it is empty for the root.
	BasePath             string          `env:"DRAWBRIDGE_BASE_PATH" default:"/api" is:"path" help:"path before /v2; / for none"`
	Roles                []Role          `env:"DRAWBRIDGE_ROLES" default:"api,console,worker" is:"roles" help:"what this process runs"`
	Drain                time.Duration   `env:"DRAWBRIDGE_DRAIN" default:"5s" dev:"0s" is:"duration" most:"5m" help:"how long a process keeps accepting requests after SIGTERM while /readyz answers 503, at most 5m"`
	SecretsKey           string          `env:"DRAWBRIDGE_SECRETS_KEY" secret:"true" is:"text" help:"keys for secrets at rest: base64key:// and 32 bytes in base64; of several, separated by commas, the first one encrypts; empty: generated once under ./.data"`
	BlobURL              string          `env:"DRAWBRIDGE_BLOB_URL" secret:"true" is:"bucket" help:"bucket for uploaded documents: file:///folder or s3://bucket?endpoint=host; empty: the folder ./.data/blobs"`
	SMTPURL              string          `env:"DRAWBRIDGE_SMTP_URL" secret:"true" is:"smtp" help:"smtp:// or smtps://user:password@host:port; empty: mail is kept, not sent"`
	MailFrom             string          `env:"DRAWBRIDGE_MAIL_FROM" default:"Drawbridge <no-reply@localhost>" is:"sender" help:"sender of every mail; with a mail server, production and sandbox require an address of your own"`
	WebhookAllow         []netip.Prefix  `env:"DRAWBRIDGE_WEBHOOK_ALLOW" dev:"127.0.0.0/8,::1/128" is:"networks" help:"networks in CIDR form that webhooks may reach although they are not public"`
	WebhookAllowHTTP     bool            `env:"DRAWBRIDGE_WEBHOOK_ALLOW_HTTP" default:"false" dev:"true" is:"bool" help:"true lets webhooks use plain http inside those networks"`
	EgressCIDRs          []netip.Prefix  `env:"DRAWBRIDGE_EGRESS_CIDRS" is:"networks" help:"networks in CIDR form that webhooks come from, published at /docs/egress.json; empty: none are published"`
	WebhookTimeout       time.Duration   `env:"DRAWBRIDGE_WEBHOOK_TIMEOUT" default:"30s" is:"duration" least:"1ms" most:"1m" help:"time for one whole attempt, from name lookup to the last byte, at most 1m"`
	WebhookRetry         []time.Duration `env:"DRAWBRIDGE_WEBHOOK_RETRY" default:"1m,10m" is:"delays" help:"delays before attempts 2 and 3, each with up to 10 % jitter"`
	WebhookRetryAfterMax time.Duration   `env:"DRAWBRIDGE_WEBHOOK_RETRY_AFTER_MAX" default:"1h" is:"duration" most:"24h" help:"how far a Retry-After answer may move an attempt; 0s ignores it"`
	Currency             string          `env:"DRAWBRIDGE_CURRENCY" default:"USD" is:"currency" help:"ISO 4217 code of the currency of every amount; it must be one with hundredths"`
	// BusinessZone and the next three fields make the Calendar.
	BusinessZone       *time.Location  `env:"DRAWBRIDGE_BUSINESS_ZONE" default:"America/New_York" is:"zone" help:"time zone of business days, by its IANA name"`
	BusinessHolidays   []calendar.Date `env:"DRAWBRIDGE_BUSINESS_HOLIDAYS" is:"holidays" help:"file that lists the holidays besides Saturdays and Sundays, one per line as 2026-12-25; # begins a comment; empty: none"`
	BusinessHours      calendar.Hours  `env:"DRAWBRIDGE_BUSINESS_HOURS" default:"09:00-17:00" is:"hours" help:"opening hours of a business day, in which the age of draws is counted"`
	FundingCutoff      calendar.Clock  `env:"DRAWBRIDGE_FUNDING_CUTOFF" default:"15:00" is:"clock" help:"time of a business day, within its hours, by which transfers must have been ordered to leave that day"`
	WebhookTraceparent bool            `env:"DRAWBRIDGE_WEBHOOK_TRACEPARENT" default:"false" is:"bool" help:"true sends the header traceparent with each attempt of a traced request"`
	OTLPURL            string          `env:"DRAWBRIDGE_OTLP_URL" secret:"true" is:"collector" help:"collector for OpenTelemetry traces, such as http://127.0.0.1:4318; empty: none; OTEL_EXPORTER_OTLP_HEADERS sets headers for it"`
	TraceRatio         float64         `env:"DRAWBRIDGE_TRACE_RATIO" default:"1" is:"ratio" help:"share of requests whose trace is recorded, from 0 to 1"`
	PprofListen        string          `env:"DRAWBRIDGE_PPROF_LISTEN" is:"loopback" help:"loopback host:port of Go's profiler, such as 127.0.0.1:6060; empty: none"`
	// OIDC is the provider through which people may sign in; without an issuer there is none.
	OIDC OIDC
	// TrustRoots is read by Go itself, and from the environment only.
	TrustRoots string `env:"SSL_CERT_FILE" is:"roots" help:"PEM file with extra trust roots for outgoing TLS; empty: the system's"`
}

// Errors are all the invalid settings of one environment.
type Errors []string

// Error joins the errors in one line.
func (f Errors) Error() string { return strings.Join(f, "; ") }

// when adds an error if wrong is true.
func (f *Errors) when(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// Load reads the settings through getenv, which has the signature of os.Getenv; names are the names
// set in the environment, where they are known. The error is of type Errors and names every invalid
// variable, and every unknown one that looks like ours.
func Load(getenv func(string) string, names ...string) (Config, error) {
	var c Config
	errs := unknown(names, getenv)
	var err error
	if c.Env, err = ParseEnv(envName(getenv)); err != nil {
		errs = append(errs, "DRAWBRIDGE_ENV "+err.Error())
		c.Env = Development
	}
	for _, variable := range table {
		value := variable.value(getenv, c.Env)
		if variable.rule == nil || value == "" {
			continue
		}
		read, err := variable.rule(value, variable.tag)
		// An invalid value is set, too, if it has the type: its error is reported once, and no later
		// check takes the setting for empty.
		if read != nil {
			reflect.ValueOf(&c).Elem().FieldByIndex(variable.index).Set(reflect.ValueOf(read))
		}
		errs.when(err != nil, "%s %s", variable.Name, err)
	}
	c.contradictions(&errs)
	c.developmentDefaults(&errs)
	if len(errs) > 0 {
		return Config{}, errs
	}
	return c, nil
}

// Has reports whether the process runs the role.
func (c Config) Has(role Role) bool { return slices.Contains(c.Roles, role) }

// ParseRoles parses a list such as "api,worker".
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

// Calendar returns the lender's calendar.
func (c Config) Calendar() calendar.Calendar {
	return calendar.Calendar{
		Zone: c.BusinessZone, Holidays: c.BusinessHolidays, Hours: c.BusinessHours,
		Cutoff: c.FundingCutoff,
	}
}

// ServesTLS reports whether the process itself serves https.
func (c Config) ServesTLS() bool { return c.TLSCert != "" || len(c.TLSAutocert) > 0 }

// contradictions adds errors for settings that are valid alone but not together.
func (c Config) contradictions(errs *Errors) {
	const hours, cutoff = "DRAWBRIDGE_BUSINESS_HOURS", "DRAWBRIDGE_FUNDING_CUTOFF"
	errs.when((c.TLSCert == "") != (c.TLSKey == ""),
		"DRAWBRIDGE_TLS_CERT and DRAWBRIDGE_TLS_KEY must both be set, or neither")
	errs.when(c.TLSCert != "" && len(c.TLSAutocert) > 0,
		"DRAWBRIDGE_TLS_AUTOCERT must be empty while DRAWBRIDGE_TLS_CERT is set")
	errs.when(errs.Of(hours)+errs.Of(cutoff) == "" &&
		(c.FundingCutoff <= c.BusinessHours.Opens || c.FundingCutoff > c.BusinessHours.Closes),
		"%s is %s; it must lie within %s, which are %s", cutoff, c.FundingCutoff, hours, c.BusinessHours)
	errs.when(c.OIDC.Issuer != "" && c.Env.Hosted() && !strings.HasPrefix(c.OIDC.Issuer, "https://"),
		"DRAWBRIDGE_OIDC_ISSUER must be https:// in %s", c.Env)
	errs.when(c.OIDC.Issuer != "" && c.OIDC.ClientID == "",
		"DRAWBRIDGE_OIDC_CLIENT_ID is empty; the provider needs it")
}

// developmentDefaults adds errors for defaults that production and sandbox must not use.
func (c Config) developmentDefaults(errs *Errors) {
	if !c.Env.Hosted() {
		return
	}
	errs.when(c.DatabaseURL == "", "DATABASE_URL is empty; %s needs a Postgres of its own", c.Env)
	errs.when(c.SecretsKey == "", "DRAWBRIDGE_SECRETS_KEY is empty; %s needs a key of its own, such "+
		"as base64key:// followed by the output of: openssl rand -base64 32", c.Env)
	public, err := url.Parse(c.PublicURL)
	errs.when(err != nil || public.Scheme != "https",
		"DRAWBRIDGE_PUBLIC_URL must be an https:// origin in %s", c.Env)
	errs.when(c.SMTPURL != "" && c.SentByLocalhost(), "DRAWBRIDGE_MAIL_FROM is %q, which no mail "+
		"server takes from another machine; give it an address of your own domain, such as "+
		"Lender <mail@lender.example>", c.MailFrom)
}

// SentByLocalhost reports whether the sender's address is invalid outside this machine.
func (c Config) SentByLocalhost() bool {
	address, err := mail.ParseAddress(c.MailFrom)
	if err != nil {
		return false // reported by its rule
	}
	domain := strings.ToLower(address.Address[strings.LastIndexByte(address.Address, '@')+1:])
	return domain == "localhost" || domain == "localhost.localdomain" ||
		strings.HasSuffix(domain, ".localhost")
}

// Warnings lists settings that the service accepts but that are probably wrong.
func (c Config) Warnings() []string {
	var warnings Errors
	warnings.when(strings.HasPrefix(c.PublicURL, "https://") && !c.ServesTLS() &&
		len(c.TrustedProxies) == 0, "DRAWBRIDGE_TRUSTED_PROXIES is empty while "+
		"DRAWBRIDGE_PUBLIC_URL is https and this process answers http: everybody has the address of "+
		"the proxy in front, and 20 wrong passwords lock all of them out; name the proxy's network, "+
		"or set DRAWBRIDGE_TLS_CERT")
	if !c.Env.Hosted() {
		return warnings
	}
	warnings.when(c.SMTPURL == "" && c.Env == Sandbox,
		"DRAWBRIDGE_SMTP_URL is empty: operators get no alert by e-mail")
	warnings.when(c.SMTPURL == "" && c.Env != Sandbox, "DRAWBRIDGE_SMTP_URL is empty: borrowers and "+
		"operators get no e-mail; every one is kept in the log as not sent")
	warnings.when(c.BlobURL == "", "DRAWBRIDGE_BLOB_URL is empty: uploaded documents are kept in "+
		"./.data/blobs; a bucket or an absolute file:// folder is safer")
	warnings.when(c.WebhookAllowHTTP, "DRAWBRIDGE_WEBHOOK_ALLOW_HTTP is true: webhooks to the ranges "+
		"of DRAWBRIDGE_WEBHOOK_ALLOW may go in the clear")
	return warnings
}
