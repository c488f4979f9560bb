package config

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxWebhookTimeout keeps one attempt far below the time after which the queue
// takes it for lost.
const maxWebhookTimeout = time.Minute

// Variable is one setting of the environment.
type Variable struct {
	Name string
	// Default is used when the variable is empty; Development replaces it
	// in development where it is set.
	Default     string
	Development string
	Meaning     string
	// Secret values are masked wherever settings are shown.
	Secret bool
	read   func(c *Config, value string) error
}

var table = []Variable{
	{
		Name: "DATABASE_URL", Secret: true,
		Meaning: "Postgres 14 or later, as postgres://user:password@host:5432/name; " +
			"empty runs an embedded server under ./.data/postgres",
		read: readDatabaseURL,
	},
	{
		Name: "DRAWBRIDGE_PREPARED_STATEMENTS", Default: "true",
		Meaning: "false where a pooler such as PgBouncer, in session mode, stands before Postgres",
		read:    readPreparedStatements,
	},
	{
		Name: "DRAWBRIDGE_DATABASE_TIMEOUT", Default: "10s",
		Meaning: "how long a call, a page or a scrape may take because of the database, from 1s to " +
			"1m; then it is answered with 503",
		read: func(c *Config, value string) (err error) {
			c.DatabaseTimeout, err = readDuration(value, time.Second, time.Minute)
			return err
		},
	},
	{
		Name: "DRAWBRIDGE_ENV", Default: string(Development),
		Meaning: "development or production; production refuses development defaults " +
			"and has no sandbox routes",
	},
	{
		Name: "DRAWBRIDGE_LISTEN", Default: "127.0.0.1:8080",
		Meaning: "host:port to listen on; port 0 picks a free one",
		read:    readListen,
	},
	{
		Name:    "DRAWBRIDGE_PUBLIC_URL",
		Meaning: "origin that users see, for links and request checks; empty: the listen address",
		read:    readPublicURL,
	},
	{
		Name:    "DRAWBRIDGE_TLS_CERT",
		Meaning: "PEM file with the certificate chain to answer https with, read again when it changes",
		read: func(c *Config, value string) error {
			c.TLSCert = value
			return nil
		},
	},
	{
		Name:    "DRAWBRIDGE_TLS_KEY",
		Meaning: "PEM file with its private key",
		read: func(c *Config, value string) error {
			c.TLSKey = value
			return nil
		},
	},
	{
		Name: "DRAWBRIDGE_TLS_AUTOCERT",
		Meaning: "names, separated by commas, to get certificates for from an ACME authority, which " +
			"must reach this process on port 443; accepts the authority's terms",
		read: readAutocert,
	},
	{
		Name:    "DRAWBRIDGE_TLS_AUTOCERT_DIRECTORY",
		Default: "https://acme-v02.api.letsencrypt.org/directory",
		Meaning: "directory URL of that authority",
		read: func(c *Config, value string) error {
			c.TLSAutocertDirectory = value
			return nil
		},
	},
	{
		Name: "DRAWBRIDGE_TRUSTED_PROXIES",
		Meaning: "networks in CIDR form of the proxies whose X-Forwarded-For names the client; " +
			"empty: the peer is the client",
		read: func(c *Config, value string) (err error) {
			c.TrustedProxies, err = readNetworks(value)
			return err
		},
	},
	{
		Name: "DRAWBRIDGE_BASE_PATH", Default: "/api",
		Meaning: "path before /v2; / for none",
		read:    readBasePath,
	},
	{
		Name: "DRAWBRIDGE_ROLES", Default: "api,console,worker",
		Meaning: "what this process runs",
		read: func(c *Config, value string) (err error) {
			c.Roles, err = ParseRoles(value)
			return err
		},
	},
	{
		Name: "DRAWBRIDGE_DRAIN", Default: "5s", Development: "0s",
		Meaning: "how long a process goes on accepting after SIGTERM while /readyz says 503, at most 5m",
		read: func(c *Config, value string) (err error) {
			c.Drain, err = readDuration(value, 0, 5*time.Minute)
			return err
		},
	},
	{
		Name: "DRAWBRIDGE_SECRETS_KEY", Secret: true,
		Meaning: "keys for secrets at rest: base64key:// and 32 bytes in base64, " +
			"several separated by commas, the first encrypts; empty: generated once under ./.data",
		read: func(c *Config, value string) error {
			c.SecretsKey = value
			return nil
		},
	},
	{
		Name: "DRAWBRIDGE_BLOB_URL", Secret: true,
		Meaning: "bucket for uploaded documents: file:///folder or s3://bucket?endpoint=host; " +
			"empty: the folder ./.data/blobs",
		read: readBlobURL,
	},
	{
		Name: "DRAWBRIDGE_SMTP_URL", Secret: true,
		Meaning: "smtp:// or smtps://user:password@host:port; empty: mail is kept, not sent",
		read:    readSMTPURL,
	},
	{
		Name: "DRAWBRIDGE_MAIL_FROM", Default: "Drawbridge <no-reply@localhost>",
		Meaning: "sender of every mail; with a mail server, production wants an address of your own",
		read:    readMailFrom,
	},
	{
		Name: "DRAWBRIDGE_WEBHOOK_ALLOW", Development: "127.0.0.0/8,::1/128",
		Meaning: "networks in CIDR form that webhooks may reach although they are not public",
		read:    readWebhookAllow,
	},
	{
		Name: "DRAWBRIDGE_WEBHOOK_ALLOW_HTTP", Default: "false", Development: "true",
		Meaning: "true lets webhooks use plain http inside those networks",
		read:    readWebhookAllowHTTP,
	},
	{
		Name: "DRAWBRIDGE_WEBHOOK_TIMEOUT", Default: "30s",
		Meaning: "time for one whole attempt, from name lookup to the last byte, at most 1m",
		read:    readWebhookTimeout,
	},
	{
		Name: "DRAWBRIDGE_WEBHOOK_RETRY", Default: "1m,10m",
		Meaning: "delays before attempts 2 and 3, each with up to 10 % jitter",
		read:    readWebhookRetry,
	},
	{
		Name: "DRAWBRIDGE_WEBHOOK_RETRY_AFTER_MAX", Default: "1h",
		Meaning: "how far a Retry-After answer may move an attempt; 0s ignores it",
		read: func(c *Config, value string) (err error) {
			c.WebhookRetryAfterMax, err = readDuration(value, 0, 24*time.Hour)
			return err
		},
	},
	{
		Name: "DRAWBRIDGE_WEBHOOK_TRACEPARENT", Default: "false",
		Meaning: "true sends the header traceparent with each attempt of a traced call",
		read: func(c *Config, value string) (err error) {
			c.WebhookTraceparent, err = readBool(value)
			return err
		},
	},
	{
		Name: "DRAWBRIDGE_OTLP_URL", Secret: true,
		Meaning: "collector for OpenTelemetry traces, such as http://127.0.0.1:4318; empty: none; " +
			"headers for it as OTEL_EXPORTER_OTLP_HEADERS",
		read: readOTLPURL,
	},
	{
		Name: "DRAWBRIDGE_TRACE_RATIO", Default: "1",
		Meaning: "share of requests whose trace is recorded, from 0 to 1",
		read:    readTraceRatio,
	},
	{
		Name:    "DRAWBRIDGE_PPROF_LISTEN",
		Meaning: "loopback host:port of Go's profiler, such as 127.0.0.1:6060; empty: none",
		read:    readPprofListen,
	},
	{
		Name: "DRAWBRIDGE_OIDC_ISSUER",
		Meaning: "OpenID Connect provider that people may sign in to the console by, " +
			"as https://issuer; empty: passwords only",
		read: readOIDCIssuer,
	},
	{
		Name:    "DRAWBRIDGE_OIDC_CLIENT_ID",
		Meaning: "client id at that provider; its return address is PUBLIC_URL" + oidcReturn,
		read:    readOIDC(func(o *OIDC) *string { return &o.ClientID }),
	},
	{
		Name: "DRAWBRIDGE_OIDC_CLIENT_SECRET", Secret: true,
		Meaning: "client secret at that provider",
		read:    readOIDC(func(o *OIDC) *string { return &o.ClientSecret }),
	},
	{
		Name: "DRAWBRIDGE_OIDC_NAME", Default: "single sign-on",
		Meaning: "what the button of the sign-in calls that provider",
		read:    readOIDC(func(o *OIDC) *string { return &o.Name }),
	},
	{
		Name: "DRAWBRIDGE_OIDC_DOMAINS",
		Meaning: "domains of e-mail addresses that may sign in there without an invitation, " +
			"with the role support; empty: invited people only",
		read: readOIDCDomains,
	},
	{
		Name:    "SSL_CERT_FILE",
		Meaning: "extra trust roots for outgoing TLS; empty: the system's",
	},
}

// Variables lists every setting in the order of the documentation.
func Variables() []Variable { return append([]Variable(nil), table...) }

// valueOf returns the value of a variable, or its default in env.
func valueOf(getenv func(string) string, name string, env Env) string {
	if value := strings.TrimSpace(getenv(name)); value != "" {
		return value
	}
	for _, variable := range table {
		if variable.Name != name {
			continue
		}
		if env == Development && variable.Development != "" {
			return variable.Development
		}
		return variable.Default
	}
	return ""
}

func readDatabaseURL(c *Config, value string) error {
	c.DatabaseURL = value
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" ||
		(parsed.Scheme != "postgres" && parsed.Scheme != "postgresql") {
		// The value may hold a password, so it is not quoted.
		return errors.New("must look like postgres://user:password@host:5432/name")
	}
	return nil
}

func readPreparedStatements(c *Config, value string) error {
	prepared, err := strconv.ParseBool(value)
	if err != nil {
		return fmt.Errorf("is %q; it must be true or false", value)
	}
	c.PreparedStatements = prepared
	return nil
}

func readListen(c *Config, value string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("is %q; it must be host:port, such as 127.0.0.1:8080", value)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("has the port %q; it must be a number from 0 to 65535", port)
	}
	c.Listen = value
	return nil
}

func readPublicURL(c *Config, value string) error {
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return fmt.Errorf("is %q; it must be an origin such as https://drawbridge.example", value)
	}
	if strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "" ||
		parsed.User != nil {
		return fmt.Errorf("is %q; an origin has no user, path, query or fragment", value)
	}
	c.PublicURL = parsed.Scheme + "://" + parsed.Host
	return nil
}

func readBasePath(c *Config, value string) error {
	trimmed := strings.TrimRight(value, "/")
	if trimmed == "" {
		return nil
	}
	parsed, err := url.Parse(trimmed)
	if err != nil || !strings.HasPrefix(trimmed, "/") || parsed.Path != trimmed ||
		strings.ContainsAny(trimmed, ":*") || strings.Contains(trimmed, "//") {
		return fmt.Errorf("is %q; it must be a plain path such as /api", value)
	}
	for _, taken := range []string{"/console", "/docs", "/static"} {
		if trimmed == taken || strings.HasPrefix(trimmed, taken+"/") {
			return fmt.Errorf("is %q, which the service itself uses", value)
		}
	}
	c.BasePath = trimmed
	return nil
}

func readBlobURL(c *Config, value string) error {
	c.BlobURL = value
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || (parsed.Scheme != "file" && parsed.Scheme != "s3") {
		return errors.New("must begin with file:// or s3://")
	}
	return nil
}

func readSMTPURL(c *Config, value string) error {
	c.SMTPURL = value
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "smtp" && parsed.Scheme != "smtps") {
		return errors.New("must look like smtp://user:password@host:587")
	}
	return nil
}

func readMailFrom(c *Config, value string) error {
	if _, err := mail.ParseAddress(value); err != nil {
		return fmt.Errorf("is %q; it must be an address such as Lender <mail@lender.example>", value)
	}
	c.MailFrom = value
	return nil
}

func readWebhookAllow(c *Config, value string) (err error) {
	c.WebhookAllow, err = readNetworks(value)
	return err
}

// readNetworks reads networks in CIDR form, separated by commas.
func readNetworks(value string) ([]netip.Prefix, error) {
	if value == "" {
		return nil, nil
	}
	var networks []netip.Prefix
	for text := range strings.SplitSeq(value, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("holds %q; it must be a network such as 10.1.0.0/16", text)
		}
		networks = append(networks, prefix.Masked())
	}
	return networks, nil
}

// autocertName is a full name in plain ASCII, without a wildcard.
var autocertName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*$`)

func readAutocert(c *Config, value string) error {
	if value == "" {
		return nil
	}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if !autocertName.MatchString(name) {
			return fmt.Errorf("holds %q; it must be a full name such as bridge.lender.example", name)
		}
		c.TLSAutocert = append(c.TLSAutocert, name)
	}
	return nil
}

func readWebhookAllowHTTP(c *Config, value string) (err error) {
	c.WebhookAllowHTTP, err = readBool(value)
	return err
}

func readBool(value string) (bool, error) {
	yes, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("is %q; it must be true or false", value)
	}
	return yes, nil
}

func readOTLPURL(c *Config, value string) error {
	c.OTLPURL = value
	if value == "" {
		return nil
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return errors.New("must look like http://collector.internal:4318")
	}
	return nil
}

func readTraceRatio(c *Config, value string) error {
	ratio, err := strconv.ParseFloat(value, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return fmt.Errorf("is %q; it must be a number from 0 to 1", value)
	}
	c.TraceRatio = ratio
	return nil
}

// readPprofListen accepts loopback addresses alone: a profile shows memory.
func readPprofListen(c *Config, value string) error {
	if value == "" {
		return nil
	}
	address, err := netip.ParseAddrPort(value)
	if err != nil || !address.Addr().IsLoopback() {
		return fmt.Errorf("is %q; it must be a loopback address and port, such as 127.0.0.1:6060", value)
	}
	c.PprofListen = value
	return nil
}

func readWebhookTimeout(c *Config, value string) (err error) {
	c.WebhookTimeout, err = readDuration(value, time.Millisecond, maxWebhookTimeout)
	return err
}

func readWebhookRetry(c *Config, value string) error {
	parts := strings.Split(value, ",")
	if len(parts) != 2 {
		return fmt.Errorf("is %q; it must be two durations, such as 1m,10m", value)
	}
	for _, part := range parts {
		delay, err := readDuration(strings.TrimSpace(part), 0, 24*time.Hour)
		if err != nil {
			return err
		}
		c.WebhookRetry = append(c.WebhookRetry, delay)
	}
	return nil
}

func readDuration(value string, least, most time.Duration) (time.Duration, error) {
	duration, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("holds %q; it must be a duration such as 30s or 10m", value)
	}
	if duration < least || duration > most {
		return 0, fmt.Errorf("holds %s; it must be from %s to %s", value, least, most)
	}
	return duration, nil
}
