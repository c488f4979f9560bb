package ui

import "github.com/a-h/templ"

// ListProps are the contents of a page with a filtered list.
type ListProps struct {
	// Path is the list's path, without a filter.
	Path string
	// Intro says in a sentence what is listed, Buttons are shown beside the title.
	Intro   string
	Buttons templ.Component
	// Views are the named filters, nil if readers cannot save any.
	Views *NamedFilters
	// Tabs switch between the values of one filter, Fields are the other filters.
	Tabs   []Tab
	Fields []Control
	// Hidden are the active filters without a field.
	Hidden []HiddenField
	// Search always shows the form of the filters, as a search form.
	Search bool
	// Sought means that the reader searched for an option of a filter: the form stays open.
	Sought bool
	// Active are the active filters other than the tabs.
	Active []ActiveFilter
	Region ListRegion
}

// ListRegion is the part of a list that is updated with its rows.
type ListRegion struct {
	// Path is the list's path, without a filter.
	Path string
	// Unavailable is shown if the rows could not be loaded, otherwise nil.
	Unavailable *EmptyProps
	// Wrong are the errors of the filters.
	Wrong []FieldError
	// Rows is the number of rows on this page; if it is 0, Empty is shown instead.
	Rows  int
	Empty EmptyProps
	// EmptyBody, unless nil, is shown instead of Empty.
	EmptyBody templ.Component
	Table     templ.Component
	// Summary is the count of matching rows, empty if they are not counted; Order describes
	// the sort order.
	Summary, Order string
	// Newest and Older link to other pages, empty if there are none.
	Newest, Older string
	// Pick is the form for selected rows, nil if rows cannot be selected.
	Pick *Pick
	// Live keeps the region up to date; nil for a list that does not change on screen.
	Live *LiveList
}

// Pick is a form around a table with selectable rows.
type Pick struct {
	// Action is where the form is sent, Filter the filter that it carries.
	Action, Filter string
	Buttons        templ.Component
}

// LiveList keeps a list up to date. Both addresses are fixed to the rows that are shown,
// except in the tail, which shows new rows at once.
type LiveList struct {
	// StreamURL updates the region while the page is open; PollURL does so if streams fail.
	StreamURL, PollURL string
	// News says how many rows are newer than the first row, empty if none; NewsHref shows
	// them.
	News, NewsHref string
}
