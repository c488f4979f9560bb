package ui

// FormErrorsOf lists the wrong fields in the order of a form.
func FormErrorsOf(errs map[string]string, names ...string) []FieldError {
	var found []FieldError
	for _, name := range names {
		if text := errs[name]; text != "" {
			found = append(found, FieldError{"#" + name, text})
		}
	}
	return found
}

// FieldError is a wrong value of a form, and the field to fix it in; Href is empty where the form
// has none for it.
type FieldError struct{ Href, Text string }

// Tab is one of several views of a list.
type Tab struct {
	Label   string
	Href    string
	Current bool
}

// ActiveFilter is a filter in force and the address without it.
type ActiveFilter struct {
	Label string
	Href  string
}

// NamedFilters leads to filters of a list that have a name, and keeps the one in
// force under a name.
type NamedFilters struct {
	// Path is the list's; Query is the filter in force as in an address, empty
	// for none.
	Path, Query string
	Links       []ViewLink
}

// ViewLink is a filter with a name.
type ViewLink struct {
	Label   string
	Href    string
	Current bool
	// UID is that of a view that the reader saved, empty for a built-in one.
	UID string
}

// own are those that the reader saved.
func (b NamedFilters) own() []ViewLink {
	var own []ViewLink
	for _, view := range b.Links {
		if view.UID != "" {
			own = append(own, view)
		}
	}
	return own
}

// title says what the bar's form is for.
func (b NamedFilters) title() string {
	switch {
	case len(b.own()) == 0:
		return "Save this view"
	case b.Query == "":
		return "Remove views"
	}
	return "Save or remove views"
}
