package sender

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"drawbridge/internal/secret"
)

const (
	// minRedacted is the shortest secret that is searched for in an answer: a
	// shorter one would turn up in ordinary text by chance.
	minRedacted = 4
	// widestByte is how many bytes a byte takes at most in an answer, as &#x0041;.
	widestByte = 8
	// maxEcho bounds the echo of a secret in an answer.
	maxEcho = widestByte * maxHeaderValue
)

// secretTexts are the secrets of a request, the longest first.
type secretTexts []string

// secretsOf collects what is secret of a request, since some endpoints echo what
// they received: the signing secrets or the token, and the values of its own
// headers but for those whose names say that they hold none.
func secretsOf(r Request) secretTexts {
	var texts secretTexts
	add := func(text string) {
		if len(text) >= minRedacted && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	for _, s := range []secret.String{r.Secret, r.Previous} {
		add(s.Reveal())
	}
	for _, header := range r.Headers {
		if header.Plain {
			continue
		}
		add(header.Value)
		// "Bearer abc" and "Basic abc" hold the credential behind the scheme, and the
		// latter is a name and a password in base64.
		scheme, credential, _ := strings.Cut(header.Value, " ")
		add(credential)
		if strings.EqualFold(scheme, "basic") {
			pair, _ := base64.StdEncoding.DecodeString(credential)
			_, password, _ := strings.Cut(string(pair), ":")
			add(string(pair))
			add(password)
		}
	}
	slices.SortStableFunc(texts, func(a, b string) int { return len(b) - len(a) })
	return texts
}

// redact masks the secrets of the request in what the endpoint sent, and cuts
// the body to what is kept.
func (a *Attempt) redact(secrets secretTexts) {
	if len(secrets) > 0 {
		a.ResponseBody = []byte(secrets.hide(string(a.ResponseBody)))
		a.Error, a.Note = secrets.hide(a.Error), secrets.hide(a.Note)
		for i, header := range a.ResponseHeaders {
			a.ResponseHeaders[i] = Header{
				Name: secrets.hide(header.Name), Value: secrets.hide(header.Value),
			}
		}
	}
	a.ResponseBody = a.ResponseBody[:min(len(a.ResponseBody), maxBody)]
}

// hide masks the secrets in text that an endpoint sent: as they are,
// percent-encoded, escaped as in JSON and HTML, in any mixture, and in base64.
func (s secretTexts) hide(text string) string {
	for _, known := range s {
		var out strings.Builder
		kept := 0
		for i := 0; i < len(text); i++ {
			guesses := maxGuesses
			if length := lengthFrom(text[i:], known, 0, &guesses); length > 0 {
				out.WriteString(text[kept:i])
				out.WriteString(Masked)
				kept = i + length
				i = kept - 1
			}
		}
		text = out.String() + text[kept:]
		for _, encoded := range inBase64(known) {
			text = strings.ReplaceAll(text, encoded, Masked)
		}
	}
	return text
}

// maxGuesses bounds how often a character that is both one of the secret and the
// start of an escape is tried as each, at one place of a text.
const maxGuesses = 64

// lengthFrom is where in the text the secret ends that goes on at a place of it, 0 if
// it does not.
func lengthFrom(text, known string, at int, guesses *int) int {
	for known != "" {
		if at == len(text) {
			return 0
		}
		literal := text[at] == known[0]
		meant, width := unescape(text[at:])
		escape := width > 0 && strings.HasPrefix(known, meant)
		switch {
		case escape && literal && *guesses > 0:
			*guesses--
			if end := lengthFrom(text, known[len(meant):], at+width, guesses); end > 0 {
				return end
			}
			at, known = at+1, known[1:]
		case literal:
			at, known = at+1, known[1:]
		case escape:
			at, known = at+width, known[len(meant):]
		default:
			return 0
		}
	}
	return at
}

// unescape returns what an escape at the start of text means and how many bytes
// of text it takes, 0 if there is none.
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
		char, _, rest, err := strconv.UnquoteChar(text, '"')
		if err != nil {
			return "", 0
		}
		return string(char), len(text) - len(rest)
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

// inBase64 returns what of a secret is the same in every base64 text that holds it,
// for each of the three places at which it may begin in a group of three bytes, in
// both alphabets. Characters at its ends that hold bits of its neighbours are left
// out.
func inBase64(known string) []string {
	var forms []string
	for before := range 3 {
		padded := strings.Repeat("\x00", before) + known
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			encoded := alphabet.EncodeToString([]byte(padded))
			from := (before*8 + 5) / 6
			until := len(padded) * 8 / 6
			if form := encoded[from:until]; len(form) >= minRedacted && !slices.Contains(forms, form) {
				forms = append(forms, form)
			}
		}
	}
	return forms
}
