package docs

import (
	"strings"

	"drawbridge/views/docsview"
)

// menu lists the pages in reading order.
var menu = []docsview.Link{
	{Href: Prefix, Label: "Overview"},
	{Href: Prefix + "/quickstart", Label: "Quick start"},
	{Href: Prefix + "/requests", Label: "Requests and answers"},
	{Href: Prefix + "/loans", Label: "Loans and draws"},
	{Href: Prefix + "/webhooks", Label: "Webhooks"},
	{Href: Prefix + "/errors", Label: "Errors"},
	{Href: Prefix + "/going-live", Label: "Going live"},
	{Href: Prefix + "/reference", Label: "Reference"},
}

// frame begins a page. Path is below Prefix, empty for the overview.
func (l *library) frame(path, title, lead string) docsview.Page {
	environment := "development"
	if l.production {
		environment = "production"
	}
	return docsview.Page{
		Title: title, Lead: inline(lead), Current: Prefix + path, Menu: menu,
		Stylesheet: l.assets["docs.css"], Script: l.assets["docs.js"],
		ThemeScript: l.assets["theme.js"],
		Mark:        l.assets["mark.svg"], Environment: environment,
	}
}

// addPages renders every page.
func (l *library) addPages() error {
	for _, add := range []func() error{
		l.addGuides, l.addQuickstart, l.addWebhooks, l.addErrors, l.addReference,
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// addGuides renders the pages that are prose alone.
func (l *library) addGuides() error {
	for _, guide := range []struct{ name, path, title, lead string }{
		{
			"overview", "", "Drawbridge for partners",
			"Lend for projects in stages: apply, accept, draw, and hear about it.",
		},
		{
			"requests", "/requests", "Requests and answers",
			"Credentials, the envelope, retries, limits and versions: what every call shares.",
		},
		{
			"loans", "/loans", "Loans and draws",
			"From an application to the last draw, with the rules that decide each step.",
		},
		{
			"going-live", "/going-live", "Going live",
			"What to settle with the lender and to try before the first real borrower.",
		},
	} {
		blocks, err := l.guide(guide.name)
		if err != nil {
			return err
		}
		frame := l.frame(guide.path, guide.title, guide.lead)
		frame.Contents = contentsOf(blocks)
		if err := l.page(guide.path, docsview.Guide(frame, blocks)); err != nil {
			return err
		}
	}
	return nil
}

// contentsOf lists the headings of the second level.
func contentsOf(blocks []docsview.Block) []docsview.Entry {
	var entries []docsview.Entry
	for _, block := range blocks {
		if block.Kind == docsview.Heading && block.Level == 2 {
			entries = append(entries, docsview.Entry{ID: block.ID, Label: plainText(block.Text)})
		}
	}
	return entries
}

func plainText(text docsview.Text) string {
	var plain strings.Builder
	for _, piece := range text {
		plain.WriteString(piece.Text + plainText(piece.Inner))
	}
	return plain.String()
}

// productionNote is for readers who follow the quick start where it cannot work.
const productionNote = "**This is production**, where the sandbox operations answer 404. Ask the " +
	"lender for the development address and walk through these steps there."

func (l *library) addQuickstart() error {
	steps, err := quickstartView(l.doc.base)
	if err != nil {
		return err
	}
	intro, err := l.guide("quickstart")
	if err != nil {
		return err
	}
	if l.production {
		intro = append(prose(productionNote), intro...)
	}
	frame := l.frame("/quickstart", "Quick start",
		"A whole loan in the sandbox, from the application to the last draw, with curl.")
	for _, step := range steps {
		frame.Contents = append(frame.Contents, docsview.Entry{ID: step.ID, Label: step.Title})
	}
	return l.page("/quickstart", docsview.QuickStart(frame, intro, steps))
}

func (l *library) addWebhooks() error {
	props := docsview.WebhooksProps{Headers: l.doc.deliveryHeaders()}
	var err error
	if props.Prose, err = l.guide("webhooks"); err != nil {
		return err
	}
	if props.Events, err = l.doc.events(); err != nil {
		return err
	}
	if props.Samples, err = sampleListings(); err != nil {
		return err
	}
	if props.Vectors, err = vectorRows(); err != nil {
		return err
	}
	props.VectorsHref = Prefix + "/samples/vectors.json"
	props.Page = l.frame("/webhooks", "Webhooks",
		"Nine kinds of events, signed, delivered at least once, in at most three attempts.")
	props.Page.Contents = contentsOf(props.Prose)
	return l.page("/webhooks", docsview.Webhooks(props))
}

func (l *library) addErrors() error {
	intro, err := l.guide("errors")
	if err != nil {
		return err
	}
	rows := l.doc.allErrors()
	frame := l.frame("/errors", "Errors", "Every error code, what causes it and what cures it.")
	for _, row := range rows {
		frame.Contents = append(frame.Contents, docsview.Entry{ID: row.Code, Label: row.Code})
	}
	return l.page("/errors", docsview.Errors(frame, intro, rows))
}

func (l *library) addReference() error {
	intro, err := l.guide("reference")
	if err != nil {
		return err
	}
	sections, err := l.doc.sections()
	if err != nil {
		return err
	}
	props := docsview.ReferenceProps{
		Page: l.frame("/reference", "Reference",
			"Every operation, its fields, examples that can be sent, and its errors."),
		Prose: intro, Sections: sections,
		Common: l.doc.errorRows(commonErrors), Writing: l.doc.errorRows(writingErrors),
	}
	for _, section := range sections {
		props.Page.Contents = append(props.Page.Contents,
			docsview.Entry{ID: section.ID, Label: section.Title})
		for _, op := range section.Operations {
			props.Page.Contents = append(props.Page.Contents, docsview.Entry{
				ID: op.ID, Label: op.Summary, Method: op.Method, Level: 1,
			})
		}
	}
	return l.page("/reference", docsview.Reference(props))
}
