package list

import (
	"encoding/csv"
	"regexp"
	"strings"
	"testing"
)

// Whatever a partner sends, no cell of a file starts like a formula, and parsing the file
// returns the cells that were written.
func FuzzInert(f *testing.F) {
	for _, seed := range []string{"=1", "a,b", "\"x\"\r\n=1", "-1", "＋1", "\uFEFF=1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		var text strings.Builder
		if err := writeBatch(csv.NewWriter(&text), [][]string{{"x", cell, "y"}}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
		if err != nil || len(rows) != 1 || len(rows[0]) != 3 {
			t.Fatalf("%q is written as %q: %v", cell, text.String(), err)
		}
		got := strings.TrimLeft(rows[0][1], " \u00A0\u3000\uFEFF")
		for _, piece := range regexp.MustCompile(`[;\t\r\n]`).Split(rows[0][1], -1)[1:] {
			piece = strings.TrimLeft(piece, " \u00A0\u3000\uFEFF\"")
			if piece != "" && strings.ContainsAny(piece[:1], "=+-@") {
				t.Errorf("%q has a formula behind a separator: %q", cell, piece)
			}
		}
		number := regexp.MustCompile(`^[+-]?\d+(\.\d+)?$`)
		if !number.MatchString(got) && got != "" && strings.ContainsAny(got[:1], "=+-@\t\r") {
			t.Errorf("%q stays a formula: %q", cell, got)
		}
	})
}
