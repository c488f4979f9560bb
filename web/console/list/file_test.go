package list

import (
	"encoding/csv"
	"regexp"
	"strings"
	"testing"
)

func TestInert(t *testing.T) {
	t.Parallel()
	tests := []struct{ cell, want string }{
		{"", ""},
		{"Sunvolt Energy", "Sunvolt Energy"},
		{"https://hooks.example/a=b", "https://hooks.example/a=b"},
		{"1250.00", "1250.00"},
		{"-3", "-3"},
		{"=1+1", "'=1+1"},
		{`=HYPERLINK("https://evil.example")`, `'=HYPERLINK("https://evil.example")`},
		{"+1 602 555 0100", "'+1 602 555 0100"},
		{"-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"},
		{"@SUM(A1)", "'@SUM(A1)"},
		{"\t=1", "'\t'=1"},
		{"\r=1", "'\r'=1"},
		{"a;=1", "a;'=1"},
		{"a; \"-1", "a;' \"-1"},
		{"=1;+1\t@x", "'=1;'+1\t'@x"},
		{"note\n=1", "note\n'=1"},
		{"a;b\tc", "a;b\tc"},
		{" \u00A0=1", "' \u00A0=1"},
		{"\n=1", "'\n'=1"},
		{`"=1`, `'"=1`},
		{"＝1", "'＝1"},
		{"a\x00b", "ab"},
		{"\x00=1", "'=1"},
		{"\xff", "\uFFFD"},
	}
	for _, test := range tests {
		if got := inert(test.cell); got != test.want {
			t.Errorf("inert(%q) = %q, want %q", test.cell, got, test.want)
		}
	}
}

// Whatever a partner sends, no cell of a file begins like a formula, and the
// file reads back as the cells that were written.
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
		if !plainNumber.MatchString(got) && got != "" && strings.ContainsAny(got[:1], "=+-@\t\r") {
			t.Errorf("%q stays a formula: %q", cell, got)
		}
	})
}
