package docs

import (
	"strings"
	"testing"
)

func TestResolvedJSON(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, source, want string }{
		{"order is kept", "b: 1\na: 2", `{"b":1,"a":2}`},
		{
			"kinds of scalars", `[1, 1.5, true, null, "true", x, 2026-11-20]`,
			`[1,1.5,true,null,"true","x","2026-11-20"]`,
		},
		{"empty ones", "a: {}\nb: []", `{"a":{},"b":[]}`},
		{"an anchor", "a: &x {n: 1}\nb: *x", `{"a":{"n":1},"b":{"n":1}}`},
		{"a reference", "a: {n: 1}\nb: {$ref: '#/a'}", `{"a":{"n":1},"b":{"n":1}}`},
		{
			"keys beside a reference win", "a: {n: 1, m: 2}\nb: {$ref: '#/a', n: 3}",
			`{"a":{"n":1,"m":2},"b":{"n":3,"m":2}}`,
		},
		{"markup stays as it is", `a: "<b> & c"`, `{"a":"<b> & c"}`},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root, err := parseYAML([]byte(test.source))
			if err != nil {
				t.Fatal(err)
			}
			resolved, err := resolve(root, root)
			if err != nil {
				t.Fatal(err)
			}
			text, err := toJSON(resolved)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(strings.Fields(string(text)), "")
			if want := strings.Join(strings.Fields(test.want), ""); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestReferencesThatLeadNowhere(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"a: {$ref: '#/b'}", "a: {$ref: 'other.yaml#/b'}", "a: [{$ref: '#/a/b/c'}]",
	} {
		root, err := parseYAML([]byte(source))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resolve(root, root); err == nil {
			t.Errorf("%s: no error", source)
		}
	}
	for _, source := range []string{"", "a: [", "a: .inf\n---\nb: 1"} {
		root, err := parseYAML([]byte(source))
		if err != nil {
			continue
		}
		if _, err := toJSON(root); err == nil {
			t.Errorf("%q: no error", source)
		}
	}
}
