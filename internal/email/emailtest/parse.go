package emailtest

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
)

// Parsed is a message read by the standard library's parsers.
type Parsed struct {
	Header mail.Header
	// Types are the content types of the parts, in order.
	Types []string
	Text  string
	HTML  string
}

// Parse reads a message with one text and one HTML part.
func Parse(t testing.TB, source string) Parsed {
	t.Helper()
	message, err := mail.ReadMessage(strings.NewReader(source))
	if err != nil {
		t.Fatalf("reading the message: %v\n%s", err, source)
	}
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("the content type is %q: %v", message.Header.Get("Content-Type"), err)
	}
	parsed := Parsed{Header: message.Header}
	parts := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parsed
		}
		if err != nil {
			t.Fatalf("reading the parts: %v", err)
		}
		kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil || !strings.EqualFold(params["charset"], "utf-8") {
			t.Fatalf("a part is %q: %v", part.Header.Get("Content-Type"), err)
		}
		if encoding := part.Header.Get("Content-Transfer-Encoding"); encoding != "quoted-printable" {
			t.Fatalf("a part is encoded as %q", encoding)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			t.Fatalf("decoding a part: %v", err)
		}
		parsed.Types = append(parsed.Types, kind)
		switch kind {
		case "text/plain":
			parsed.Text = string(body)
		case "text/html":
			parsed.HTML = string(body)
		}
	}
}

// Subject returns the decoded subject.
func (p Parsed) Subject(t testing.TB) string {
	t.Helper()
	subject, err := new(mime.WordDecoder).DecodeHeader(p.Header.Get("Subject"))
	if err != nil {
		t.Fatalf("decoding the subject: %v", err)
	}
	return subject
}

// Address returns the decoded address of a header that holds exactly one.
func (p Parsed) Address(t testing.TB, header string) mail.Address {
	t.Helper()
	all, err := p.Header.AddressList(header)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s holds %q: %v", header, p.Header.Get(header), err)
	}
	return *all[0]
}
