package sender

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"drawbridge/internal/lending"
)

const (
	// maxURL bounds a webhook URL, in bytes.
	maxURL = 2048
	// maxHost and maxLabel are the bounds of DNS (RFC 1035 section 2.3.4).
	maxHost  = 253
	maxLabel = 63
	// firstFreePort is the lowest port, besides 443, that an endpoint may use: mail, DNS,
	// SSH and other services that must not be contacted use lower ports.
	firstFreePort = 1024
	portRule      = "an endpoint listens on port 443, or on 1024 and above"
)

// Policy decides where webhooks may go. Its zero value is the strict one: https to public
// addresses.
type Policy struct {
	// Allow lists the ranges that may be reached although they are not public.
	Allow []netip.Prefix
	// AllowHTTP permits plain http to literal addresses inside Allow.
	AllowHTTP bool
}

// metadataNames resolve to cloud metadata services. They and all names under them are
// refused without a DNS query.
var metadataNames = []string{
	"metadata", "metadata.google.internal", "metadata.goog", "metadata.internal",
	"metadata.azure.internal", "metadata.tencentyun.com", "metadata.platformequinix.com",
	"metadata.packet.net", "instance-data", "instance-data.ec2.internal", "rancher-metadata",
}

// localNames mean this machine on common systems.
var localNames = []string{
	"localhost", "localhost.localdomain", "localhost4", "localhost6",
	"localhost4.localdomain4", "localhost6.localdomain6", "ip6-localhost",
	"ip6-loopback", "broadcasthost",
}

// punycode checks one label that is marked as encoded (RFC 5891 section 5.4).
var punycode = idna.New(
	idna.ValidateLabels(true), idna.CheckHyphens(false), idna.CheckJoiners(true),
	idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true),
)

// CheckURL decides whether a webhook may be sent to raw, without a DNS query. It returns
// the URL with the host in lower case. A refusal is a VALIDATION_ERROR of the field "url"
// that names the rule and the fix.
//
// Go's URL parser is lenient where browsers and other clients parse the same text
// differently, so the text itself is checked first and the result afterwards.
func (p Policy) CheckURL(raw string) (*url.URL, error) {
	if err := checkText(raw); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's error quotes the URL, password included.
		return nil, refuse("is not a URL; write it like https://hooks.example.com/drawbridge")
	}
	// Nothing but scheme://host[:port][/path][?query].
	behind := raw[len(u.Scheme):]
	authority, _, _ := strings.Cut(strings.TrimPrefix(behind, "://"), "/")
	authority, _, _ = strings.Cut(authority, "?")
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, refuse("must begin with https://")
	case u.User != nil || strings.Contains(authority, "@"):
		return nil, refuse("contains a user name or password; use an authentication header instead")
	case !strings.HasPrefix(behind, "://") || u.Opaque != "" || u.Host == "":
		return nil, refuse("has no host; write it like https://hooks.example.com/drawbridge")
	case !strings.EqualFold(authority, u.Host):
		return nil, refuse("has a host in an unusual notation; write it plainly")
	}
	u.Host = strings.ToLower(u.Host)
	if err := p.checkHost(u); err != nil {
		return nil, err
	}
	if err := checkPort(u); err != nil {
		return nil, err
	}
	// The returned form, with escapes, is what is saved and checked again.
	if length := len(u.String()); length > maxURL {
		return nil, tooLong(length)
	}
	return u, nil
}

// refuse returns the error for the URL; the format continues the sentence after its name.
func refuse(format string, args ...any) error {
	return lending.Invalid("url", `"url" `+format, args...)
}

func tooLong(length int) error {
	return refuse("has %d characters; at most %d are allowed", length, maxURL)
}

// checkText refuses text that different parsers may interpret differently.
func checkText(raw string) error {
	switch {
	case raw == "":
		return lending.Required("url")
	case len(raw) > maxURL:
		return tooLong(len(raw))
	}
	for _, r := range raw {
		switch {
		case r <= ' ' || r == 0x7f:
			return refuse("contains a space or a control character; percent-encode it")
		case r > 0x7f:
			return refuse("contains characters beyond ASCII; write the host name in punycode " +
				"(xn--...) and percent-encode the rest")
		case r == '\\':
			return refuse("contains a backslash; use forward slashes")
		case r == '#':
			return refuse("has a fragment; leave out everything from the # on")
		}
	}
	return nil
}

// checkPort applies the port rule to the port given, or to the scheme's default.
func checkPort(u *url.URL) error {
	host, port := u.Host, u.Port()
	if strings.HasSuffix(host, ":") {
		return refuse("has a colon but no port; leave out the colon or write the port")
	}
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || port != strconv.FormatUint(number, 10) {
		return refuse("has a port that is not a number from 1 to 65535")
	}
	if !allowedPort(uint16(number)) {
		return refuse("uses port %d; %s", number, portRule)
	}
	return nil
}

func allowedPort(port uint16) bool { return port == 443 || port >= firstFreePort }

// checkHost checks the host, which is in lower case, together with the scheme: plain http
// is only for literal addresses in an allowed range.
func (p Policy) checkHost(u *url.URL) error {
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	isAddress := err == nil
	// Only the one plain notation of an address is accepted. Forms that embed another
	// address are refused even if that one is public, because no endpoint needs them.
	if isAddress && (ip.Is4In6() || nat64.Contains(ip)) {
		return refuse("hides an IPv4 address in an IPv6 one; write the IPv4 address")
	}
	if u.Scheme == "http" && !(p.AllowHTTP && isAddress && p.allows(ip)) {
		return refuse("must begin with https://; plain http is refused")
	}
	if !isAddress {
		return checkName(host)
	}
	if why := p.refusal(ip); why != "" {
		return refuse("points to %s, which is %s; use the public address of the endpoint", ip, why)
	}
	return nil
}

// checkName applies the rules for host names (specification section 6.1 asks
// for a publicly reachable endpoint).
func checkName(host string) error {
	if len(host) > maxHost {
		return refuse("has a host name of %d characters; at most %d are allowed", len(host), maxHost)
	}
	if strings.HasSuffix(host, ".") {
		return refuse("has a host name that ends in a dot; leave out the dot")
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if problem := labelProblem(label); problem != "" {
			return refuse("has a host name that %s", problem)
		}
	}
	// Clients may parse the last label as a number, and the whole host as an IPv4 address in
	// an old notation: 127.1, 0x7f000001.
	last, isHex := strings.CutPrefix(labels[len(labels)-1], "0x")
	digits := "0123456789"
	if isHex {
		digits += "abcdef"
	}
	switch {
	case strings.Trim(last, digits) == "":
		return refuse("has a host that ends in a number and is not an IPv4 address in its usual " +
			"form; write four decimal numbers from 0 to 255, or a name")
	case isUnder(host, localNames):
		return refuse("points to %s, which means this machine; use a public name", host)
	case isUnder(host, metadataNames):
		return refuse("points to %s, a cloud metadata service", host)
	}
	return nil
}

// labelProblem describes what is wrong with one label of a host name, else "".
func labelProblem(label string) string {
	switch {
	case label == "":
		return "has an empty part between two dots"
	case len(label) > maxLabel:
		return fmt.Sprintf("has a part of more than %d characters", maxLabel)
	case strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-"):
		return "has a part that begins or ends with a hyphen"
	}
	for _, c := range []byte(label) {
		if strings.IndexByte("abcdefghijklmnopqrstuvwxyz0123456789-_", c) < 0 {
			return fmt.Sprintf("contains %q; letters, digits, hyphens and underscores are allowed", c)
		}
	}
	if strings.HasPrefix(label, "xn--") {
		decoded, decodeErr := punycode.ToUnicode(label)
		encoded, encodeErr := punycode.ToASCII(decoded)
		if decodeErr != nil || decoded == label || encodeErr != nil || encoded != label {
			return "contains a part that begins with xn-- and is not valid punycode"
		}
	}
	return ""
}

func isUnder(host string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return host == name || strings.HasSuffix(host, "."+name)
	})
}

// CheckResolved queries DNS once, when a subscription is saved. A name that resolves to a
// refused address is a VALIDATION_ERROR of the field "url"; one that does not resolve yet
// is accepted with a warning for the operator, because partners set up their endpoints in
// any order. u comes from CheckURL.
func (p Policy) CheckResolved(
	ctx context.Context, resolver Resolver, u *url.URL,
) (warning string, err error) {
	addrs, err := resolve(ctx, resolver, u)
	if err != nil {
		warning = "the name %s does not resolve now; deliveries fail until it does"
		return fmt.Sprintf(warning, u.Hostname()), nil //nolint:nilerr // the warning says it
	}
	for _, addr := range addrs {
		if why := p.refusal(addr.Addr()); why != "" {
			return "", refuse("has a host whose name resolves to %s, which is %s; use a name with "+
				"public addresses only", addr.Addr().Unmap(), why)
		}
	}
	return "", nil
}
