package mail

import (
	"fmt"
	"math"
	"strconv"
)

// The background colours of text.
const (
	lightCard = "#ffffff"
	darkCard  = "#1d2127"
)

// readable is the minimum contrast between text and background (WCAG 2.2, 1.4.3).
const readable = 4.5

// palette is derived from the lender's two colours so that all text stays readable,
// whatever they are.
type palette struct {
	// Head is the background of the header and OnHead its text.
	Head, OnHead string
	// Accent is the background of buttons and OnAccent their text.
	Accent, OnAccent string
	// Link and DarkLink are the accent as a text colour, light and dark.
	Link, DarkLink string
}

func newPalette(lender Lender) palette {
	head := parseColor(lender.PrimaryColor, rgb{0x1d, 0x3f, 0x72})
	accent := parseColor(lender.AccentColor, rgb{0xb8, 0x4f, 0x14})
	return palette{
		Head: head.String(), OnHead: head.foreground().String(),
		Accent: accent.String(), OnAccent: accent.foreground().String(),
		Link:     accent.towards(black, parseColor(lightCard, white)).String(),
		DarkLink: accent.towards(white, parseColor(darkCard, black)).String(),
	}
}

type rgb struct{ R, G, B uint8 }

var (
	black = rgb{0, 0, 0}
	white = rgb{255, 255, 255}
)

// parseColor parses "#rrggbb". Nothing else may get into a style sheet, so any other text
// yields otherwise.
func parseColor(text string, otherwise rgb) rgb {
	if len(text) != 7 || text[0] != '#' {
		return otherwise
	}
	value, err := strconv.ParseUint(text[1:], 16, 24)
	if err != nil {
		return otherwise
	}
	return rgb{uint8(value >> 16), uint8(value >> 8 & 0xff), uint8(value & 0xff)}
}

// String returns "#rrggbb".
func (c rgb) String() string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// luminance is the relative luminance that WCAG defines, from 0 to 1.
func (c rgb) luminance() float64 {
	linear := func(part uint8) float64 {
		v := float64(part) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// contrast is the contrast ratio, from 1 to 21.
func contrast(a, b rgb) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// foreground returns white if it is readable on c, as people expect of a button, otherwise
// black: one of the two always is.
func (c rgb) foreground() rgb {
	if contrast(white, c) >= readable {
		return white
	}
	return black
}

// towards mixes c with as little of end as makes it readable on ground.
func (c rgb) towards(end, ground rgb) rgb {
	const steps = 20
	for i := range steps {
		share := float64(i) / steps
		part := func(from, to uint8) uint8 {
			return uint8(math.Round(float64(from)*(1-share) + float64(to)*share))
		}
		mixed := rgb{part(c.R, end.R), part(c.G, end.G), part(c.B, end.B)}
		if contrast(mixed, ground) >= readable {
			return mixed
		}
	}
	return end
}
