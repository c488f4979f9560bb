package sheet_test

import (
	"testing"

	"drawbridge/internal/sheet"
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
		if got := sheet.Inert(test.cell); got != test.want {
			t.Errorf("sheet.Inert(%q) = %q, want %q", test.cell, got, test.want)
		}
	}
}
