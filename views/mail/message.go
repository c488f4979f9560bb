package mail

import (
	"context"
	"fmt"
	"strings"
)

// Lender is whose mails they are.
type Lender struct {
	Name string
	// PrimaryColor fills the head, AccentColor marks what matters: "#rrggbb".
	PrimaryColor string
	AccentColor  string
	// ReplyTo tells whether answers reach somebody; empty means they do not.
	ReplyTo string
	// Currency is that of every amount, by its ISO 4217 code.
	Currency string
}

// Message is one mail.
type Message interface {
	// Subject is one line.
	Subject(lender Lender) string
	// write says all else.
	write(d *document)
}

// Content is a rendered mail.
type Content struct {
	Subject string
	HTML    string
	Text    string
}

// Render renders all parts of a message.
func Render(ctx context.Context, lender Lender, message Message) (Content, error) {
	d := document{Lender: lender, Subject: message.Subject(lender), Signature: lender.Name}
	message.write(&d)
	var html strings.Builder
	if err := layout(&d).Render(ctx, &html); err != nil {
		return Content{}, fmt.Errorf("rendering %T: %w", message, err)
	}
	d.text.paragraph(d.Why)
	return Content{Subject: d.Subject, HTML: html.String(), Text: d.text.signed(d.Signature)}, nil
}

// Fact is a line of a table of facts. Lines without a value are left out.
type Fact struct {
	Label string
	Value string
}

// Borrower is what every mail to a borrower says about their application.
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

// contact says whom to ask.
func (b Borrower) contact(lender Lender) string {
	switch {
	case lender.ReplyTo != "":
		return "Questions? Reply to this e-mail and " + lender.Name + " will help you."
	case b.MerchantName != "":
		return "Questions? " + b.MerchantName + " will help you. Please do not reply to this " +
			"e-mail: nobody reads the answers."
	}
	return "Please do not reply to this e-mail: nobody reads the answers."
}

// close ends a mail that asks the borrower for something.
func (b Borrower) close(d *document) {
	d.Why = whyBorrower(d.Lender)
	d.facts("Your application", b.facts()...)
	d.note(d.Lender.Name + " never asks for passwords, card numbers or codes by e-mail.")
	d.note(b.contact(d.Lender))
}

func whyBorrower(lender Lender) string {
	return "You receive this because an application for financing with " + lender.Name +
		" names this address."
}

// greeting is a word and, set apart, the borrower's name where it is known, and what follows.
func (b Borrower) greeting(word, rest string) []string {
	if b.FirstName == "" {
		return []string{word + rest}
	}
	return []string{word + ", ", b.FirstName, rest}
}
