package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
)

// sampleResult has one series that is flat and one that is not.
func sampleResult() *result {
	flat := over(bound{Share: .1}, func(float64) float64 { return 100 })
	leak := over(bound{Share: .1}, func(at float64) float64 { return at })
	flat.Name, flat.Unit, leak.Name = "goroutines", "", `<memory & "more">`
	flat.judge()
	leak.judge()
	return &result{
		At: time.Now(), Minutes: 10, Machine: "a machine", Peak: 100, Offered: 60, Calls: 36_000,
		Series: []series{*flat, *leak},
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "soak.html")
	r := sampleResult()
	r.Failures = map[string]int{"<draw>: refused": 3}
	if err := writeReport(path, r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page, err := goquery.NewDocumentFromReader(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if outside := page.Find("[src], [href], link, script, iframe").Length(); outside > 0 {
		t.Errorf("the page leads elsewhere %d times", outside)
	}
	figures := page.Find("figure")
	if figures.Length() != 2 || figures.Find("svg polyline").Length() != 4 {
		t.Errorf("%d figures with %d lines", figures.Length(), figures.Find("svg polyline").Length())
	}
	if rows := figures.First().Find("tbody tr").Length(); rows < 2 || rows > mostRows {
		t.Errorf("the table behind a plot has %d rows", rows)
	}
	if got := page.Find("figure .bad").Text(); got != "not flat" {
		t.Errorf("the leak reads %q", got)
	}
	if got := page.Find("h1 + p").Text(); !strings.HasPrefix(got, "Not flat.") {
		t.Errorf("the page begins with %q", got)
	}
	if !strings.Contains(page.Find("main").Text(), `<memory & "more">`) ||
		!strings.Contains(page.Find("main").Text(), "<draw>: refused") {
		t.Error("names were not kept as they are")
	}
}

func TestResultIsFlat(t *testing.T) {
	t.Parallel()
	r := sampleResult()
	if r.flat() {
		t.Error("a leak is flat")
	}
	r.Series = r.Series[:1]
	if !r.flat() {
		t.Error("a constant is not flat")
	}
	r.Failures = map[string]int{"draw: refused": 1}
	if r.flat() {
		t.Error("a failed call is flat")
	}
}

func TestTableAndDocument(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		var out strings.Builder
		if err := sampleResult().print(&out, asJSON); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"goroutines", "flat"} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("JSON %t: no %q in %s", asJSON, text, out.String())
			}
		}
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-minutes", "0"}, {"-share", "1.5"}, {"-every", "0s"}, {"-what"}, {"more"},
	} {
		var errs strings.Builder
		if err := command(t.Context(), args, &errs, &errs); !errors.Is(err, errUsage) {
			t.Errorf("%v ends with %v", args, err)
		}
		if exitStatus(errUsage) != 2 || exitStatus(errNotFlat) != 1 || exitStatus(nil) != 0 {
			t.Error("the exit statuses are wrong")
		}
	}
}

func TestMixAddsUp(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for range 5000 {
		seen[pick().name]++
	}
	for _, one := range mix {
		if share := float64(seen[one.name]) / 5000 * 100; share < float64(one.weight)/2 {
			t.Errorf("%s comes in %.1f%% of the cases, want %d%%", one.name, share, one.weight)
		}
	}
}
