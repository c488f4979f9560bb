package mail

import (
	"testing"

	"pgregory.net/rapid"

	"drawbridge/internal/email"
)

// TestAnyColorsAreReadable tries lenders with random pairs of colours.
func TestAnyColorsAreReadable(t *testing.T) {
	t.Parallel()
	channel := rapid.Uint8()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) string {
			return rgb{
				channel.Draw(t, label+" red"), channel.Draw(t, label+" green"),
				channel.Draw(t, label+" blue"),
			}.String()
		}
		colors := newPalette(Lender{Settings: email.Settings{
			PrimaryColor: draw("primary"), AccentColor: draw("accent"),
		}})
		for _, pair := range []struct{ what, text, ground string }{
			{"head", colors.OnHead, colors.Head},
			{"button", colors.OnAccent, colors.Accent},
			{"link", colors.Link, lightCard},
			{"dark link", colors.DarkLink, darkCard},
		} {
			got := contrast(parseColor(pair.text, black), parseColor(pair.ground, white))
			if got < readable {
				t.Fatalf("%s: %s on %s has a contrast of %.2f",
					pair.what, pair.text, pair.ground, got)
			}
		}
	})
}

func TestParseColor(t *testing.T) {
	t.Parallel()
	other := rgb{1, 2, 3}
	for _, test := range []struct {
		text string
		want rgb
	}{
		{"#000000", black},
		{"#ffffff", white},
		{"#1D3f72", rgb{0x1d, 0x3f, 0x72}},
		{"", other},
		{"#fff", other},
		{"1d3f720", other},
		{"#gggggg", other},
		{"#+12345", other},
		{"#12345;", other},
	} {
		if got := parseColor(test.text, other); got != test.want {
			t.Errorf("%q is %v, want %v", test.text, got, test.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]string{
		"0.00": "0.00", "999.99": "999.99", "1000.00": "1,000.00",
		"24500.00": "24,500.00", "1234567.89": "1,234,567.89", "1200": "1,200",
		"": "", "-5.00": "-5.00", "much": "much",
	} {
		if got := grouped(amount); got != want {
			t.Errorf("%q is %q, want %q", amount, got, want)
		}
	}
}

func TestMoment(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-11-21T09:12:00Z":      "21 November 2026, 09:12 UTC",
		"2026-11-21T09:12:00+02:00": "21 November 2026, 07:12 UTC",
		"yesterday":                 "yesterday",
		"":                          "",
	} {
		if got := moment(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
