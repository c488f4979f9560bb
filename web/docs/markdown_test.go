package docs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"drawbridge/views/docsview"
)

func TestProse(t *testing.T) {
	t.Parallel()
	plain := func(words string) docsview.Text { return docsview.Text{{Text: words}} }
	cases := []struct {
		name, source string
		want         []docsview.Block
	}{
		{"nothing", "  \n\n", nil},
		{"a paragraph over two lines", "one\ntwo", []docsview.Block{{Text: plain("one two")}}},
		{"two paragraphs", "one\n\ntwo", []docsview.Block{{Text: plain("one")}, {Text: plain("two")}}},
		{"a heading", "## Going live", []docsview.Block{
			{Kind: docsview.Heading, Level: 2, ID: "going-live", Text: plain("Going live")},
		}},
		{
			"a list right after a paragraph, with a wrapped item", "these:\n- one\n  more\n- two",
			[]docsview.Block{
				{Text: plain("these:")},
				{Kind: docsview.List, Items: []docsview.Text{plain("one more"), plain("two")}},
			},
		},
		{"numbers", "1. one\n2. two", []docsview.Block{
			{Kind: docsview.Numbered, Items: []docsview.Text{plain("one"), plain("two")}},
		}},
		{"a table", "| A | B |\n|---|---|\n| 1 | 2 |", []docsview.Block{
			{
				Kind: docsview.Table, Header: []docsview.Text{plain("A"), plain("B")},
				Rows: [][]docsview.Text{{plain("1"), plain("2")}},
			},
		}},
		{"a fence that hides marks and markup", "```text\n# <b> `x`\n```", []docsview.Block{
			{Kind: docsview.Fence, Code: listing("", "text", "# <b> `x`")},
		}},
		{"a fence without an end", "```text\nx", []docsview.Block{
			{Kind: docsview.Fence, Code: listing("", "text", "x")},
		}},
		{"a slot", ":: events", []docsview.Block{{Kind: docsview.Slot, ID: "events"}}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, prose(test.source)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInline(t *testing.T) {
	t.Parallel()
	cases := []struct {
		source string
		want   docsview.Text
	}{
		{"", nil},
		{"plain", docsview.Text{{Text: "plain"}}},
		{"a `code` b", docsview.Text{
			{Text: "a "}, {Kind: docsview.CodeText, Text: "code"}, {Text: " b"},
		}},
		{"**all**", docsview.Text{{Kind: docsview.Strong, Inner: docsview.Text{{Text: "all"}}}}},
		{"**`id` and `at`** count", docsview.Text{
			{Kind: docsview.Strong, Inner: docsview.Text{
				{Kind: docsview.CodeText, Text: "id"},
				{Text: " and "},
				{Kind: docsview.CodeText, Text: "at"},
			}},
			{Text: " count"},
		}},
		{"see [the list](/docs/errors#X).", docsview.Text{
			{Text: "see "},
			{
				Kind: docsview.Anchor, Inner: docsview.Text{{Text: "the list"}},
				Href: "/docs/errors#X",
			},
			{Text: "."},
		}},
		{"a * b ** c ` d [e] (f)", docsview.Text{{Text: "a * b ** c ` d [e] (f)"}}},
	}
	for _, test := range cases {
		if diff := cmp.Diff(test.want, inline(test.source)); diff != "" {
			t.Errorf("%q: %s", test.source, diff)
		}
	}
}

// Whatever the source, reading it ends and loses no letter of a paragraph.
func FuzzProse(f *testing.F) {
	for _, seed := range []string{"# a", "|", "```", "- ", "1. ", ":: ", "#", "## \n|--|"} {
		f.Add(seed)
	}
	f.Fuzz(func(_ *testing.T, source string) { prose(source) })
}
