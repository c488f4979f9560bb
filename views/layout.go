package views

import "drawbridge/static"

// htmxConfig keeps htmx inside the content security policy, and keeps what the
// reader opened (details, dialogs) open when a region is brought up to date.
const htmxConfig = `{"includeIndicatorCSS":false,"extensions":"sse",` +
	`"morphIgnore":["data-htmx-powered","open"],"historyCacheSize":0}`

// scripts lists the scripts of every page that this build has, in order.
func scripts() []string {
	var found []string
	for _, name := range []string{static.HTMX, static.HTMXStream, static.Script} {
		if static.Has(name) {
			found = append(found, static.URL(name))
		}
	}
	return found
}

// shortcut is one keyboard path, for the dialog that lists them.
type shortcut struct {
	keys []string
	does string
}

// shortcuts lists what console.js binds; the rail's links add theirs.
func shortcuts(role string) []shortcut {
	list := []shortcut{
		{[]string{"/"}, "Find anything: ids, references, names, endpoints, pages"},
		{[]string{"Ctrl K"}, "The same, while typing too"},
		{[]string{"j", "k"}, "Next or previous row"},
		{[]string{"Enter"}, "Open the row"},
		{[]string{"x"}, "Select the row"},
		{[]string{"r"}, "Re-send this delivery"},
		{[]string{"n"}, "New subscription, on their list"},
		{[]string{"e"}, "Edit this subscription"},
		{[]string{"f"}, "Filter the list"},
		{[]string{"p"}, "Pause or resume updates"},
		{[]string{"t"}, "Light or dark"},
		{[]string{"?"}, "This list"},
	}
	for _, group := range navigationFor(role) {
		for _, item := range group.items {
			list = append(list, shortcut{[]string{"g", item.key}, item.label})
		}
	}
	return list
}

// pressed is the aria-pressed value of a toggle.
func pressed(on bool) string {
	if on {
		return "true"
	}
	return "false"
}
