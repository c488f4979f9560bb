package mail

import (
	"context"
	"fmt"
	"strings"

	"drawbridge/internal/email"
)

// Lender is the sender of the mails.
type Lender struct {
	email.Settings
	// Currency is the ISO 4217 code of every amount.
	Currency string
}

// Message is one mail.
type Message interface {
	// Subject is one line.
	Subject(lender Lender) string
	// write writes the rest of the mail.
	write(d *document)
}

// Render renders all parts of a message.
func Render(ctx context.Context, lender Lender, message Message) (email.Content, error) {
	d := document{Lender: lender, Subject: message.Subject(lender), Signature: lender.LenderName}
	message.write(&d)
	var html strings.Builder
	if err := layout(&d).Render(ctx, &html); err != nil {
		return email.Content{}, fmt.Errorf("rendering %T: %w", message, err)
	}
	d.text.paragraph(d.Why)
	return email.Content{
		Subject: d.Subject, HTML: html.String(), Text: d.text.signed(d.Signature),
	}, nil
}

// Fact is a line of a table of facts. Lines without a value are omitted.
type Fact struct {
	Label string
	Value string
}

// Borrower holds what every mail to a borrower says about the application.
type Borrower struct {
	FirstName    string
	ProjectName  string
	MerchantName string
	// Reference is the application's uid.
	Reference string
}

func (b Borrower) facts() []Fact {
	return []Fact{
		{"Project", b.ProjectName}, {"Company", b.MerchantName}, {"Reference", b.Reference},
	}
}

// contact says whom to contact.
func (b Borrower) contact(lender Lender) string {
	switch {
	case lender.ReplyTo != "":
		return "Questions? Reply to this e-mail and " + lender.LenderName + " will help you."
	case b.MerchantName != "":
		return "Questions? " + b.MerchantName + " will help you. Please do not reply to this " +
			"e-mail: replies are not read."
	}
	return "Please do not reply to this e-mail: replies are not read."
}

// close ends a mail that asks the borrower for something.
func (b Borrower) close(d *document) {
	d.Why = whyBorrower(d.Lender)
	d.facts("Your application", b.facts()...)
	d.note(d.Lender.LenderName + " never asks for passwords, card numbers or codes by e-mail.")
	d.note(b.contact(d.Lender))
}

func whyBorrower(lender Lender) string {
	return "You receive this because an application for financing with " + lender.LenderName +
		" names this address."
}

// greeting returns word, the borrower's name if known, isolated, and rest.
func (b Borrower) greeting(word, rest string) []string {
	if b.FirstName == "" {
		return []string{word + rest}
	}
	return []string{word + ", ", b.FirstName, rest}
}
