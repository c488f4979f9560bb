package lists

import (
	"slices"
	"strings"
	"testing"
)

const listPage = `<nav class="segments">
	<a class="segment" href="/console/things">All</a>
	<a class="segment" href="/console/things?state=open">Open</a>
	<a class="segment" href="/console/things?state=closed">Closed</a>
	<a class="segment" href="/console/others?state=never">Others</a></nav>
<form class="panel filter-form" action="/console/things">
	<input type="hidden" name="state" value="open">
	<select name="kind"><option value="">All</option><option value="a">A</option></select>
	<input class="input" name="name"></form>
<form action="/console/other"><input name="elsewhere"></form>
<a rel="next" href="/console/things?cursor=abc&amp;kind=a">Older</a>`

func TestFiltersOf(t *testing.T) {
	t.Parallel()
	typed := map[string][]string{"name": {"sun"}}
	found, err := filtersOf(listPage, "/console/things", typed)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, each := range found {
		got[each.name] = strings.Join(each.values, " ")
	}
	if len(got) != 3 || got["state"] != "open closed" || got["kind"] != "a" || got["name"] != "sun" {
		t.Errorf("found %q", got)
	}
	next := Page{Path: "/console/things"}.Next(listPage)
	if next != "/console/things?cursor=abc&kind=a" {
		t.Errorf("the next page is at %q", next)
	}
}

// A field without values would never be measured.
func TestFilterWithoutValues(t *testing.T) {
	t.Parallel()
	_, err := filtersOf(listPage, "/console/things", nil)
	if err == nil || !strings.Contains(err.Error(), `"name"`) {
		t.Errorf("a field without values: %v", err)
	}
}

func TestCombined(t *testing.T) {
	t.Parallel()
	filters := []filter{{"a", []string{"1", "2"}}, {"b", []string{"3", "4", "5"}}}
	for pairs, want := range map[int]int{0: 1 + 5 + 6, 1: 1 + 5 + 1, 100: 1 + 5 + 6} {
		if got := combined(filters, Plan{Pairs: pairs}); len(got) != want {
			t.Errorf("%d pairs of each two filters: %d queries instead of %d", pairs, len(got), want)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	many := strings.Split("a b c d e f g h i", " ")
	if got := spread(many); len(got) != perChoice || got[0] != "a" || got[perChoice-1] != "i" {
		t.Errorf("picked %q of many", got)
	}
	if got := spread(many[:2]); !slices.Equal(got, many[:2]) {
		t.Errorf("picked %q of two", got)
	}
}
