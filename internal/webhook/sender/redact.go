package sender

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"drawbridge/internal/secret"
)

const (
	// minRedacted is the shortest secret that is searched for in an answer: a shorter one
	// would occur in ordinary text by chance.
	minRedacted = 4
	// widestByte is the most bytes that a byte can take in an answer, as &#x0041;.
	widestByte = 8
	// widestEscape is the most bytes that an escape can take, except long character names.
	widestEscape = len(`\ud83d\ude00`)
	// maxEcho bounds the length of an echoed secret in an answer.
	maxEcho = widestByte * maxHeaderValue
)

// secretTexts are the secrets of a request.
type secretTexts struct {
	known []secretText // the longest first
	// steps is the remaining search budget for all texts of the answer.
	steps *int
}

// secretText is a secret, and the part of it that is the same in every base64 text containing it.
type secretText struct {
	plain  string
	base64 []string
	// sent means that the request contains it, so that an answer may echo it; false if it
	// was only used to sign.
	sent bool
}

// secretsOf collects the secrets of a request, since some endpoints echo what they
// received: the signing secrets or the token, and the values of custom headers except
// plain ones.
func secretsOf(r Request) secretTexts {
	steps := maxSteps
	texts := secretTexts{steps: &steps}
	add := func(text string, sent bool) {
		isKnown := func(known secretText) bool { return known.plain == text }
		if len(text) >= minRedacted && !slices.ContainsFunc(texts.known, isKnown) {
			texts.known = append(texts.known, secretText{text, inBase64(text), sent})
		}
	}
	for _, header := range r.Headers {
		if header.Plain {
			continue
		}
		add(header.Value, true)
		// "Bearer abc" and "Basic abc" contain the credential after the scheme; for Basic it is
		// a name and a password in base64.
		scheme, credential, _ := strings.Cut(header.Value, " ")
		add(credential, true)
		if strings.EqualFold(scheme, "basic") {
			pair, _ := base64.StdEncoding.DecodeString(credential)
			_, password, _ := strings.Cut(string(pair), ":")
			add(string(pair), true)
			add(password, true)
		}
	}
	for _, s := range []secret.String{r.Secret, r.Previous} {
		add(s.Reveal(), r.Auth == AuthBearer)
	}
	slices.SortStableFunc(texts.known, func(a, b secretText) int {
		return len(b.plain) - len(a.plain)
	})
	return texts
}

// hide masks the secrets in text that an endpoint sent: literally and in base64, also
// percent-encoded or escaped as in JSON and HTML, in any mixture, base64 also over several lines.
func (s secretTexts) hide(text string) string { return s.mask(text, false) }

// maxSteps bounds the search in all texts of an answer; a text that it does not finish is masked
// whole. Otherwise an endpoint could occupy a processor for minutes with text that resembles a
// secret almost everywhere. Ordinary answers to requests with the most headers take half as many.
const maxSteps = 8_000_000

// mask is hide for a text which, if broken, is cut off: then what may be the beginning of
// a secret at its end is masked as well.
func (s secretTexts) mask(text string, broken bool) string {
	if len(text) < minRedacted {
		return text
	}
	var encodedIn reading
	for _, known := range s.known {
		var out strings.Builder
		kept := 0
		for i := 0; i < len(text); i++ {
			search := search{text: text[i:], broken: broken, guesses: maxGuesses, steps: s.steps}
			if length := search.lengthFrom(known.plain, 0); length > 0 {
				out.WriteString(text[kept:i])
				out.WriteString(Masked)
				kept = i + length
				i = kept - 1
			}
		}
		text = out.String() + text[kept:]
		for _, encoded := range known.base64 {
			if encodedIn.source != text {
				if *s.steps -= len(text); *s.steps < 0 {
					return Masked
				}
				encodedIn = read(text, broken)
			}
			text = encodedIn.mask(encoded)
		}
	}
	return text
}

// maxGuesses bounds how often, at one position of a text, a character that both belongs
// to the secret and starts an escape is tried both ways.
const maxGuesses = 64

// search looks for a secret at the start of a text.
type search struct {
	text string
	// broken means that the text is cut off.
	broken  bool
	guesses int
	// steps is the remaining search budget for all texts.
	steps *int
}

// lengthFrom returns the position in the text at which the secret ends whose rest, known,
// is searched for from position at; 0 if it does not match.
func (s *search) lengthFrom(known string, at int) int {
	for known != "" {
		if *s.steps--; *s.steps < 0 {
			return len(s.text)
		}
		rest := s.text[at:]
		literal, escape, meant, width := false, false, "", 0
		if rest != "" {
			literal = rest[0] == known[0]
			meant, width = unescape(rest)
			escape = width > 0 && strings.HasPrefix(known, meant)
		}
		switch {
		case escape && literal && s.guesses > 0:
			s.guesses--
			if end := s.lengthFrom(known[len(meant):], at+width); end > 0 {
				return end
			}
			at, known = at+1, known[1:]
		case literal:
			at, known = at+1, known[1:]
		case escape:
			at, known = at+width, known[len(meant):]
		case s.broken && at >= minRedacted && len(rest) < widestEscape:
			// An escape may be cut off, too.
			return len(s.text)
		default:
			return 0
		}
	}
	return at
}

// unescape decodes an escape at the start of text and returns how many bytes of text it
// takes, 0 if there is none.
func unescape(text string) (meant string, width int) {
	switch text[0] {
	case '+':
		return " ", 1
	case '%':
		if len(text) < len("%41") {
			return "", 0
		}
		decoded, err := hex.DecodeString(text[1:3])
		if err != nil {
			return "", 0
		}
		return string(decoded), len("%41")
	case '\\':
		if strings.HasPrefix(text, `\/`) {
			return "/", len(`\/`)
		}
		if char, _, rest, err := strconv.UnquoteChar(text, '"'); err == nil {
			return string(char), len(text) - len(rest)
		}
		return unescapePair(text)
	case '&':
		end := strings.IndexByte(text[:min(len(text), 2*widestByte)], ';')
		meant = html.UnescapeString(text[:end+1])
		if end < 0 || meant == text[:end+1] || utf8.RuneCountInString(meant) != 1 {
			return "", 0
		}
		return meant, end + 1
	}
	return "", 0
}

// unescapePair is unescape for a character that JSON writes as two escapes, such as \ud83d\ude00.
func unescapePair(text string) (meant string, width int) {
	if len(text) < widestEscape || text[1] != 'u' || text[6:8] != `\u` {
		return "", 0
	}
	high, err := strconv.ParseUint(text[2:6], 16, 16)
	low, lowErr := strconv.ParseUint(text[8:widestEscape], 16, 16)
	char := utf16.DecodeRune(rune(high), rune(low))
	if err != nil || lowErr != nil || char == utf8.RuneError {
		return "", 0
	}
	return string(char), widestEscape
}
