package email

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/mail"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// messageParts are what compose turns into a message.
type messageParts struct {
	From      *mail.Address
	To        *mail.Address
	ReplyTo   *mail.Address // nil: answers go to From
	MessageID string
	Date      time.Time
	Content   Content
}

// newMessageID is unguessable and ends in the sender's domain, as receivers
// that look for forgeries expect.
func newMessageID(from *mail.Address) string {
	return strings.ToLower(rand.Text()) + from.Address[strings.LastIndexByte(from.Address, '@'):]
}

// compose writes the message, pure ASCII and the same for the same parts.
//
// Everything that is not ours to choose goes through an encoder: addresses by
// net/mail, the subject as an encoded word, the bodies as quoted-printable. No
// name or title can begin a header of its own.
func compose(parts messageParts) (string, error) {
	message := gomail.NewMsg(
		gomail.WithNoDefaultUserAgent(),
		gomail.WithBoundary(boundary(parts.MessageID)),
	)
	message.FromMailAddress(parts.From)
	message.ToMailAddress(parts.To)
	if parts.ReplyTo != nil {
		message.ReplyToMailAddress(parts.ReplyTo)
	}
	message.Subject(cleanName(parts.Content.Subject))
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

// boundary follows from the message id, so that composing twice gives the same
// bytes, and does not reveal it.
func boundary(messageID string) string {
	sum := sha256.Sum256([]byte("boundary " + messageID))
	return "part" + hex.EncodeToString(sum[:16])
}
