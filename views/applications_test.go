package views

import (
	"bytes"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"drawbridge/internal/lending"
)

// sampleApplicationPage is a page with everything on it, a word everywhere.
func sampleApplicationPage(word string) ApplicationPage {
	chip := DeliveryChip(StateFailed)
	return ApplicationPage{
		Frame: sampleFrame(word), Row: sampleApplicationRow(word), Source: word,
		Communications: word, Document: word, Updated: sampleTime, Phone: word, Income: word,
		Project: word, Description: word, Address: word, Decided: true,
		Offers: []OfferView{{ProductUID: sampleUID, Code: word, Name: word, Selected: true}},
		Loan: &LoanView{
			Product: word, Amount: "9.00", Original: "10.00", State: word,
			Stages: []StageView{{Number: 1, Percent: "100", Scheduled: "9.00"}},
			Draws: []DrawView{{
				ID: 1001, Number: 1, Stage: 1, Kind: "final", Status: word, Requested: sampleTime,
				Settled: sampleTime,
			}},
		},
		Certificates: []CertificateView{{
			UID: sampleUID, Created: sampleTime, Draw: 1, Metadata: []byte(`{"note":"` + word + `"}`),
			Files: []FileView{{UID: sampleUID, Name: word, Type: "image/png", Size: 3 << 20}},
		}},
		Tasks: []TaskView{{UID: sampleUID, Title: word, Status: word, Created: sampleTime}},
		Kinds: []Tab{{Label: "All", Href: PathApplications, Current: true}},
		Moments: []MomentView{
			{
				ID: "a", At: sampleTime, Icon: "send", Tone: Bad, Title: word, Href: PathDeliveries,
				Chip: &chip, Tag: "re-send", Text: word,
			},
			{ID: "b", At: sampleTime, Icon: "zap", Tone: Calm, Title: word},
		},
		Newest: PathApplications, Older: PathApplications,
		Actions: []ActionGroup{{Title: word, Actions: []ActionLink{{
			Label: word, Href: PathApplications, Note: word, Move: word,
		}}}},
	}
}

func sampleApplicationRow(word string) ApplicationRow {
	return ApplicationRow{
		UID: sampleApplication, Status: word, Borrower: word, Email: word, Reference: word,
		Partner: word, Merchant: word, Requested: "10.00", Created: sampleTime,
	}
}

// applicationPages renders each page about applications with the word in it.
func applicationPages(t *testing.T, word string) map[string]*goquery.Document {
	t.Helper()
	list := ApplicationList{
		Frame: sampleFrame(word), Rows: []ApplicationRow{sampleApplicationRow(word)},
		Filter:  ApplicationFilter{Search: word},
		Tabs:    []Tab{{Label: "All", Href: PathApplications, Current: true}},
		Active:  []ActiveFilter{{Label: word, Href: PathApplications}},
		Summary: "1 application", Newest: PathApplications, Older: PathApplications,
		Partners: []Option{{Label: word}}, Merchants: []Option{{Label: word}},
	}
	empty, faulty := list, list
	empty.Rows = nil
	faulty.Filter.Faults = map[string]string{"q": "It is too long.", "cursor": "It cannot be read."}
	bare := ApplicationPage{Frame: sampleFrame(word), Row: sampleApplicationRow(word)}
	pages := map[string]*goquery.Document{}
	for name, component := range map[string]templ.Component{
		"list": ApplicationListPage(list), "no match": ApplicationListPage(empty),
		"faults": ApplicationListPage(faulty), "bare": ApplicationDetailPage(bare),
		"page": ApplicationDetailPage(sampleApplicationPage(word)),
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

func TestAmount(t *testing.T) {
	t.Parallel()
	for cents, want := range map[int64]string{
		0: "0.00", 99_999: "999.99", 100_000: "1,000.00", -123_456_789: "-1,234,567.89",
		-99_900: "-999.00",
	} {
		if got := Amount(lending.Cents(cents)); got != want {
			t.Errorf("%d cents are %q, want %q", cents, got, want)
		}
	}
}

func TestLendingChips(t *testing.T) {
	t.Parallel()
	for _, status := range lending.AllApplicationStatuses() {
		if chip := ApplicationChip(string(status)); chip.Icon == "circle-help" {
			t.Errorf("status %q has no chip of its own", status)
		}
	}
	for _, status := range lending.AllFundingStatuses() {
		if chip := FundingChip(string(status)); chip.Icon == "circle-help" {
			t.Errorf("funding status %q has no chip of its own", status)
		}
	}
	for _, status := range lending.AllTaskStatuses() {
		if chip := TaskChip(string(status)); chip.Icon == "circle-help" {
			t.Errorf("task status %q has no chip of its own", status)
		}
	}
}
