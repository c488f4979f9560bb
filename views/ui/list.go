package ui

import "github.com/a-h/templ"

// ListProps is a page that lists things under a filter.
type ListProps struct {
	// Path is the list's, without a filter.
	Path string
	// Intro says in a sentence what is listed, Buttons are beside the title.
	Intro   string
	Buttons templ.Component
	// Views are filters with a name, nil where readers cannot save any.
	Views *NamedFilters
	// Tabs switch between the values of one filter, Fields are the others.
	Tabs   []Tab
	Fields []Control
	// Hidden are the filters in force that no field shows.
	Hidden []HiddenField
	// Search shows the form of the filters at all times, as a search.
	Search bool
	// Sought tells that something to filter by was looked for: the form stays open.
	Sought bool
	// Active are the filters in force besides the tabs'.
	Active []ActiveFilter
	Region ListRegion
}

// ListRegion is the part of a list that changes with its rows.
type ListRegion struct {
	// Path is the list's, without a filter.
	Path string
	// Unavailable is shown when the rows could not be loaded, nil when they were.
	Unavailable *EmptyProps
	// Wrong are the filters that cannot be read.
	Wrong []FieldError
	// Rows is how many rows there are here; without any, Empty is shown in their
	// place.
	Rows  int
	Empty EmptyProps
	// EmptyBody is shown in place of Empty, nil for none.
	EmptyBody templ.Component
	Table     templ.Component
	// Summary counts the filtered set, empty where nobody counts; Order says how it is
	// sorted.
	Summary, Order string
	// Newest and Older are neighbouring pages, empty where there is none.
	Newest, Older string
	// Pick is what can be done with rows that are selected, nil for nothing.
	Pick *Pick
	// Live keeps the region up to date, nil for a list that stays as it is.
	Live *LiveList
}

// Pick is a form around the table whose rows can be selected.
type Pick struct {
	// Action is where the form is sent, Filter the filter that it carries.
	Action, Filter string
	Buttons        templ.Component
}

// LiveList keeps a list up to date. Both addresses keep to the rows that are shown,
// except in the tail, which shows what is new at once.
type LiveList struct {
	// StreamURL brings the region up to date while the page is read, PollURL does
	// where streams fail.
	StreamURL, PollURL string
	// News says how many rows came since the first row, empty for none; NewsHref
	// shows them.
	News, NewsHref string
}
