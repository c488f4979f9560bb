package page

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// A browser understands a minified page as it does the original.
func TestMinify(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		`<p class="soft">1 &lt; 2 = "2"</p>`:               `<p class=soft>1 &lt; 2 = "2"</p>`,
		`<a class="a x" href="/a?b=c&amp;d=e">A</a>`:       `<a class="a x" href="/a?b=c&amp;d=e">A</a>`,
		`<input value=""><input name="a"/>`:                `<input value=""><input name="a"/>`,
		`<a title="a > b" href="/x/">y</a>`:                `<a title="a > b" href=/x/>y</a>`,
		`<input hx-vals='{"act":"x"}' name="x">`:           `<input hx-vals='{"act":"x"}' name=x>`,
		`<ul><li id="a">x</li> <li>y</li></ul>`:            `<ul><li id=a>x <li>y</ul>`,
		`<dl><div><dt>A</dt><dd><p>B</p></dd></div></dl>`:  `<dl><div><dt>A<dd><p>B</p></div></dl>`,
		`<select><option selected>A</option></select>`:     `<select><option selected>A</select>`,
		`<table><tr><th>a</th><td></td></tr></table> tail`: `<table><tr><th>a<td></table> tail`,
		`<table><tr> <td> a </td> <td></td> </tr></table>`: `<table><tr><td>a <td></table>`,
		`<select><option>A</option> <option>B</select>`:    `<select><option>A<option>B</select>`,
		`<!doctype html><b>open`:                           `<!doctype html><b>open`,
	} {
		got := minify([]byte(before))
		if string(got) != after {
			t.Errorf("%s\nbecomes %s\n   want %s", before, got, after)
		}
		if meaning(t, []byte(before)) != meaning(t, got) {
			t.Errorf("%s\nmeans   %s\nbecomes %s", before, meaning(t, []byte(before)), meaning(t, got))
		}
	}
}

// meaning returns a document as a browser understands it, without invisible spaces.
func meaning(t *testing.T, text []byte) string {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var written strings.Builder
	if err := html.Render(&written, root); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(" <", "<", "> ", ">").Replace(written.String())
}
