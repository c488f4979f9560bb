package views_test

import (
	"strings"
	"testing"

	"drawbridge/views/applications"
)

// Columns give way on narrow screens; the row's first cell says the same.
func TestAProductTellsItsTermsInOneCell(t *testing.T) {
	t.Parallel()
	page := render(t, applications.ProductListPage(applications.ProductList{
		Frame: sampleFrame("Sunvolt"),
		Rows: []applications.ProductRow{{
			UID: sampleUID, Code: "ROOF-3", Name: "Roof", Term: "120", Rate: "7.99", Fee: "3.75",
			Schedule: "33.33,33.33,33.34", Min: "5,000.00", Max: "150,000.00", Active: true,
		}},
	}))
	got := strings.ReplaceAll(page.Find("tbody th .table-sub").Text(), "\u00a0", " ")
	want := "On offer · 120 months · 7.99 % · fee 3.75 % · stages 33.33 / 33.33 / 33.34 %" +
		"Lends 5,000.00 to 150,000.00"
	if got != want {
		t.Errorf("the cell says %q, want %q", got, want)
	}
}
