package lists

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Address is the address of one page of a list under some filters.
type Address struct {
	// Path includes the filters in its query.
	Path string
	// Filters is the number of filters.
	Filters int
}

// Plan says how thoroughly to measure.
type Plan struct {
	// Pairs is how many pairs of values are tried per two filters, 0 for all.
	Pairs int
	// Triples is how many combinations of three filters are tried per list.
	Triples int
}

// Addresses returns the addresses of the list without a filter, under each value of each filter,
// and under values of two and three filters according to the plan; for each also the page deep
// in the list, but for two and three filters only if all pairs are requested.
func (p Page) Addresses(ctx context.Context, v *Visitor, plan Plan) ([]Address, error) {
	page, err := v.Get(ctx, p.Path)
	if err != nil {
		return nil, err
	}
	filters, err := filtersOf(page, p.Path, p.typed)
	if err != nil {
		return nil, err
	}
	for name, values := range p.linked {
		filters = append(filters, filter{name, values})
	}
	found := map[string]Address{}
	for _, query := range combined(filters, plan) {
		cursors := []string{""}
		if p.deep != "" && (len(query) < 2 || plan.Pairs == 0) {
			cursors = append(cursors, p.deep)
		}
		for _, cursor := range cursors {
			address, full := Address{Path: p.Path, Filters: len(query)}, maps.Clone(query)
			if cursor != "" {
				full.Set("cursor", cursor)
			}
			if len(full) > 0 {
				address.Path += "?" + full.Encode()
			}
			found[address.Path] = address
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Address) int {
		return strings.Compare(a.Path, b.Path)
	}), nil
}

// combined returns the queries with no filter, one, two, and some with three.
func combined(filters []filter, plan Plan) []url.Values {
	queries := []url.Values{{}}
	for i, one := range filters {
		for _, value := range one.values {
			queries = append(queries, url.Values{one.name: {value}})
		}
		for j, other := range filters[i+1:] {
			queries = append(queries, pairs(one, other, i+j, plan.Pairs)...)
		}
	}
	for range plan.Triples {
		three := url.Values{}
		for range 3 {
			one := filters[rand.IntN(len(filters))]
			three.Set(one.name, one.values[rand.IntN(len(one.values))])
		}
		queries = append(queries, three)
	}
	return queries
}

// pairs returns up to most queries with two filters, starting at a position that depends on
// turn, or all if most is 0.
func pairs(one, other filter, turn, most int) []url.Values {
	var all []url.Values
	for _, a := range one.values {
		for _, b := range other.values {
			all = append(all, url.Values{one.name: {a}, other.name: {b}})
		}
	}
	if most == 0 || most >= len(all) {
		return all
	}
	turn *= 7 // so that every value gets its turn
	picked := make([]url.Values, 0, most)
	for i := range most {
		picked = append(picked, all[(turn+i*len(all)/most)%len(all)])
	}
	return picked
}

// merchantChoices returns some of the merchants that a page offers.
func merchantChoices(page string) []string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil
	}
	for field := range root.Descendants() {
		if field.DataAtom == atom.Select && attribute(field, "name") == "merchant" {
			return spread(choicesOf(field))
		}
	}
	return nil
}
