package mail

import (
	"context"
	"fmt"
	"strings"

	"github.com/a-h/templ"
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
	// HTML is the whole document.
	HTML(lender Lender) templ.Component
	// Text is the plain-text part.
	Text(lender Lender) string
}

// Content is a rendered mail.
type Content struct {
	Subject string
	HTML    string
	Text    string
}

// Render renders all parts of a message.
func Render(ctx context.Context, lender Lender, message Message) (Content, error) {
	var html strings.Builder
	if err := message.HTML(lender).Render(ctx, &html); err != nil {
		return Content{}, fmt.Errorf("rendering %T: %w", message, err)
	}
	return Content{
		Subject: message.Subject(lender),
		HTML:    html.String(),
		Text:    message.Text(lender),
	}, nil
}

// Fact is a line of a table of facts. Lines without a value are left out.
type Fact struct {
	Label string
	Value string
}

// known keeps the facts that have a value.
func known(facts ...Fact) []Fact {
	kept := facts[:0]
	for _, fact := range facts {
		if fact.Value != "" {
			kept = append(kept, fact)
		}
	}
	return kept
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

// project names the project in the middle of a sentence.
func (b Borrower) project() string {
	if b.ProjectName == "" {
		return "your project"
	}
	return b.ProjectName
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

// caution is in every mail that asks a borrower for something.
func caution(lender Lender) string {
	return lender.Name + " never asks for passwords, card numbers or codes by e-mail."
}
