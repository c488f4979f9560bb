package ui

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"drawbridge/internal/lending"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "Zoë's Solar", "Zoë's Solar"},
		{"line breaks and tabs stay", "a\r\nb\tc\n", "a\nb\tc\n"},
		{"controls", "a\x00b\x1bc\x7f", "a␀b␛c␡"},
		{"reordering", "invoice\u202Efdp.exe", "invoice⟨U+202E⟩fdp.exe"},
		{"hidden", "pay\u200Bpal\uFEFF", "pay⟨U+200B⟩pal⟨U+FEFF⟩"},
		{
			"joiners of scripts and emoji", "\u0645\u06CC\u200C\u062E 👩\u200D👧",
			"\u0645\u06CC\u200C\u062E 👩\u200D👧",
		},
		{"accents", "e\u0301\u0323", "e\u0301\u0323"},
		{
			"marks that pile up", "a" + strings.Repeat("\u0301", 10) + "b",
			"a" + strings.Repeat("\u0301", 8) + "⟨U+0301⟩⟨U+0301⟩b",
		},
		{"invalid bytes", "a\xff\xfeb", "a\uFFFDb"},
	}
	for _, test := range tests {
		if got := Visible(test.in); got != test.want {
			t.Errorf("%s: Visible(%q) = %q, want %q", test.name, test.in, got, test.want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, seed := range []string{
		"<script>planted()</script>", "<scr\x00ipt>planted()</scr\x00ipt>", "planted\u202Egnp.exe",
		"planted\xff\xfe<script>planted()</script>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out := Visible(in)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, isHidden) {
			t.Errorf("Visible(%q) = %q still hides something", in, out)
		}
		if again := Visible(out); again != out {
			t.Errorf("Visible is not stable: %q, then %q", out, again)
		}
	})
}

// FuzzPrettyJSON checks that formatting changes nothing but white space.
func FuzzPrettyJSON(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `{"a":[1,-2.50,1e9,true,false,null,"x\"y\\"],"b":{"":""}}`, ` [ "a:b" , {"c":"}"} ]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		tokens, ok := prettyJSON(in)
		if !ok {
			return
		}
		var joined strings.Builder
		for _, piece := range tokens {
			if piece.text == "" {
				t.Fatal("an empty token")
			}
			joined.WriteString(piece.text)
		}
		if !json.Valid([]byte(joined.String())) || compact(t, joined.String()) != compact(t, in) {
			t.Errorf("%q became %q", in, joined.String())
		}
	})
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	inString, escaped := false, false
	for _, r := range text {
		if !inString && strings.ContainsRune(" \t\r\n", r) {
			continue
		}
		inString = inString != (r == '"' && !escaped)
		escaped = r == '\\' && !escaped
		out.WriteRune(r)
	}
	return out.String()
}

func TestTokenClasses(t *testing.T) {
	t.Parallel()
	tokens, ok := prettyJSON(`{"a":"b:","c":[-1.5,true,null]}`)
	if !ok {
		t.Fatal("not taken for JSON")
	}
	var got []string
	for _, piece := range tokens {
		if piece.class != "" {
			got = append(got, strings.TrimPrefix(piece.class, "j-")+" "+piece.text)
		}
	}
	want := `key "a",str "b:",key "c",num -1.5,lit true,lit null`
	if joined := strings.Join(got, ","); joined != want {
		t.Errorf("tokens %s, want %s", joined, want)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   time.Duration
		want string
	}{
		{0, "0 µs"},
		{840 * time.Microsecond, "840 µs"},
		{1960 * time.Microsecond, "2 ms"},
		{4240 * time.Microsecond, "4.2 ms"},
		{9960 * time.Microsecond, "10 ms"},
		{42 * time.Millisecond, "42 ms"},
		{1340 * time.Millisecond, "1.3 s"},
		{30 * time.Second, "30 s"},
		{time.Minute, "1 min"},
		{185 * time.Second, "3 min 5 s"},
		{2 * time.Hour, "2 h"},
		{26*time.Hour + 10*time.Minute, "26 h 10 min"},
		{75 * time.Hour, "3 d 3 h"},
		{999_900 * time.Microsecond, "1.0 s"},
		{9990 * time.Millisecond, "10 s"},
		{59_800 * time.Millisecond, "1 min"},
		{time.Hour - time.Millisecond, "1 h"},
		{48*time.Hour - time.Second, "2 d"},
	}
	for _, test := range tests {
		if got := Duration(test.in); got != test.want {
			t.Errorf("Duration(%v) = %q, want %q", test.in, got, test.want)
		}
	}
}

func TestHeadersInASentenceStayWhole(t *testing.T) {
	t.Parallel()
	var got []string
	for _, part := range splitHeaders("In x-hmac-signature, not x-drawbridge-. An ox-cart, x.") {
		if part.header {
			got = append(got, part.text)
		}
	}
	if want := []string{"x-hmac-signature", "x-drawbridge-"}; !slices.Equal(got, want) {
		t.Errorf("headers %q, want %q", got, want)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for in, want := range map[int]string{
		0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567",
		-4200: "-4,200",
	} {
		if got := Number(in); got != want {
			t.Errorf("Number(%d) = %q, want %q", in, got, want)
		}
	}
}

func TestClipKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	body := []byte(strings.Repeat("x", maxVisible-1) + "€uro")
	text, clipped := clip(body)
	if !clipped || text != strings.Repeat("x", maxVisible-1) {
		t.Errorf("clip cut through a character: ends in %q", text[len(text)-3:])
	}
}

func TestInitials(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Sam Ortega": "SO", "Élodie": "É",
		"anna maria lopez": "AM", "": "",
	} {
		if got := initials(in); got != want {
			t.Errorf("initials of %q = %q, want %q", in, got, want)
		}
	}
}

// TestBreakingKeepsTheText copies what a reader would from a name that may break.
func TestBreakingKeepsTheText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"POST /api/v2/loan/8b44/request-draw", "DRAWBRIDGE_TLS_CERT", "127.0.0.1:0",
		"admin@drawbridge.example", "disbursement.funding.status-changed", "",
	} {
		var page strings.Builder
		if err := Breaking(name).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(page.String(), "<wbr>", ""); got != name {
			t.Errorf("it shows %q as %q", name, got)
		}
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	euros := WithCurrency(t.Context(), "EUR")
	if got := Amount(euros, lending.Cents(-123_456)); got != "EUR\u00a0-1,234.56" {
		t.Errorf("in euros it is %q", got)
	}
	for cents, want := range map[int64]string{
		0: "0.00", 99_999: "999.99", 100_000: "1,000.00", -123_456_789: "-1,234,567.89",
		-99_900: "-999.00",
	} {
		if got := Amount(t.Context(), lending.Cents(cents)); got != want {
			t.Errorf("%d cents are %q, want %q", cents, got, want)
		}
	}
}
