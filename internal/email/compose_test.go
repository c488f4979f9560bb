package email

import (
	"mime"
	"net/mail"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/email/emailtest"
)

func sampleParts(t *testing.T, name string) messageParts {
	t.Helper()
	address := func(name, address string) *mail.Address {
		made, err := headerAddress(name, address)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	from := address("Meadow Lending", "mail@meadow.example")
	return messageParts{
		From:      from,
		To:        address(name, "ana@münchen.de"),
		ReplyTo:   address("Hilfe, bitte", "help@meadow.example"),
		MessageID: newMessageID(from),
		Date:      time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Content: Content{
			Subject: "Für " + name,
			Text:    "Hallo " + cleanName(name) + "\n.\nEnde =20\n" + strings.Repeat("lang ", 400),
			HTML:    "<p>Hallo &amp; " + strings.Repeat("ä", 2000) + "</p>",
		},
	}
}

// TestCompose reads messages with the standard library's parsers: every name arrives unchanged and
// none becomes a header.
func TestCompose(t *testing.T) {
	t.Parallel()
	for name, want := range hostileNames() {
		parts := sampleParts(t, name)
		source, err := compose(parts)
		if err != nil {
			t.Fatal(err)
		}
		parsed := emailtest.Parse(t, source)
		if to := parsed.Address(t, "To"); to.Name != want || to.Address != "ana@xn--mnchen-3ya.de" {
			t.Errorf("%q arrived as %+v", name, to)
		}
		if from := parsed.Address(t, "From"); from.Address != "mail@meadow.example" {
			t.Errorf("%q: from %+v", name, from)
		}
		if reply := parsed.Address(t, "Reply-To"); reply.Name != "Hilfe, bitte" {
			t.Errorf("%q: reply to %+v", name, reply)
		}
		if subject := parsed.Subject(t); len([]rune(name)) <= maxName-10 &&
			subject != strings.TrimSpace("Für "+want) {
			t.Errorf("%q: the subject is %q", name, subject)
		}
		for header := range parsed.Header {
			if !knownHeaders[header] {
				t.Errorf("%q became the header %s", name, header)
			}
		}
		if got := strings.ReplaceAll(parsed.Text, "\r\n", "\n"); got != parts.Content.Text {
			t.Errorf("%q: the text arrived as %q", name, got)
		}
		if parsed.HTML != parts.Content.HTML {
			t.Errorf("%q: the HTML arrived changed", name)
		}
	}
}

var knownHeaders = map[string]bool{
	"From": true, "To": true, "Reply-To": true, "Subject": true, "Date": true,
	"Message-Id": true, "Mime-Version": true, "Content-Type": true, "Auto-Submitted": true,
}

// TestComposeForTheWire: every server can carry the message as it is.
func TestComposeForTheWire(t *testing.T) {
	t.Parallel()
	for name := range hostileNames() {
		source, err := compose(sampleParts(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(source, "\r\n") {
			if len(line) > 998 {
				t.Errorf("%q: a line of %d bytes", name, len(line))
			}
			if strings.ContainsFunc(line, func(r rune) bool { return r > '~' || (r < ' ' && r != '\t') }) {
				t.Errorf("%q: a line that is not plain ASCII: %q", name, line)
			}
		}
	}
}

// TestComposeEncodedWords: text that looks like an encoded word arrives as it was written. Programs
// also decode such words in quotes, so none may be left in a header.
func TestComposeEncodedWords(t *testing.T) {
	t.Parallel()
	const word = "=?utf-8?q?Pay_now=3A_https=3A=2F=2Fevil.example=2Fpay?="
	for _, text := range []string{
		word,
		"Ana " + word,
		"Für " + word,
		word + " " + word,
		strings.Repeat("ü", 40) + word,
		"=?utf-8?q?unfinished",
	} {
		parts := sampleParts(t, text)
		parts.From.Name, parts.ReplyTo.Name = parts.To.Name, parts.To.Name
		parts.Content.Subject = text
		source, err := compose(parts)
		if err != nil {
			t.Fatal(err)
		}
		parsed := emailtest.Parse(t, source)
		if subject := parsed.Subject(t); subject != text {
			t.Errorf("the subject %q arrived as %q", text, subject)
		}
		for _, header := range []string{"From", "To", "Reply-To"} {
			raw := parsed.Header.Get(header)
			shown, err := new(mime.WordDecoder).DecodeHeader(raw)
			if err != nil || !strings.HasPrefix(shown, text+" <") {
				t.Errorf("%s with the name %q shows as %q: %v", header, text, shown, err)
			}
			if strings.Contains(raw, "=?utf-8?q?Pay") {
				t.Errorf("%s holds %q as it was written: %s", header, text, raw)
			}
			if address := parsed.Address(t, header); address.Name != text {
				t.Errorf("%s with the name %q arrived as %+v", header, text, address)
			}
		}
	}
}

func TestComposeFacts(t *testing.T) {
	t.Parallel()
	parts := sampleParts(t, "Ana")
	first, err := compose(parts)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := compose(parts); err != nil || again != first {
		t.Errorf("composing twice differs: %v", err)
	}
	parsed := emailtest.Parse(t, first)
	for header, want := range map[string]string{
		"Date":           "Sat, 21 Nov 2026 09:30:00 +0000",
		"Auto-Submitted": "auto-generated",
		"Message-Id":     "<" + parts.MessageID + ">",
		"Mime-Version":   "1.0",
	} {
		if got := parsed.Header.Get(header); got != want {
			t.Errorf("%s is %q, want %q", header, got, want)
		}
	}
	// Programs prefer the last part.
	if got := strings.Join(parsed.Types, " "); got != "text/plain text/html" {
		t.Errorf("the parts are %s", got)
	}
	parts.ReplyTo = nil
	silent, err := compose(parts)
	if err != nil {
		t.Fatal(err)
	}
	if got := emailtest.Parse(t, silent).Header.Get("Reply-To"); got != "" {
		t.Errorf("Reply-To is %q without one", got)
	}
}

// TestMessageIDs: message ids cannot be guessed from each other or from the boundary.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	from := &mail.Address{Address: "mail@meadow.example"}
	seen := make(map[string]bool)
	for range 1000 {
		id := newMessageID(from)
		local, domain, _ := strings.Cut(id, "@")
		if domain != "meadow.example" || len(local) < 26 || seen[id] {
			t.Fatalf("the message id is %q", id)
		}
		if strings.Contains(boundary(id), local) {
			t.Fatalf("the boundary tells the message id")
		}
		seen[id] = true
	}
}
