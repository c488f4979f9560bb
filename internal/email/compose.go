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

// letter is what compose turns into a message.
type letter struct {
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

// compose writes the message, pure ASCII and the same for the same letter.
//
// Everything that is not ours to choose goes through an encoder: addresses by
// net/mail, the subject as an encoded word, the bodies as quoted-printable. No
// name or title can begin a header of its own.
func compose(l letter) (string, error) {
	message := gomail.NewMsg(
		gomail.WithNoDefaultUserAgent(),
		gomail.WithBoundary(boundary(l.MessageID)),
	)
	message.FromMailAddress(l.From)
	message.ToMailAddress(l.To)
	if l.ReplyTo != nil {
		message.ReplyToMailAddress(l.ReplyTo)
	}
	message.Subject(cleanName(l.Content.Subject))
	message.SetMessageIDWithValue(l.MessageID)
	message.SetDateWithValue(l.Date)
	// Keeps vacation responders from answering (RFC 3834).
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetBodyString(gomail.TypeTextPlain, l.Content.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, l.Content.HTML)
	var out bytes.Buffer
	if _, err := message.WriteTo(&out); err != nil {
		return "", fmt.Errorf("composing message %s: %w", l.MessageID, err)
	}
	return out.String(), nil
}

// boundary follows from the message id, so that composing twice gives the same
// bytes, and does not reveal it.
func boundary(messageID string) string {
	sum := sha256.Sum256([]byte("boundary " + messageID))
	return "part" + hex.EncodeToString(sum[:16])
}
