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

// FieldError is a wrong value of a form and the address of its field; Href is empty if the
// form has no such field.
type FieldError struct{ Href, Text string }

// Tab is one of several views of a list.
type Tab struct {
	Label   string
	Href    string
	Current bool
}

// ActiveFilter is an active filter, and the address without it.
type ActiveFilter struct {
	Label string
	Href  string
}

// NamedFilters links to the named filters of a list, and can save the active one under a
// name.
type NamedFilters struct {
	// Path is the list's path; Query is the active filter as a query, empty if there is none.
	Path, Query string
	Links       []ViewLink
}

// ViewLink is a named filter.
type ViewLink struct {
	Label   string
	Href    string
	Current bool
	// UID is the id of a view that the reader saved, empty for a built-in one.
	UID string
}

// own returns the views that the reader saved.
func (b NamedFilters) own() []ViewLink {
	var own []ViewLink
	for _, view := range b.Links {
		if view.UID != "" {
			own = append(own, view)
		}
	}
	return own
}

// title describes the purpose of the form.
func (b NamedFilters) title() string {
	switch {
	case len(b.own()) == 0:
		return "Save this view"
	case b.Query == "":
		return "Remove views"
	}
	return "Save or remove views"
}
