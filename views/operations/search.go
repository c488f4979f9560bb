package operations

import (
	"strings"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// SearchPage is what a search found.
type SearchPage struct {
	ui.Frame
	// Query is what was sought.
	Query  string
	Groups []HitGroup
	// Pages are pages and actions of the console that are named so.
	Pages []PageLink
}

// HitGroup is what was found of one kind.
type HitGroup struct {
	Title string
	Icon  string
	Hits  []HitView
}

// HitView is one thing that was found.
type HitView struct {
	Href   string
	Title  string
	Detail string
	ID     string
}

// PageLink is a page or an action of the console.
type PageLink struct {
	Label string
	Icon  string
	Href  string
}

// actions are what can be begun from anywhere.
func actions() []PageLink {
	return []PageLink{
		{"Show what is failing now", "triangle-alert", paths.Deliveries + "?state=retrying"},
		{
			"Show what failed today", "circle-x",
			paths.Deliveries + "?range=today&state=failed",
		},
		{"Follow deliveries as they come in (tail)", "send", paths.Deliveries + "?tail=1"},
		{"Check a signature that a partner rejects", "lock", paths.Doctor},
	}
}

// PagesNamed lists the pages that a role sees and the actions, those with a word
// that begins like the text.
func PagesNamed(text, role string) []PageLink {
	var all []PageLink
	for _, group := range ui.NavigationFor(role) {
		for _, item := range group.Items {
			all = append(all, PageLink{item.Label, item.Icon, item.Href})
		}
	}
	text = strings.ToLower(strings.TrimSpace(text))
	var found []PageLink
	for _, link := range append(all, actions()...) {
		if strings.Contains(" "+strings.ToLower(link.Label), " "+text) {
			found = append(found, link)
		}
	}
	return found
}
