package docs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"

	docsview "drawbridge/views/docs"
)

// pageSpec is one page of the documentation: its menu entry, its head, and how it is
// rendered from its guide.
type pageSpec struct {
	docsview.Link

	guide, title, lead string
	render             renderer
}

type renderer func(l *library, frame docsview.Page, prose string) (templ.Component, error)

// newPage returns the page at a path of the documentation; the path is also the name of its
// guide. The title defaults to the label.
func newPage(path, label, title, lead string, render renderer) pageSpec {
	guide := strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-")
	return pageSpec{
		docsview.Link{Href: Prefix + path, Label: label},
		cmp.Or(guide, "overview"), cmp.Or(title, label), lead, render,
	}
}

// pages are all pages in reading order. Their guides are Markdown in guides/.
var pages = []pageSpec{
	newPage("", "Overview", "Drawbridge for partners",
		"Lend for projects in stages: apply, accept, draw, and be notified.", guidePage),
	newPage("/quickstart", "Quick start", "",
		"A whole loan in the sandbox, from the application to the last draw, with curl.",
		quickStartPage),
	newPage("/requests", "Requests and responses", "",
		"Credentials, the envelope, retries, limits and versions: what all requests share.",
		guidePage),
	newPage("/loans", "Loans and draws", "",
		"From an application to the last draw, with the rules that decide each step.", guidePage),
	newPage("/webhooks", "Webhooks", "",
		"Eleven kinds of events, signed, delivered at least once, in at most three attempts.",
		webhooksPage),
	newPage("/catch-up", "Catch up after an outage", "",
		"Every event is kept: follow the feed, close gaps, and recover lost responses.",
		catchUpPage),
	newPage("/laptop", "Receive on your laptop", "",
		"Have events posted to your own machine, which webhooks cannot reach.", guidePage),
	newPage("/statements", "Daily statements", "",
		"Signed statements of your money on each business day, to compare with your books.",
		guidePage),
	newPage("/errors", "Errors", "",
		"Every error code, its cause and what to do about it.", errorsPage),
	newPage("/going-live", "Going live", "",
		"What to agree with the lender and to try before your first real borrower.", guidePage),
	newPage("/changes", "Changes", "Changes of the API",
		"What was added and when, what will end, and how much notice you get.", guidePage),
	newPage("/reference", "Reference", "",
		"Every operation, with its fields, examples that you can send, and its errors.", referencePage),
}

// lenderPages are the pages for the lender's own systems, which partners do not need.
var lenderPages = []pageSpec{
	newPage("/lender", "Lender API", "Drawbridge for the lender's systems",
		"Follow applications, decide them, and report that money moved.", guidePage),
	newPage("/lender/reference", "Reference", "Lender API reference",
		"Every operation, with its fields, examples that you can send, and its errors.", referencePage),
}

// lenderPrefix is their path.
const lenderPrefix = Prefix + "/lender"

// addPages renders the pages, each in a menu with the others.
func (l *library) addPages(pages []pageSpec) error {
	words := strings.NewReplacer(slices.Concat(l.options.Webhooks.words(),
		environmentWords[l.options.Environment], []string{
			ExampleBaseURL, l.doc.base, "`" + ExampleCurrency + "`", "`" + l.options.Currency + "`",
		})...)
	for _, page := range pages {
		guide, err := content.ReadFile("guides/" + page.guide + ".md")
		if err != nil {
			return fmt.Errorf("reading the guide %s: %w", page.guide, err)
		}
		prose := words.Replace(string(guide))
		frame := l.frame(page, pages)
		frame.Contents = docsview.Contents(prose)
		component, err := page.render(l, frame, prose)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := component.Render(context.Background(), &out); err != nil {
			return fmt.Errorf("rendering %s: %w", page.Href, err)
		}
		l.add(strings.TrimPrefix(page.Href, Prefix), "text/html; charset=utf-8", out.Bytes())
		if err := l.readings(page, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// frame returns the frame of a page with the menu.
func (l *library) frame(page pageSpec, menu []pageSpec) docsview.Page {
	frame := docsview.Page{
		Title: page.title, Lead: page.lead, Current: page.Href,
		Assets: l.assets, Environment: l.options.Environment,
		Lender: menu[0].Href == lenderPrefix,
	}
	for _, other := range menu {
		frame.Menu = append(frame.Menu, other.Link)
	}
	return frame
}

// environmentWords maps sentences of the guides that are not true in an environment to
// their replacements, as pairs: production is no place to try things, and the commands
// contain its address.
var environmentWords = map[string][]string{
	development: {
		sandboxMail, "No money moves. If this server has a mail server, the borrower is mailed " +
			"for real: use an address of your own.",
	},
	production: {
		sandboxMail, isProduction + "follow these steps there.",
		trySection, trySection + "\n" + isProduction + "try these there.\n",
	},
}

const (
	sandboxMail  = "Everything happens in the sandbox: no borrower is mailed and no money moves."
	trySection   = "## Try in the sandbox\n"
	isProduction = "**This is production**, where the sandbox operations answer 404 and borrowers " +
		"are mailed for real. Ask the lender for the sandbox address and "
)

// guidePage is a page of prose only.
func guidePage(_ *library, frame docsview.Page, prose string) (templ.Component, error) {
	return docsview.Guide(frame, prose), nil
}

func quickStartPage(l *library, frame docsview.Page, prose string) (templ.Component, error) {
	steps, err := QuickStart(l.doc.base)
	for _, step := range steps {
		frame.Contents = append(frame.Contents, docsview.Entry{ID: step.ID, Label: step.Title})
	}
	return docsview.QuickStart(frame, prose, steps), err
}

// catchUpPage shows complete programs that follow the feed.
func catchUpPage(_ *library, frame docsview.Page, prose string) (templ.Component, error) {
	programs, err := read(consumers)
	return docsview.Webhooks(docsview.WebhooksProps{
		Page: frame, Prose: prose, Samples: programs,
	}), err
}

// webhooksPage takes the headers from the first event, because all deliveries have the same ones.
func webhooksPage(l *library, frame docsview.Page, prose string) (templ.Component, error) {
	events, err := l.doc.events()
	if err != nil {
		return nil, err
	}
	programs, err := read(sampleLanguages)
	if err != nil {
		return nil, err
	}
	headers := l.doc.Webhooks[0].Value[0].Value.parameterFields()
	for i := range headers {
		headers[i].Type = strings.TrimSuffix(headers[i].Type, ", header")
	}
	vectors, err := Vectors()
	return docsview.Webhooks(docsview.WebhooksProps{
		Page: frame, Prose: prose, Events: events,
		Headers: docsview.Group{Title: "Headers of a delivery", Fields: headers},
		Samples: programs, Vectors: vectors,
	}), err
}

// errorsPage shows every code with the operations that list it.
func errorsPage(l *library, frame docsview.Page, prose string) (templ.Component, error) {
	entries := slices.Clone(l.doc.Codes)
	for i, entry := range entries {
		frame.Contents = append(frame.Contents, docsview.Entry{ID: entry.Code, Label: entry.Code})
		for _, op := range l.doc.operations {
			if slices.Contains(op.Errors, entry.Code) {
				entries[i].Operations = append(entries[i].Operations, docsview.Link{
					Href: Prefix + "/reference#" + op.ID, Label: op.Summary,
				})
			}
		}
	}
	return docsview.Errors(frame, prose, entries), nil
}

func referencePage(l *library, frame docsview.Page, prose string) (templ.Component, error) {
	sections, err := l.doc.sections()
	for _, section := range sections {
		frame.Contents = append(frame.Contents,
			docsview.Entry{ID: section.ID, Label: section.Title})
		for _, op := range section.Operations {
			frame.Contents = append(frame.Contents,
				docsview.Entry{ID: op.ID, Label: op.Summary, Method: op.Method})
		}
	}
	return docsview.Reference(docsview.ReferenceProps{
		Page: frame, Prose: prose, Sections: sections,
		Common: l.doc.errorCodes(commonErrors), Writing: l.doc.errorCodes(writingErrors),
	}), err
}
