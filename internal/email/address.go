package email

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"drawbridge/internal/lending"
)

// The lengths that SMTP can carry, in bytes (RFC 5321 section 4.5.3.1).
const (
	maxLocalPart = 64
	maxAddress   = 254
)

// domains converts international names to their ASCII form and checks every label, as a resolver
// does (RFC 5891).
var domains = idna.New(
	idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true),
	idna.Transitional(false),
)

// CheckAddress reports whether a mail can be addressed to address: a bare
// RFC 5322 address such as ana@example.com, whose domain may be international.
// It returns a VALIDATION_ERROR for the field "email" that says what is wrong.
func CheckAddress(address string) error {
	_, err := NormalizeAddress(address)
	return err
}

// CheckAddressOf is CheckAddress for an address that the sender of the request calls field.
func CheckAddressOf(field, address string) error {
	err := CheckAddress(address)
	if err == nil {
		return nil
	}
	return lending.Invalid(field, "%s",
		strings.Replace(err.Error(), `"email"`, `"`+field+`"`, 1))
}

// NormalizeAddress returns address as it goes onto the wire, with the domain in
// lower-case ASCII. It returns the same errors as CheckAddress.
func NormalizeAddress(address string) (string, error) {
	if err := checkCharacters(address); err != nil {
		return "", err
	}
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Name != "" {
		return "", invalidAddress("is not an e-mail address such as ana@example.com")
	}
	at := strings.LastIndexByte(parsed.Address, '@')
	local, domain := parsed.Address[:at], parsed.Address[at+1:]
	// The parser also accepts comments, angle brackets and folded white space. Only an address that
	// formats back exactly as it was written is bare.
	if quoted(local)+"@"+domain != address && local+"@"+domain != address {
		return "", invalidAddress("must be a bare address, without a name, comment or angle brackets")
	}
	if len(local) > maxLocalPart {
		return "", invalidAddress("has more than %d characters before the @", maxLocalPart)
	}
	ascii, err := domains.ToASCII(domain)
	if err != nil {
		return "", invalidAddress("names a domain that cannot exist: %s", domain)
	}
	normalized := quoted(local) + "@" + strings.ToLower(ascii)
	if len(normalized) > maxAddress {
		return "", invalidAddress("is longer than %d characters", maxAddress)
	}
	return normalized, nil
}

// checkCharacters refuses, before any parser runs, characters that no address holds.
func checkCharacters(address string) error {
	switch {
	case address == "":
		return lending.Required("email")
	case len(address) > 4*maxAddress || !utf8.ValidString(address):
		return invalidAddress("is not an e-mail address such as ana@example.com")
	case strings.ContainsFunc(address, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return invalidAddress("must not contain line breaks or other control characters")
	}
	local := address[:max(0, strings.LastIndexByte(address, '@'))]
	if strings.ContainsFunc(local, func(r rune) bool { return r > 0x7f }) {
		return invalidAddress("may contain non-ASCII characters only after the @")
	}
	return nil
}

func invalidAddress(format string, args ...any) error {
	return lending.Invalid("email", `"email" `+format, args...)
}

// quoted writes a local part as SMTP requires: in quotes if it holds more than the characters of an
// RFC 5322 dot-atom.
func quoted(local string) string {
	text := (&mail.Address{Address: local + "@x"}).String()
	return strings.TrimSuffix(strings.TrimPrefix(text, "<"), "@x>")
}

// ParseSender parses an address with an optional name, such as "Acme Lending <mail@acme.example>".
// The error names no variable, since the caller knows which one it was.
func ParseSender(text string) (*mail.Address, error) {
	if parsed, err := mail.ParseAddress(text); err == nil {
		at := strings.LastIndexByte(parsed.Address, '@')
		address := quoted(parsed.Address[:at]) + parsed.Address[at:]
		if sender, err := headerAddress(parsed.Name, address); err == nil {
			return sender, nil
		}
	}
	return nil, fmt.Errorf("%q is not an address such as Lender <mail@lender.example>", text)
}

// headerAddress joins a name and an address for a header. The result's String encodes both,
// whatever the name holds.
func headerAddress(name, address string) (*mail.Address, error) {
	normalized, err := NormalizeAddress(address)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q: %w", address, err)
	}
	parsed, err := mail.ParseAddress(normalized)
	if err != nil {
		return nil, fmt.Errorf("reading the address %q: %w", normalized, err)
	}
	parsed.Name = cleanName(name)
	return parsed, nil
}

// wirePath is an address in the form of the MAIL and RCPT commands.
func wirePath(address *mail.Address) string {
	return (&mail.Address{Address: address.Address}).String()
}
