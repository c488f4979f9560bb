package diagnose

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
)

// SignatureCase is what a partner has at hand when a signature does not match.
type SignatureCase struct {
	// Body and Signature are as the partner received or computed them.
	Body      []byte
	Signature string
	// Sent is the body that was actually sent, nil if the delivery is not known.
	Sent []byte
	// Stamps are what Standard Webhooks signs before the body, one for each attempt of the
	// delivery: see Stamp.
	Stamps []string
	// Current and Previous are the subscription's signing secrets.
	Current, Previous secret.String
}

// SignatureFinding is what can be wrong. No other values exist.
type SignatureFinding string

// The findings, from the best to the worst.
const (
	// FoundValid: the signature belongs to the body and the current secret.
	FoundValid SignatureFinding = "valid"
	// FoundPrevious: it belongs to the body and the previous secret.
	FoundPrevious SignatureFinding = "previous_secret"
	// FoundEncoding: it is right but not written in hex.
	FoundEncoding SignatureFinding = "encoding"
	// FoundNewline: line ends of the body were added, removed or converted.
	FoundNewline SignatureFinding = "newline"
	// FoundReserialised: the body was parsed and written again.
	FoundReserialised SignatureFinding = "reserialised"
	// FoundChangedBody: the body is not the one that was sent.
	FoundChangedBody SignatureFinding = "changed_body"
	// FoundDecodedSecret: the key was the base64-decoded secret.
	FoundDecodedSecret SignatureFinding = "decoded_secret"
	// FoundUnstamped: it is a Standard Webhooks signature, over the body alone.
	FoundUnstamped SignatureFinding = "unstamped"
	// FoundNoStamp: it is a Standard Webhooks signature, and what it covers besides the body
	// is not known.
	FoundNoStamp SignatureFinding = "no_stamp"
	// FoundOtherSecret: no secret of this subscription gives that signature.
	FoundOtherSecret SignatureFinding = "other_secret"
	// FoundMalformed: it cannot be an HMAC-SHA256.
	FoundMalformed SignatureFinding = "malformed"
)

// SignatureVerdict is the doctor's answer. It never contains a secret, nor a signature
// that the partner did not provide.
type SignatureVerdict struct {
	Finding SignatureFinding
	// Secret is the secret that the signature was made with.
	Secret secret.Match
	// Explanation describes what happened, Next what to do.
	Explanation, Next string
}

// Stamp is what Standard Webhooks signs before the body: the event and the time of the
// attempt, as the headers webhook-id and webhook-timestamp carry them.
func Stamp(id, timestamp string) string { return id + "." + timestamp + "." }

// Signature determines why a signature does not match, by trying what commonly happens to
// bodies and signatures in transit.
func Signature(c SignatureCase) SignatureVerdict {
	given := readSignature(c.Signature)
	if len(given.sums) == 0 {
		return verdict(FoundMalformed, secret.MatchNone)
	}
	stamps := []string{""}
	if given.standard {
		stamps = c.Stamps
		if given.stamp != "" {
			stamps = []string{given.stamp}
		}
	}
	for i, candidate := range c.candidates() {
		match := c.signer(given.sums, stamps, candidate.body)
		if match == secret.MatchNone {
			continue
		}
		found := given.verdict(candidate.finding, match)
		if i == 0 && candidate.finding != FoundValid {
			found.Explanation = notSent[candidate.finding] + madeWith(match)
		}
		if given.encoding == inCapitals {
			found.Explanation += " It is written in capitals; we send lower case."
			found.Next = "Compare without regard to case. " + found.Next
		}
		return found
	}
	if !given.standard {
		return verdict(FoundOtherSecret, secret.MatchNone)
	}
	// Mistakes that only occur with Standard Webhooks signatures.
	decoded := SignatureCase{Current: decodedKey(c.Current), Previous: decodedKey(c.Previous)}
	for _, body := range [][]byte{c.Body, c.Sent} {
		if match := c.signer(given.sums, []string{""}, body); match != secret.MatchNone {
			return verdict(FoundUnstamped, match)
		}
		if match := decoded.signer(given.sums, stamps, body); match != secret.MatchNone {
			return verdict(FoundDecodedSecret, match)
		}
	}
	if len(stamps) == 0 {
		return verdict(FoundNoStamp, secret.MatchNone)
	}
	return verdict(FoundOtherSecret, secret.MatchNone)
}

// decodedKey is the key that a Standard Webhooks library uses if it is given the secret
// instead of its base64; zero if the secret is no base64.
func decodedKey(key secret.String) secret.String {
	text := strings.TrimRight(strings.TrimPrefix(key.Reveal(), "whsec_"), "=")
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return secret.String{}
	}
	return secret.New(string(raw))
}

// signature is a signature as somebody provided it.
type signature struct {
	// sums are the possible signatures: in an overlap, Standard Webhooks sends two.
	sums     [][]byte
	encoding encoding
	// standard means that it is a Standard Webhooks signature; stamp is what it covers
	// before the body, if that was provided too.
	standard bool
	stamp    string
}

// verdict returns the verdict on a signature that belongs to a body with a finding.
func (s signature) verdict(finding SignatureFinding, match secret.Match) SignatureVerdict {
	switch {
	case finding != FoundValid:
	case s.encoding == inBase64 && !s.standard:
		finding = FoundEncoding
	case match == secret.MatchPrevious:
		finding = FoundPrevious
	}
	return verdict(finding, match)
}

// encoding is how the bytes of a signature are written.
type encoding int

const (
	inHex encoding = iota + 1
	// inCapitals is hex with a digit in upper case, which we do not send.
	inCapitals
	inBase64
)

// readSignature parses a signature in the forms that people paste: its value or the line
// of its header, with or without the other Standard Webhooks headers.
func readSignature(text string) signature {
	var given signature
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(line, ":")
		if !found {
			name, value = "", line
		}
		name = strings.ToLower(strings.TrimSpace(name))
		values[name] = strings.TrimSpace(values[name] + " " + strings.TrimSpace(value))
	}
	if id, at := values["webhook-id"], values["webhook-timestamp"]; id != "" && at != "" {
		given.stamp = Stamp(id, at)
	}
	value := cmp.Or(values["webhook-signature"], values[sender.HeaderSignature],
		values[sender.HeaderSignature+"-previous"], values[""])
	given.standard = strings.HasPrefix(value, "v1,")
	for one := range strings.FieldsSeq(value) {
		versioned, standard := strings.CutPrefix(one, "v1,")
		sum, written := decodeSum(strings.TrimPrefix(versioned, "sha256="))
		if sum == nil || standard != given.standard || len(given.sums) > 0 && !standard {
			return signature{}
		}
		given.sums, given.encoding = append(given.sums, sum), written
	}
	return given
}

// decodeSum decodes 32 bytes and returns their encoding; nil if text is not 32 bytes.
func decodeSum(text string) (sum []byte, written encoding) {
	const size = 32
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == size {
		if text != strings.ToLower(text) {
			return raw, inCapitals
		}
		return raw, inHex
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		raw, err := alphabet.DecodeString(strings.TrimRight(text, "="))
		if err == nil && len(raw) == size {
			return raw, inBase64
		}
	}
	return nil, 0
}

// signer returns which secret gives one of the signatures for a body after one of the
// stamps: the current one if both do, as in an overlap.
func (c SignatureCase) signer(sums [][]byte, stamps []string, body []byte) secret.Match {
	for _, match := range []secret.Match{secret.MatchCurrent, secret.MatchPrevious} {
		key := c.Current
		if match == secret.MatchPrevious {
			key = c.Previous
		}
		if key.IsZero() {
			continue
		}
		for _, stamp := range stamps {
			mac := sender.Mac(key, append([]byte(stamp), body...))
			if slices.ContainsFunc(sums, func(sum []byte) bool { return hmac.Equal(sum, mac) }) {
				return match
			}
		}
	}
	return secret.MatchNone
}

// candidate is a body that may have been signed, and the finding if it was.
type candidate struct {
	finding SignatureFinding
	body    []byte
}

// candidates lists the bodies to try, the pasted one first. A signature of the pasted
// body is not valid if another body was sent.
func (c SignatureCase) candidates() []candidate {
	difference := c.difference()
	all := []candidate{{difference, c.Body}}
	add := func(finding SignatureFinding, bodies ...[]byte) {
		for _, body := range bodies {
			all = append(all, candidate{finding, body})
		}
	}
	trimmed := bytes.TrimRight(c.Body, "\r\n")
	unix := bytes.ReplaceAll(c.Body, []byte("\r\n"), []byte("\n"))
	add(FoundNewline, trimmed, unix, append(bytes.Clone(trimmed), '\n'),
		append(bytes.Clone(trimmed), "\r\n"...), bytes.ReplaceAll(unix, []byte("\n"), []byte("\r\n")))
	add(FoundReserialised, rewritten(c.Body)...)
	if c.Sent != nil {
		add(difference, c.Sent)
		add(FoundReserialised, rewritten(c.Sent)...)
	}
	return all
}

// difference is how the pasted body differs from the one that was sent: FoundValid if it
// does not, or if that one is not known.
func (c SignatureCase) difference() SignatureFinding {
	var pasted, sent any
	switch {
	case c.Sent == nil || bytes.Equal(c.Body, c.Sent):
		return FoundValid
	case bytes.Equal(bytes.TrimRight(c.Body, "\r\n"), c.Sent):
		return FoundNewline
	case json.Unmarshal(c.Body, &pasted) == nil && json.Unmarshal(c.Sent, &sent) == nil &&
		bytes.Equal(sorted(pasted), sorted(sent)):
		return FoundReserialised
	}
	return FoundChangedBody
}

// maxLevels is the deepest nesting of a text whose rewritten forms are tried; sent bodies have
// three levels. Indented, a text nested thousands deep takes thousands of times its size.
const maxLevels = 16

// rewritten returns a JSON text in the forms in which common libraries rewrite it:
// compact, spaced as Python does, indented, and each with sorted keys.
func rewritten(text []byte) [][]byte {
	var value any
	if json.Unmarshal(text, &value) != nil || nests(value, maxLevels) {
		return nil
	}
	var forms [][]byte
	for _, source := range [][]byte{text, sorted(value)} {
		var compact bytes.Buffer
		if json.Compact(&compact, source) != nil {
			continue
		}
		forms = append(forms, compact.Bytes(), spaced(compact.Bytes()))
		for _, indent := range []string{"  ", "    ", "\t"} {
			var indented bytes.Buffer
			if json.Indent(&indented, compact.Bytes(), "", indent) == nil {
				forms = append(forms, indented.Bytes())
			}
		}
	}
	return forms
}

// nests reports whether a value has more than the given levels of objects and arrays.
func nests(value any, levels int) bool {
	var within []any
	switch value := value.(type) {
	case []any:
		within = value
	case map[string]any:
		within = slices.Collect(maps.Values(value))
	default:
		return false
	}
	return levels == 0 ||
		slices.ContainsFunc(within, func(value any) bool { return nests(value, levels-1) })
}

// sorted renders a value with its keys in order, and without the HTML escapes that only
// Go makes.
func sorted(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil
	}
	return bytes.TrimRight(text.Bytes(), "\n")
}

// spaced puts a space after the colons and commas of compact JSON, outside of strings.
func spaced(compact []byte) []byte {
	out := make([]byte, 0, len(compact)*5/4)
	inString, escaped := false, false
	for _, c := range compact {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && (c == ':' || c == ','):
			out = append(out, ' ')
		}
	}
	return out
}

// verdict returns the verdict for a finding.
func verdict(finding SignatureFinding, match secret.Match) SignatureVerdict {
	words := signatureWords[finding]
	explanation := words.explanation
	if match != secret.MatchNone && finding != FoundValid && finding != FoundPrevious {
		explanation += madeWith(match)
	}
	return SignatureVerdict{
		Finding: finding, Secret: match, Explanation: explanation, Next: words.next,
	}
}

// madeWith names the secret, as a continuation of an explanation.
func madeWith(match secret.Match) string {
	return fmt.Sprintf(" It was made with the %s secret.", match)
}

// notSent explains a signature of the pasted body itself, which is not the one sent.
var notSent = map[SignatureFinding]string{
	FoundNewline: "The signature was computed over this body, which is not the one that was " +
		"sent: a newline was added at its end.",
	FoundReserialised: "The signature was computed over this body, which is not the one that was " +
		"sent: it is the same JSON, parsed and written again.",
	FoundChangedBody: "The signature was computed over this body, which is not the one that was " +
		"sent: its content is another.",
}

// signatureWords explains each finding.
var signatureWords = map[SignatureFinding]struct{ explanation, next string }{
	FoundValid: {
		"The signature belongs to this body and the current secret.",
		"Nothing is wrong with these two. If your code rejects them, compare the secret that it " +
			"uses with the one issued, character by character and without spaces around it.",
	},
	FoundPrevious: {
		"The signature belongs to this body and the previous secret.",
		"Switch to the current secret. Until the overlap ends, the signature by the previous one " +
			"arrives in x-hmac-signature-previous, and as the second in webhook-signature.",
	},
	FoundEncoding: {
		"The signature is the right one, but in base64.",
		"Encode the HMAC in lower-case hexadecimal before you compare.",
	},
	FoundNewline: {
		"The signature belongs to this body with other line ends: a newline at the end was added " +
			"or removed, or line ends were converted.",
		"Compute the HMAC over the bytes of the request body exactly as they arrive.",
	},
	FoundReserialised: {
		"The signature belongs to the same JSON written differently: the body was parsed and " +
			"written again.",
		"Read the raw request body before any JSON middleware, and compute the HMAC over those bytes.",
	},
	FoundChangedBody: {
		"The signature belongs to the body that was sent, and this body is another one.",
		"Make sure that body and signature come from the same request, and that nothing between " +
			"changes the content.",
	},
	FoundDecodedSecret: {
		"The signature was made with what base64 makes of the secret.",
		"Libraries of Standard Webhooks decode the secret that they are given: give them the base64 " +
			"of the secret that was issued.",
	},
	FoundUnstamped: {
		"The signature is one of Standard Webhooks, over the body alone.",
		"Sign webhook-id, webhook-timestamp and the body, with a dot between them.",
	},
	FoundNoStamp: {
		"The signature is one of Standard Webhooks, which covers more than the body.",
		"Name the delivery, or paste the headers webhook-id and webhook-timestamp with it.",
	},
	FoundOtherSecret: {
		"No secret of this subscription gives this signature for this body.",
		"Check that the secret is the one of this subscription, and that body and signature come " +
			"from the same request. If in doubt, rotate the secret.",
	},
	FoundMalformed: {
		"This is not an HMAC-SHA256: that has 64 hexadecimal digits, or 44 characters of base64 " +
			"behind v1, in Standard Webhooks.",
		"Copy the whole value of the header x-hmac-signature or webhook-signature.",
	},
}
