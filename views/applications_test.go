package views_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"drawbridge/internal/webhook"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// sampleApplicationPage is a page with everything on it, a word everywhere.
func sampleApplicationPage(word string) applications.ApplicationPage {
	chip := ui.DeliveryChip(webhook.DeliveryFailed)
	return applications.ApplicationPage{
		Frame: sampleFrame(word), Row: sampleApplicationRow(word), Source: word,
		Communications: word, Document: word, Updated: sampleTime, Phone: word, Income: word,
		Project: word, Description: word, Address: word, Decided: true,
		Offers: []applications.OfferView{{ProductUID: sampleUID, Code: word, Name: word, Selected: true}},
		Loan: &applications.LoanView{
			Product: word, Amount: "9.00", Original: "10.00", State: word,
			Stages: []applications.StageView{{Number: 1, Percent: "100", Scheduled: "9.00"}},
			Draws: []applications.DrawView{{
				ID: 1001, Number: 1, Stage: 1, Kind: "final", Status: word, Requested: sampleTime,
				Settled: sampleTime,
			}},
		},
		Certificates: []applications.CertificateView{{
			UID: sampleUID, Created: sampleTime, Draw: 1, Metadata: []byte(`{"note":"` + word + `"}`),
			Files: []applications.FileView{{UID: sampleUID, Name: word, Type: "image/png", Size: 3 << 20}},
		}},
		Tasks: []applications.TaskView{{UID: sampleUID, Title: word, Status: word, Created: sampleTime}},
		Kinds: []ui.Tab{{Label: "All", Href: paths.Applications, Current: true}},
		Moments: []applications.MomentView{
			{
				ID: "a", At: sampleTime, Icon: "send", Tone: ui.Bad, Title: word, Href: paths.Deliveries,
				Chip: &chip, Tag: "re-send", Text: word,
			},
			{ID: "b", At: sampleTime, Icon: "zap", Tone: ui.Calm, Title: word},
		},
		Newest: paths.Applications, Older: paths.Applications,
		Actions: []applications.ActionGroup{{Title: word, Actions: []applications.ActionLink{{
			Label: word, Href: paths.Applications, Note: word, Move: word,
		}}}},
	}
}

func sampleApplicationRow(word string) ui.ApplicationRow {
	return ui.ApplicationRow{
		UID: sampleApplication, Status: word, Borrower: word, Email: word, Reference: word,
		Partner: word, Merchant: word, Requested: "10.00", Created: sampleTime,
	}
}

// applicationPages renders each page about applications with the word in it.
func applicationPages(t *testing.T, word string) map[string]*goquery.Document {
	t.Helper()
	list := applications.ApplicationList{
		Frame: sampleFrame(word), Rows: []ui.ApplicationRow{sampleApplicationRow(word)},
		Filter:  applications.ApplicationFilter{Search: word},
		Tabs:    []ui.Tab{{Label: "All", Href: paths.Applications, Current: true}},
		Active:  []ui.ActiveFilter{{Label: word, Href: paths.Applications}},
		Summary: "1 application", Newest: paths.Applications, Older: paths.Applications,
		Partners: []ui.Option{{Label: word}}, Merchants: []ui.Option{{Label: word}},
	}
	empty, faulty := list, list
	empty.Rows = nil
	faulty.Filter.Faults = map[string]string{"q": "It is too long.", "cursor": "It cannot be read."}
	bare := applications.ApplicationPage{Frame: sampleFrame(word), Row: sampleApplicationRow(word)}
	pages := map[string]*goquery.Document{}
	for name, component := range map[string]templ.Component{
		"list":     applications.ApplicationListPage(list),
		"no match": applications.ApplicationListPage(empty),
		"faults":   applications.ApplicationListPage(faulty),
		"bare":     applications.ApplicationDetailPage(bare),
		"page":     applications.ApplicationDetailPage(sampleApplicationPage(word)),
	} {
		var html bytes.Buffer
		if err := component.Render(t.Context(), &html); err != nil {
			t.Fatal(err)
		}
		page, err := goquery.NewDocumentFromReader(&html)
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = page
	}
	return pages
}

func TestPlantedApplicationIsInert(t *testing.T) {
	t.Parallel()
	for _, payload := range payloads() {
		for name, page := range applicationPages(t, payload) {
			t.Run(name, func(t *testing.T) { checkInert(t, page) })
		}
	}
}

func TestApplicationPagesAreAccessible(t *testing.T) {
	t.Parallel()
	icons := listedIcons(t)
	for name, page := range applicationPages(t, "Sunvolt") {
		t.Run(name, func(t *testing.T) {
			if got := page.Find("h1").Length(); got != 1 {
				t.Errorf("%d first-level headings, want one", got)
			}
			checkIDs(t, page)
			checkTables(t, page)
			checkNames(t, page)
			page.Find("use").Each(func(_ int, use *goquery.Selection) {
				_, icon, _ := strings.Cut(use.AttrOr("href", ""), "#")
				if !icons[icon] {
					t.Errorf("icon %q is not in icons.txt", icon)
				}
			})
		})
	}
}
