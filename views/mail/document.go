package mail

import (
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// document is a mail being written. It builds the text part and the HTML part together, so
// that both say the same.
type document struct {
	Lender  Lender
	Subject string
	// Preview is what a mail program's list shows after the subject.
	Preview string
	// Why tells the recipient why they received the mail.
	Why string
	// Signature ends the text part.
	Signature string

	text  textBuilder
	parts []templ.Component
}

// add appends a part, separated from the one before by white space.
func (d *document) add(part templ.Component) {
	if len(d.parts) > 0 {
		d.parts = append(d.parts, templ.Raw(" "))
	}
	d.parts = append(d.parts, part)
}

// heading is the first line of a mail. Every second string of words is foreign text, isolated.
func (d *document) heading(words ...string) {
	d.text.paragraph(strings.Join(words, ""))
	d.add(heading(words))
}

// paragraph is a paragraph of text. Every second string of words is foreign text, isolated.
func (d *document) paragraph(words ...string) {
	d.text.paragraph(strings.Join(words, ""))
	d.add(paragraph(words))
}

// section is a paragraph with a title.
func (d *document) section(title, text string) {
	d.text.paragraph(title + ": " + text)
	d.add(section(title, text))
}

// note is a paragraph in small print.
func (d *document) note(text string) {
	d.text.paragraph(text)
	d.add(note(text))
}

// callout highlights the subject of the mail; in the text part, mark precedes it.
func (d *document) callout(mark, text string) {
	d.text.paragraph(mark + text)
	d.add(callout(d.Lender, text))
}

// facts lists the facts that have a value.
func (d *document) facts(title string, facts ...Fact) {
	facts = slices.DeleteFunc(facts, func(f Fact) bool { return f.Value == "" })
	d.text.facts(facts)
	d.add(table(title, facts))
}

// action is the button of a mail; it is left out if the address is unknown.
func (d *document) action(label, address string) {
	if address != "" {
		d.text.paragraph(label + ": " + address)
		d.add(action(newPalette(d.Lender), label, address))
	}
}
