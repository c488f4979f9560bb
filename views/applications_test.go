package views_test

import (
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"
	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/retention"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/applications"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// sampleApplicationPage returns a page with everything on it and the word in every text.
func sampleApplicationPage(word string) applications.Page {
	chip, amount := ui.DeliveryChip(delivery.StateFailed), lending.Cents(900)
	return applications.Page{
		Summary:   sampleApplicationSummary(word),
		LegalHold: &retention.LegalHold{PlacedBy: word, Reason: word},
		Application: application.Application{
			Communications: lending.Communications(word), Document: lending.DocumentStatus(word),
			UpdatedAt: sampleTime, ExternalReference: &word, Decided: true,
			Borrower: application.Borrower{Phone: &word, AnnualIncome: &amount},
			Project:  application.Project{Name: word, Description: &word, Address: &word},
			Offers: []lending.Offer{
				{ProductUID: sampleUID, ProductCode: word, ProductName: word, Term: word},
			},
		},
		Loan: &loan.Loan{
			Loan: lending.Loan{
				OriginalAmount: lending.Cents(1000),
				Stages:         []lending.Stage{{Number: 1, Scheduled: amount}},
				Disbursements: []lending.Disbursement{
					{Gross: amount, UpdatedLoanAmount: &amount},
				},
			},
			ProductCode: word, History: []loan.Disbursement{{
				Disbursement: lending.Disbursement{
					ID: 1001, Number: 1, Stage: 1, Kind: lending.DrawKind(word),
					Status: lending.FundingStatus(word), Gross: amount,
				},
				RequestedAt: sampleTime, SettledAt: &sampleTime,
			}},
		},
		Certificates: []loan.StoredCertificate{{
			CreatedAt: sampleTime, DisbursementNumber: 1, Metadata: []byte(`{"note":"` + word + `"}`),
			Files: []document.File{{Name: word, ContentType: "image/png", Size: 3 << 20, SHA256: word}},
		}},
		Tasks: []application.TaskEntry{{
			Task:      application.Task{Title: word, Status: lending.TaskStatus(word)},
			CreatedAt: sampleTime,
		}},
		Timeline: applications.Timeline{
			Kinds: []ui.Tab{{Label: "All", Href: paths.Applications, Current: true}},
			Entries: []applications.Entry{
				{
					ID: "a", At: sampleTime, Icon: "send", Tone: ui.Bad, Title: word, Href: paths.Deliveries,
					Chip: &chip, Tag: "re-send", Text: word,
				},
				{ID: "b", At: sampleTime, Icon: "zap", Tone: ui.Calm, Title: word},
			},
			Newest: paths.Applications, Older: paths.Applications,
		},
		Actions: []applications.ActionGroup{{Title: word, Actions: []applications.Action{{
			Label: word, Href: paths.Applications, Note: word, Move: word,
		}}}},
	}
}

func sampleApplicationSummary(word string) application.Summary {
	return application.Summary{
		UID: uuid.MustParse(sampleApplication), Status: lending.ApplicationStatus(word),
		FirstName: word, LastName: word, Email: word, Reference: &word, PartnerName: word,
		MerchantName: word, RequestedAmount: lending.Cents(1000), CreatedAt: sampleTime,
	}
}

// applicationPages renders each page about applications with the word in it.
func applicationPages(t *testing.T, word string) map[string]*goquery.Document {
	t.Helper()
	list := ui.ListProps{
		Path: paths.Applications, Buttons: applications.New(),
		Tabs:   []ui.Tab{{Label: "All", Href: paths.Applications, Current: true}},
		Active: []ui.ActiveFilter{{Label: word, Href: paths.Applications}},
		Fields: []ui.Control{{
			ID: "filter-partner", Name: "partner", Label: "Partner", Value: word,
			Options: []ui.Option{{Label: word}},
		}},
		Region: ui.ListRegion{
			Path: paths.Applications, Rows: 1, Summary: "1 application",
			Newest: paths.Applications, Older: paths.Applications,
			Table: ui.Table(ui.ApplicationTable([]application.Summary{sampleApplicationSummary(word)})),
		},
	}
	empty, wrong := list, list
	empty.Region = ui.ListRegion{Empty: ui.EmptyProps{Icon: "search-x", Title: word}}
	wrong.Region.Wrong = []ui.FieldError{
		{Href: "#filter-partner", Text: "It is too long."}, {Text: "It cannot be read."},
	}
	frame, pages := sampleFrame(word), map[string]*goquery.Document{}
	frame.May = func(string) bool { return true }
	for name, component := range map[string]templ.Component{
		"list":     ui.List(list),
		"no match": ui.List(empty),
		"faults":   ui.List(wrong),
		"bare":     applications.Detail(applications.Page{Summary: sampleApplicationSummary(word)}),
		"page":     applications.Detail(sampleApplicationPage(word)),
	} {
		pages[name] = render(t, ui.Framed(frame, component))
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
