package views

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
	// UID is that of a view that the reader saved, empty for one of the house.
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
