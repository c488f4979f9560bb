package mail

import (
	"slices"
	"strings"

	"github.com/a-h/templ"
)

// document is a mail that is being written, its text part and its HTML part at once, so that who
// reads the one misses nothing that the other says.
type document struct {
	Lender  Lender
	Subject string
	// Preview is what lists of mails show after the subject.
	Preview string
	// Why tells the reader why they received this.
	Why string
	// Signature ends the text part.
	Signature string

	text  textBuilder
	parts []templ.Component
}

// add appends a part, parted from the one before as words are.
func (d *document) add(part templ.Component) {
	if len(d.parts) > 0 {
		d.parts = append(d.parts, templ.Raw(" "))
	}
	d.parts = append(d.parts, part)
}

// heading is the first line of a mail. Every second of the words is foreign and set apart.
func (d *document) heading(words ...string) {
	d.text.paragraph(strings.Join(words, ""))
	d.add(heading(words))
}

// paragraph is a paragraph of running text. Every second of the words is foreign and set apart.
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

// callout sets off the one thing that the mail is about, in the text part by a mark before it.
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

// action is the button of a mail, for an address that is known.
func (d *document) action(label, address string) {
	if address != "" {
		d.text.paragraph(label + ": " + address)
		d.add(action(newPalette(d.Lender), label, address))
	}
}
