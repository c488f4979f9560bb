package operations

import (
	"fmt"
	"strings"

	"drawbridge/internal/search"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// PageLink is a page or an action of the console.
type PageLink struct {
	Label string
	Icon  string
	Href  string
}

// actions are what can be begun from anywhere.
var actions = []PageLink{
	{"Show what is failing now", "triangle-alert", paths.Deliveries + "?state=retrying"},
	{"Show what failed today", "circle-x", paths.Deliveries + "?range=today&state=failed"},
	{"Follow deliveries as they come in (tail)", "send", paths.Deliveries + "?tail=1"},
	{"Check a signature that a partner rejects", "lock", paths.Doctor},
}

// PagesNamed lists the pages that a role sees and the actions, those with a word
// that begins like the text.
func PagesNamed(text, role string) []PageLink {
	var found, all []PageLink
	for _, group := range ui.NavigationFor(role) {
		for _, item := range group.Items {
			all = append(all, PageLink{item.Label, item.Icon, item.Href})
		}
	}
	text = strings.ToLower(strings.TrimSpace(text))
	for _, link := range append(all, actions...) {
		if strings.Contains(" "+strings.ToLower(link.Label), " "+text) {
			found = append(found, link)
		}
	}
	return found
}

// hitKind is how hits of a kind are shown: the title over them, their icon, and the
// pattern of their pages.
type hitKind struct{ title, icon, pattern string }

var hitKinds = map[search.Kind]hitKind{
	search.Application:  {"Applications", "folder-open", paths.Application},
	search.Disbursement: {"Draws", "banknote", paths.Application},
	search.Delivery:     {"Deliveries", "send", paths.Delivery},
	search.Event:        {"Events", "zap", paths.Event},
	search.Email:        {"E-mails", "mail", paths.Email},
	search.Subscription: {"Subscriptions", "webhook", paths.Subscription},
	search.Partner:      {"Partners", "building-2", paths.Partner},
	search.Merchant:     {"Merchants", "store", paths.Merchant},
	search.Client:       {"API clients", "lock", paths.Client},
	search.Request:      {"API requests", "list-checks", paths.Request},
}

// HitHref is the page of what was found.
func HitHref(hit search.Hit) string {
	href := paths.To(hitKinds[hit.Kind].pattern, hit.ID)
	if hit.Kind == search.Disbursement {
		return fmt.Sprintf("%s#draw-%d", href, hit.Number)
	}
	return href
}

// grouped parts hits, which come sorted by kind.
func grouped(hits []search.Hit) [][]search.Hit {
	var groups [][]search.Hit
	for i, hit := range hits {
		if i == 0 || hits[i-1].Kind != hit.Kind {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], hit)
	}
	return groups
}
