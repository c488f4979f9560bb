//go:build walks

package console

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"drawbridge/cmd/e2e/e2etest"
)

// The window size of the README's pictures, and the largest size of one, in bytes.
const galleryWidth, galleryHeight, mostPicture = 1440, 960, 118_000

// connected waits until a live page says that it is live.
const connected = `(async () => {
	while (document.querySelector(".live-word")?.textContent === "Connecting") {
		await new Promise((again) => requestAnimationFrame(again));
	}
	return "";
})()`

// TestGallery takes the README's screenshots of the console, as it looks after a first start, into
// the folder named by DRAWBRIDGE_TEST_GALLERY.
func TestGallery(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	data := w.DemoData()
	server := w.Serve("--demo")
	browser := newBrowser(t)
	do(t, browser, emulate(looks[0]), chromedp.EmulateViewport(galleryWidth, galleryHeight))
	signIn(t, browser, server.URL, data.Users[0])
	reader := &userInput{T: t, browser: browser}
	open := func(address string) {
		t.Helper()
		do(t, browser, chromedp.Navigate(address), chromedp.WaitVisible(chromedp.CSS("h1")))
		reader.loaded()
	}
	link := func(selector string) string {
		t.Helper()
		return evaluate(t, browser, `document.querySelector('`+selector+`').href`)
	}
	open(server.URL + "/console/deliveries?state=failed")
	delivery, application := link("tbody a.lead"), link(`tbody a[href*="/applications/"]`)
	for name, address := range map[string]string{
		"overview":    server.URL + "/console",
		"deliveries":  server.URL + "/console/deliveries",
		"delivery":    delivery,
		"application": application + "#timeline",
		"draws":       server.URL + "/console/draws",
	} {
		open(address)
		evaluate(t, browser, connected)
		shown, err := chromedp.Run(browser, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		picture := fewColours(t, shown)
		if len(picture) > mostPicture {
			t.Errorf("%s has %d bytes", name, len(picture))
		}
		file := filepath.Join(cmp.Or(os.Getenv("DRAWBRIDGE_TEST_GALLERY"), t.TempDir()), name+".png")
		if err := os.WriteFile(file, picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// fewColours makes a picture small: apart from the edges of letters a page has few colours, and
// the colours of the edges become the nearest of those.
func fewColours(t *testing.T, shown []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(shown))
	if err != nil {
		t.Fatal(err)
	}
	area := full.Bounds()
	counts := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	var palette color.Palette
	for shade := range counts {
		palette = append(palette, shade)
	}
	slices.SortFunc(palette, func(a, b color.Color) int {
		return counts[b.(color.RGBA)] - counts[a.(color.RGBA)]
	})
	palette = palette[:min(len(palette), 256)]
	nearest := map[color.RGBA]uint8{}
	small := image.NewPaletted(area, palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			shade := at(x, y)
			index, known := nearest[shade]
			if !known {
				index = uint8(palette.Index(shade))
				nearest[shade] = index
			}
			small.SetColorIndex(x, y, index)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, small); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
