package config

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the machine may have no zones of its own

	"github.com/lib/pq"
	"golang.org/x/text/currency"

	"drawbridge/internal/calendar"
)

// rule parses a value that is not empty. Its error follows the variable's name; it quotes no value
// that may hold a password.
type rule func(value string, tag reflect.StructTag) (any, error)

// mustBe refuses a value and says what it must be.
func mustBe(value, want string) error { return fmt.Errorf("is %q; it must be %s", value, want) }

// rules are the values of the tag is.
var rules = map[string]rule{
	"text": func(value string, _ reflect.StructTag) (any, error) { return value, nil },
	"bool": func(value string, _ reflect.StructTag) (any, error) {
		yes, err := strconv.ParseBool(value)
		if err != nil {
			return nil, mustBe(value, "true or false")
		}
		return yes, nil
	},
	"duration": func(value string, tag reflect.StructTag) (any, error) {
		least, _ := time.ParseDuration(tag.Get("least")) // 0 without one
		most, err := time.ParseDuration(tag.Get("most"))
		if err != nil {
			panic(err) // a constant of the program
		}
		return readDuration(value, least, most)
	},
	"delays": func(value string, _ reflect.StructTag) (any, error) {
		parts := strings.Split(value, ",")
		if len(parts) != 2 {
			return nil, mustBe(value, "two durations, such as 1m,10m")
		}
		var delays []time.Duration
		for _, part := range parts {
			delay, err := readDuration(strings.TrimSpace(part), 0, 24*time.Hour)
			if err != nil {
				return nil, err
			}
			delays = append(delays, delay)
		}
		return delays, nil
	},
	"ratio": func(value string, _ reflect.StructTag) (any, error) {
		ratio, err := strconv.ParseFloat(value, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, mustBe(value, "a number from 0 to 1")
		}
		return ratio, nil
	},
	"roles": func(value string, _ reflect.StructTag) (any, error) { return ParseRoles(value) },
	// In CIDR form, separated by commas.
	"networks": func(value string, _ reflect.StructTag) (any, error) {
		var networks []netip.Prefix
		for text := range strings.SplitSeq(value, ",") {
			prefix, err := netip.ParsePrefix(strings.TrimSpace(text))
			if err != nil {
				return nil, fmt.Errorf("holds %q; it must be a network such as 10.1.0.0/16", text)
			}
			networks = append(networks, prefix.Masked())
		}
		return networks, nil
	},
	"names": func(value string, _ reflect.StructTag) (any, error) {
		var names []string
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if !fullName.MatchString(name) {
				return names, fmt.Errorf(
					"holds %q; it must be a full name such as bridge.lender.example", name)
			}
			names = append(names, name)
		}
		return names, nil
	},
	"domains": func(value string, _ reflect.StructTag) (any, error) {
		var domains []string
		for name := range strings.SplitSeq(value, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if strings.ContainsAny(name, "@ /:*") {
				return nil, fmt.Errorf("names %q; it must hold domains such as lender.example", name)
			}
			if name != "" {
				domains = append(domains, name)
			}
		}
		return domains, nil
	},
	"listen": func(value string, _ reflect.StructTag) (any, error) {
		_, port, err := net.SplitHostPort(value)
		if err != nil {
			return nil, mustBe(value, "host:port, such as 127.0.0.1:8080")
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, fmt.Errorf("has the port %q; it must be a number from 0 to 65535", port)
		}
		return value, nil
	},
	"loopback": func(value string, _ reflect.StructTag) (any, error) { // a profile shows memory
		address, err := netip.ParseAddrPort(value)
		if err != nil || !address.Addr().IsLoopback() {
			return nil, mustBe(value, "a loopback address and port, such as 127.0.0.1:6060")
		}
		return value, nil
	},
	"sender": func(value string, _ reflect.StructTag) (any, error) {
		if _, err := mail.ParseAddress(value); err != nil {
			return nil, mustBe(value, "an address such as Lender <mail@lender.example>")
		}
		return value, nil
	},
	// Its amounts are exact to the hundredth, like all amounts of the service.
	"currency": func(value string, _ reflect.StructTag) (any, error) {
		unit, err := currency.ParseISO(value)
		if err != nil || unit.String() != value || unit == currency.XXX || unit == currency.XTS {
			return nil, mustBe(value, "a code of ISO 4217 such as USD")
		}
		if decimals, _ := currency.Standard.Rounding(unit); decimals != 2 {
			return nil, fmt.Errorf("is %q, whose amounts have no hundredths; amounts here do", value)
		}
		return value, nil
	},
	"path": func(value string, _ reflect.StructTag) (any, error) {
		trimmed := strings.TrimRight(value, "/")
		if trimmed == "" {
			return "", nil
		}
		parsed, err := url.Parse(trimmed)
		if err != nil || !strings.HasPrefix(trimmed, "/") || parsed.Path != trimmed ||
			strings.ContainsAny(trimmed, ":*") || path.Clean(trimmed) != trimmed {
			return nil, mustBe(value, "a plain path such as /api")
		}
		for _, taken := range []string{"/console", "/docs", "/static"} {
			if trimmed == taken || strings.HasPrefix(trimmed, taken+"/") {
				return nil, fmt.Errorf("is %q, which the service itself uses", value)
			}
		}
		return trimmed, nil
	},
	"origin": func(value string, _ reflect.StructTag) (any, error) {
		parsed, err := url.Parse(value)
		if err != nil || parsed.Hostname() == "" ||
			(parsed.Scheme != "http" && parsed.Scheme != "https") {
			return nil, errors.New("must be an origin such as https://drawbridge.example")
		}
		if strings.Trim(parsed.Path, "/") != "" || parsed.RawQuery != "" || parsed.Fragment != "" ||
			parsed.User != nil {
			return nil, errors.New("has a user, path, query or fragment; an origin has none")
		}
		port, err := strconv.ParseUint(cmp.Or(parsed.Port(), "443"), 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("has the port %q; it must be a number from 1 to 65535", parsed.Port())
		}
		return parsed.Scheme + "://" + parsed.Host, nil
	},
	"issuer": func(value string, _ reflect.StructTag) (any, error) {
		issuer, err := url.Parse(value)
		if err != nil || issuer.Host == "" || issuer.User != nil || issuer.RawQuery != "" ||
			(issuer.Scheme != "https" && issuer.Scheme != "http") {
			return nil, errors.New("must look like https://issuer.example")
		}
		return value, nil
	},
	"bucket": func(value string, _ reflect.StructTag) (any, error) {
		if endsEarly(value) {
			return value, errUnencoded
		}
		parsed, err := url.Parse(value)
		if err != nil || (parsed.Scheme != "file" && parsed.Scheme != "s3") {
			return value, errors.New("must begin with file:// or s3://")
		}
		return value, nil
	},
	"zone": func(value string, _ reflect.StructTag) (any, error) {
		zone, err := time.LoadLocation(value)
		if err != nil || value == "Local" {
			return nil, mustBe(value, "a zone such as America/New_York or UTC")
		}
		return zone, nil
	},
	// The value names a file.
	"holidays": func(value string, _ reflect.StructTag) (any, error) {
		file, err := os.Open(value)
		if err != nil {
			return nil, fmt.Errorf("names a file that cannot be read: %w", err)
		}
		defer file.Close()
		days, err := calendar.ReadHolidays(file)
		return days, prefixed("names "+value, err)
	},
	// The value names a file. Go silently ignores a file that it cannot use.
	"roots": func(value string, _ reflect.StructTag) (any, error) {
		roots, err := os.ReadFile(value)
		if err != nil {
			return nil, fmt.Errorf("names a file that cannot be read: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(roots) {
			return nil, fmt.Errorf("names %s, which holds no certificate in PEM form", value)
		}
		return value, nil
	},
	"hours": func(value string, _ reflect.StructTag) (any, error) {
		hours, err := calendar.ParseHours(value)
		return hours, prefixed("is wrong", err)
	},
	"clock": func(value string, _ reflect.StructTag) (any, error) {
		clock, err := calendar.ParseClock(value)
		return clock, prefixed("is wrong", err)
	},
	"postgres": readPostgres,
	// Several servers may lag by different times, so that a later read could show older data.
	"standby": func(value string, tag reflect.StructTag) (any, error) {
		read, err := readPostgres(value, tag)
		text, _ := read.(string)
		address, wrong := url.Parse(text)
		if err == nil && wrong == nil && strings.Contains(address.Query().Get("host"), ",") {
			return value, errors.New("must name one server")
		}
		return read, err
	},
	"smtp":      server("smtp://user:password@host:587", "smtp", "smtps"),
	"collector": server("http://collector.internal:4318", "http", "https"),
}

// errUnencoded is about a URL whose password ends its host early. It quotes nothing of it.
var errUnencoded = errors.New("holds an @ behind its host; encode / ? # @ in the password as " +
	"%2F %3F %23 %40, and an @ of a path as %40")

// parameterValue is the value of a parameter of a URL.
var parameterValue = regexp.MustCompile(`=[^&#]*`)

// readPostgres parses the URL of a server, or of several of which one is writable:
// postgres://a:5432,b:5433/name, or postgres:///name?host=a,b&port=5432,5433, which is the form
// that both drivers accept. Of several, the writable one is used unless target_session_attrs says
// otherwise, and each has a few seconds to answer.
func readPostgres(value string, _ reflect.StructTag) (any, error) {
	wrong := errors.New("must look like postgres://user:password@host:5432/name; " +
		"several hosts are separated by commas")
	scheme, rest, found := strings.Cut(value, "://")
	if !found || (scheme != "postgres" && scheme != "postgresql") {
		return value, wrong
	}
	if endsEarly(value) {
		return value, errUnencoded
	}
	end := len(rest) - len(behindHost(value))
	at := strings.LastIndexByte(rest[:end], '@') + 1
	named := rest[at:end]
	several := strings.Contains(named, ",")
	if several {
		value = scheme + "://" + rest[:at] + rest[end:]
	}
	parsed, err := url.Parse(value)
	if err != nil {
		return value, wrong
	}
	query := parsed.Query()
	if several {
		hosts, ports, err := splitHosts(named)
		if err != nil || query.Has("host") || query.Has("port") {
			return value, wrong
		}
		query.Set("host", hosts)
		query.Set("port", ports)
	}
	if parsed.Host == "" && query.Get("host") == "" {
		return value, wrong
	}
	if !strings.Contains(query.Get("host"), ",") {
		return value, checkParameters(value)
	}
	query.Set("target_session_attrs", cmp.Or(query.Get("target_session_attrs"), "read-write"))
	query.Set("connect_timeout", cmp.Or(query.Get("connect_timeout"), "3"))
	parsed.RawQuery = query.Encode()
	return parsed.String(), checkParameters(parsed.String())
}

// checkParameters checks whether the driver accepts the parameters of a URL.
func checkParameters(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return prefixed("cannot be used", err)
	}
	query := parsed.Query()
	query.Set("sslmode", cmp.Or(query.Get("sslmode"), "prefer")) // as it is opened
	parsed.RawQuery = query.Encode()
	_, err = pq.NewConfig(parsed.String())
	return prefixed("cannot be used", err)
}

// splitHosts splits a list such as a:5432,b into hosts and ports.
func splitHosts(list string) (hosts, ports string, err error) {
	var names, numbers []string
	for each := range strings.SplitSeq(list, ",") {
		host := &url.URL{Host: each}
		port := host.Port()
		if port == "" {
			port = "5432"
		}
		bracketed := strings.HasPrefix(each, "[")
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || host.Hostname() == "" ||
			strings.Contains(host.Hostname(), ":") != bracketed {
			return "", "", errors.New("a host is wrong")
		}
		names, numbers = append(names, host.Hostname()), append(numbers, port)
	}
	return strings.Join(names, ","), strings.Join(numbers, ","), nil
}

// server returns the rule for the URL of a server with one of the schemes.
func server(example string, schemes ...string) rule {
	return func(value string, _ reflect.StructTag) (any, error) {
		if endsEarly(value) {
			return value, errUnencoded
		}
		parsed, err := url.Parse(value)
		if err != nil || parsed.Host == "" || !slices.Contains(schemes, parsed.Scheme) {
			return value, errors.New("must look like " + example)
		}
		return value, nil
	}
}

// prefixed prefixes an error that quotes the problem.
func prefixed(words string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", words, err)
}

// fullName matches a full name in plain ASCII, without a wildcard.
var fullName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*$`)

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
