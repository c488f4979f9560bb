package views_test

import (
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/views/applications"
	"drawbridge/views/ui"
)

// Columns are hidden on narrow screens, so the row's first cell contains the terms too.
func TestAProductTellsItsTermsInItsRow(t *testing.T) {
	t.Parallel()
	percent := func(text string) lending.Percent {
		parsed, err := lending.ParsePercent(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	schedule, err := lending.ParseSchedule("33.33,33.33,33.34")
	if err != nil {
		t.Fatal(err)
	}
	page := render(t, ui.Table(applications.ProductTable([]catalog.Product{{
		Active: true,
		Product: lending.Product{
			UID: sampleUID, Code: "ROOF-3", Name: "Roof", Term: "120", InterestRate: percent("7.99"),
			MerchantFeePercentage: percent("3.75"), Schedule: schedule,
			Min: lending.Cents(500000), Max: lending.Cents(15000000),
		},
	}}, false)))
	got := strings.ReplaceAll(strings.Join(page.Find("tbody tr > *").Map(
		func(_ int, cell *goquery.Selection) string { return text(cell) }), " "), "\u00a0", " ")
	want := "On offer ROOF-3 Roof schedule 33.33 / 33.33 / 33.34 % lends 5,000.00 to 150,000.00 " +
		"months 120 rate 7.99 % fee 3.75 %"
	if got != want {
		t.Errorf("the row says %q, want %q", got, want)
	}
}
