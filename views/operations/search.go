package operations

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
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

// Found is the result of a search.
type Found struct {
	Sought string
	Hits   []search.Hit
	// Pages are the pages and actions that match; only the palette shows them.
	Pages []PageLink
	// Missed answers a question about a missing event, nil if none was asked.
	Missed *WhyProps
}

// none reports whether there is nothing to show.
func (f Found) none() bool { return len(f.Hits) == 0 && len(f.Pages) == 0 && f.Missed == nil }

// action is an action that can be started from anywhere: its link, the pattern that the
// reader's role must allow (by default the link), and other words that people search for.
type action struct{ label, icon, href, pattern, words string }

// actions are in the order of the palette.
var actions = []action{
	{"Why did somebody not get an event?", "circle-help", paths.Why, "", "missing webhook arrive"},
	{"Show what is failing now", "triangle-alert", paths.Deliveries + "?state=retrying", "", "errors"},
	{
		"Show what failed today", "circle-x", paths.Deliveries + "?range=today&state=failed",
		"", "errors",
	},
	{"Follow deliveries as they come in (tail)", "send", paths.Deliveries + "?tail=1", "", "live log"},
	{"Check a signature that a partner rejects", "lock", paths.Doctor, "", "hmac doctor verify"},
	{"New subscription", "plus", paths.SubscriptionNew, "", "add create webhook endpoint"},
	{"New partner", "plus", paths.PartnerNew, "", "add create first webhook onboard"},
	{"New application", "plus", paths.ApplicationNew, "", "add create loan"},
	{"New product", "plus", paths.ProductNew, "", "add create"},
	{"New person", "plus", paths.PersonNew, "", "add create invite user colleague"},
	{"New client of the lender API", "plus", paths.LenderNew, "", "add create credentials"},
	{"Recover or replay", "rotate-ccw", paths.BulkNew, "", "bulk re-send resend all"},
	{
		"Pause a subscription", "pause", paths.Subscriptions + "?state=active",
		paths.SubscriptionPause, "stop sending",
	},
	{
		"Resume a subscription", "play", paths.Subscriptions + "?state=paused",
		paths.SubscriptionResume, "start sending",
	},
	{
		"Rotate a signing secret or a token", "refresh-cw", paths.Subscriptions,
		paths.SubscriptionRotate, "key hmac bearer",
	},
	{
		"Rotate a client secret", "refresh-cw", paths.Partners,
		paths.ClientRotate, "api key credentials",
	},
	{
		"Re-send e-mails that failed", "mail", paths.Emails + "?state=failed",
		paths.EmailsResend, "mail resend",
	},
	{
		"Change your password or second factor", "user", paths.Account,
		"", "account sessions sign out theme",
	},
}

// maxPages bounds the pages, actions and kinds that the palette lists.
const maxPages = 12

// PagesNamed lists the pages that a role sees, the actions that the reader may take and the
// kinds of events, if each word of the text is a prefix of one of their words.
func PagesNamed(ctx context.Context, text, role string) []PageLink {
	var found []PageLink
	words := strings.Fields(strings.ToLower(text))
	add := func(link PageLink, more string) {
		named := " " + strings.ToLower(link.Label+" "+more)
		if !slices.ContainsFunc(words, func(word string) bool {
			return !strings.Contains(named, " "+word)
		}) {
			found = append(found, link)
		}
	}
	for _, group := range ui.NavigationFor(role) {
		for _, item := range group.Items {
			add(PageLink{item.Label, item.Icon, item.Href}, "")
		}
	}
	for _, action := range actions {
		path, _, _ := strings.Cut(cmp.Or(action.pattern, action.href), "?")
		if ui.May(ctx, path) {
			add(PageLink{action.label, action.icon, action.href}, action.words)
		}
	}
	for _, kind := range lending.AllEventKinds() {
		if len(words) > 0 {
			add(PageLink{
				"Deliveries: " + kind.Title(), "zap", paths.Where(paths.Deliveries, "event", string(kind)),
			}, string(kind)+" "+strings.NewReplacer(".", " ", "-", " ").Replace(string(kind)))
		}
	}
	return found[:min(len(found), maxPages)]
}

// hitKind is how hits of a kind are shown: their heading, icon, and the pattern of their
// pages.
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
	search.Product:      {"Products", "package", paths.Products},
	search.Request:      {"API requests", "list-checks", paths.Request},
	search.Bulk:         {"Bulk re-sends", "rotate-ccw", paths.Bulk},
	search.Certificate:  {"Completion certificates", "folder-open", paths.Application},
	search.Task:         {"Tasks", "list-checks", paths.Application},
	search.Alert:        {"Needs attention", "triangle-alert", paths.Alert},
	search.System:       {"Systems of the lender", "lock", paths.LenderClient},
}

// Reachable returns the hits whose pages the reader may see.
func Reachable(ctx context.Context, hits []search.Hit) []search.Hit {
	return slices.DeleteFunc(hits, func(hit search.Hit) bool {
		return !ui.May(ctx, hitKinds[hit.Kind].pattern)
	})
}

// inWords replaces the codes of the API in a hit by the words that its page uses.
func inWords(hit search.Hit) search.Hit {
	switch hit.Kind {
	case search.Delivery, search.Event:
		kind, status, _ := strings.Cut(hit.Title, ": ")
		hit.Title = lending.EventKind(kind).Title() + ": " + ui.StatusWord(status)
	case search.Disbursement:
		status, _, _ := strings.Cut(hit.Detail, " · ")
		hit.Detail = ui.StatusWord(status) + strings.TrimPrefix(hit.Detail, status)
	case search.Email:
		kind, _, _ := strings.Cut(hit.Title, " ")
		hit.Title = ui.EmailKind(email.Kind(kind)) + strings.TrimPrefix(hit.Title, kind)
		hit.Detail = strings.ReplaceAll(hit.Detail, "_", " ")
	default: // it has no codes
	}
	return hit
}

// HitHref is the page of a hit.
func HitHref(hit search.Hit) string {
	href := paths.To(hitKinds[hit.Kind].pattern, hit.ID)
	switch hit.Kind {
	case search.Disbursement:
		return paths.Within(hit.ID, "draw", hit.Part)
	case search.Certificate:
		return paths.Within(hit.ID, "certificate", hit.Part)
	case search.Task:
		return href + "#task-" + hit.Part
	case search.Product:
		return href + "#product-" + hit.ID
	default:
		return href
	}
}

// grouped splits hits, which are sorted by kind, into one group per kind.
func grouped(hits []search.Hit) [][]search.Hit {
	var groups [][]search.Hit
	for i, hit := range hits {
		if i == 0 || hits[i-1].Kind != hit.Kind {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], inWords(hit))
	}
	return groups
}
