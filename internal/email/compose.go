package email

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
)

// messageParts are the input of compose.
type messageParts struct {
	From      *mail.Address
	To        *mail.Address
	ReplyTo   *mail.Address // nil: replies go to From
	MessageID string
	Date      time.Time
	Content   Content
}

// newMessageID is unguessable and ends in the sender's domain, as receivers that check for
// forgeries expect.
func newMessageID(from *mail.Address) string {
	return strings.ToLower(rand.Text()) + from.Address[strings.LastIndexByte(from.Address, '@'):]
}

// compose writes the message in pure ASCII; the same parts always give the same message.
//
// All text that we do not choose goes through an encoder: addresses through net/mail, the subject
// as an encoded word, the bodies as quoted-printable. No name or title can inject a header.
func compose(parts messageParts) (string, error) {
	message := gomail.NewMsg(
		gomail.WithNoDefaultUserAgent(),
		gomail.WithBoundary(boundary(parts.MessageID)),
	)
	setAddress(message, gomail.HeaderFrom, parts.From)
	setAddress(message, gomail.HeaderTo, parts.To)
	if parts.ReplyTo != nil {
		setAddress(message, gomail.HeaderReplyTo, parts.ReplyTo)
	}
	subject := cleanName(parts.Content.Subject)
	if looksEncoded(subject) {
		subject = encodedWords(subject)
	}
	message.Subject(subject)
	message.SetMessageIDWithValue(parts.MessageID)
	message.SetDateWithValue(parts.Date)
	// Keeps vacation responders from answering (RFC 3834).
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetBodyString(gomail.TypeTextPlain, parts.Content.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, parts.Content.HTML)
	var out bytes.Buffer
	if _, err := message.WriteTo(&out); err != nil {
		return "", fmt.Errorf("composing message %s: %w", parts.MessageID, err)
	}
	return out.String(), nil
}

// setAddress sets an address header. A name that looks encoded is not left to net/mail, which
// quotes it: many programs decode quoted text too.
func setAddress(message *gomail.Msg, header gomail.AddrHeader, address *mail.Address) {
	if !looksEncoded(address.Name) {
		message.SetAddrHeaderFromMailAddress(header, address)
		return
	}
	bare := mail.Address{Address: address.Address}
	message.SetGenHeader(gomail.Header(header), encodedWords(address.Name)+" "+bare.String())
}

// looksEncoded reports whether a receiver could take text, or a part of it, for an encoded word and
// show something else, such as a web address that none of our checks has seen.
func looksEncoded(text string) bool { return strings.Contains(text, "=?") }

// encodedWords encodes text (RFC 2047), including plain ASCII, which encoders leave alone.
func encodedWords(text string) string {
	const longest = 45 // in bytes: 60 characters of base64 in a word of at most 75
	var words []string
	for rest := text; rest != ""; {
		end := min(len(rest), longest)
		for end < len(rest) && !utf8.RuneStart(rest[end]) {
			end--
		}
		words = append(words,
			"=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(rest[:end]))+"?=")
		rest = rest[end:]
	}
	return strings.Join(words, " ")
}

// boundary is derived from the message id, so that composing twice gives the same bytes, and does
// not reveal it.
func boundary(messageID string) string {
	sum := sha256.Sum256([]byte("boundary " + messageID))
	return "part" + hex.EncodeToString(sum[:16])
}
