package lists

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// perChoice is the maximum number of a filter's choices that are tried.
const perChoice = 5

// soughtSuffix ends the names of the search boxes next to long choices.
const soughtSuffix = "_q"

// filter is a parameter of a list and possible values.
type filter struct {
	name   string
	values []string
}

// filtersOf reads the filters of a list from its page: the views above it, and the form's
// choices and fields. typed has the values for text fields.
func filtersOf(page, path string, typed map[string][]string) ([]filter, error) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	found := viewsOf(root, path)
	for form := range root.Descendants() {
		if form.DataAtom != atom.Form || !hasClass(form, "filter-form") {
			continue
		}
		for field := range form.Descendants() {
			var values []string
			name, kind := attribute(field, "name"), attribute(field, "type")
			switch {
			case field.DataAtom == atom.Select:
				values = spread(choicesOf(field))
			case field.DataAtom != atom.Input || kind == "hidden" || kind == "submit":
			case strings.HasSuffix(name, soughtSuffix): // it only finds options of the field next to it
			case len(typed[name]) == 0:
				return nil, fmt.Errorf("%s has a field %q, and nobody says what to type there", path, name)
			default:
				values = typed[name]
			}
			if len(values) > 0 {
				found = append(found, filter{name, values})
			}
		}
	}
	return found, nil
}

func choicesOf(field *html.Node) []string {
	var values []string
	for option := range field.Descendants() {
		if value := attribute(option, "value"); option.DataAtom == atom.Option && value != "" {
			values = append(values, value)
		}
	}
	return values
}

// viewsOf reads the views of a list, which are links with a parameter each.
func viewsOf(root *html.Node, path string) []filter {
	var found []filter
	for link := range root.Descendants() {
		if link.DataAtom != atom.A || !hasClass(link, "segment") {
			continue
		}
		address, err := url.Parse(attribute(link, "href"))
		if err != nil || address.Path != path {
			continue
		}
		for name, values := range address.Query() {
			at := slices.IndexFunc(found, func(f filter) bool { return f.name == name })
			if at < 0 {
				found = append(found, filter{name: name, values: values})
				continue
			}
			found[at].values = append(found[at].values, values...)
		}
	}
	return found
}

// spread picks at most perChoice values, the first and the last among them.
func spread(values []string) []string {
	if len(values) <= perChoice {
		return values
	}
	var picked []string
	for i := range perChoice {
		picked = append(picked, values[i*(len(values)-1)/(perChoice-1)])
	}
	return picked
}

// Next returns the address of the next page of the list, empty on the last one.
func (p Page) Next(page string) string {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return ""
	}
	for link := range root.Descendants() {
		href, isLink := attribute(link, "href"), link.DataAtom == atom.A
		if isLink && attribute(link, "rel") == "next" && strings.HasPrefix(href, p.Path) {
			return href
		}
	}
	return ""
}

func attribute(node *html.Node, name string) string {
	for _, each := range node.Attr {
		if each.Key == name {
			return each.Val
		}
	}
	return ""
}

func hasClass(node *html.Node, class string) bool {
	return slices.Contains(strings.Fields(attribute(node, "class")), class)
}
