package docsview

import (
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/google/go-cmp/cmp"
)

// rendered renders a component as HTML, with runs of white space collapsed.
func rendered(t *testing.T, component templ.Component) string {
	t.Helper()
	var out strings.Builder
	if err := component.Render(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(out.String()), " "), "> <", "><")
}

func TestProse(t *testing.T) {
	t.Parallel()
	listing := rendered(t, code(Code{Lang: "text", Text: "# <b> `x`"}, "Text"))
	cases := []struct{ name, source, want string }{
		{"nothing", "  \n\n", ""},
		{"a paragraph over two lines", "one\ntwo", "<p>one two</p>"},
		{"two paragraphs", "one\n\ntwo", "<p>one</p><p>two</p>"},
		{
			"a heading", "## Going live",
			`<h2 id="going-live"><a class="self" href="#going-live">Going live</a></h2>`,
		},
		{"a heading below", "### One, two", `<h3 id="one-two">One, two</h3>`},
		{
			"a list right after a paragraph, with a wrapped item", "these:\n- one\n  more\n- two",
			"<p>these:</p><ul><li>one more</li><li>two</li></ul>",
		},
		{"numbers", "1. one\n2. two", "<ol><li>one</li><li>two</li></ol>"},
		{
			"a table", "| A | B |\n|---|---|\n| 1 | 2 |",
			`<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>` +
				`<thead><tr><th scope="col">A</th><th scope="col">B</th></tr></thead>` +
				`<tbody><tr><td>1</td><td>2</td></tr></tbody></table></div>`,
		},
		{"a fence that hides marks and markup", "```text\n# <b> `x`\n```", listing},
		{"a fence without an end", "```text\n# <b> `x`", listing},
		{"markup", "a<script>b</script>", "<p>a<!-- raw HTML omitted -->b<!-- raw HTML omitted --></p>"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, rendered(t, prose(test.source))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	cases := []struct{ source, want string }{
		{"", ""},
		{"plain\n\nand more", "plain and more"},
		{"a `code` b", "a <code>code<wbr></code> b"},
		{"**all**", "<strong>all</strong>"},
		{
			"**`id` and `at`** count",
			"<strong><code>id<wbr></code> and <code>at<wbr></code></strong> count",
		},
		{
			"see [the `list`](/docs/errors#X).",
			`see <a href="/docs/errors#X">the <code>list<wbr></code></a>.`,
		},
		{"a * b ** c ` d [e] (f)", "a * b ** c ` d [e] (f)"},
		{"`<b>` & more", "<code>&lt;b&gt;<wbr></code> &amp; more"},
		{"[x](javascript:alert)", `<a href="">x</a>`},
	}
	for _, test := range cases {
		if diff := cmp.Diff(test.want, rendered(t, inline(test.source))); diff != "" {
			t.Errorf("%q: %s", test.source, diff)
		}
	}
}

func TestContents(t *testing.T) {
	t.Parallel()
	want := []Entry{{ID: "one-two", Label: "One, two"}, {ID: "three", Label: "Three"}}
	got := Contents("text\n\n## One, two\n\n### Below\n\n```text\n## no\n```\n\n## Three\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Parsing ends for every source.
func FuzzProse(f *testing.F) {
	for _, seed := range []string{"# a", "|", "```", "- ", "1. ", ":: ", "#", "## \n|--|"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		rendered(t, prose(source))
		rendered(t, inline(source))
		Contents(source)
	})
}
