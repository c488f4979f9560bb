package views

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Section is a place in the rail.
type Section string

// The sections that exist.
const (
	SectionOverview      Section = "overview"
	SectionAttention     Section = "attention"
	SectionSystem        Section = "system"
	SectionApplications  Section = "applications"
	SectionDeliveries    Section = "deliveries"
	SectionEvents        Section = "events"
	SectionBulks         Section = "bulk-resends"
	SectionSubscriptions Section = "subscriptions"
	SectionEmails        Section = "emails"
	SectionEmailSamples  Section = "email-samples"
	SectionPeople        Section = "people"
	SectionAudit         Section = "audit"
	SectionQueues        Section = "queues"
	SectionSettings      Section = "settings"
	SectionReceiver      Section = "receiver"
	SectionMailbox       Section = "mailbox"
)

// Frame is what surrounds every page of a signed-in user.
type Frame struct {
	// Title is the page's heading and, with the product's name, its title.
	Title   string
	Section Section
	// May tells whether the user reaches the route at a pattern; nil for none.
	May func(pattern string) bool
	// Crumbs lead to the page; the last one is the page itself.
	Crumbs []Crumb
	User   User
	// Environment is named in a strip over every page; empty in production.
	Environment string
	// Development adds the pages of a development server to the rail.
	Development bool
	// Theme is "light", "dark" or empty for the system's choice.
	Theme string
	// Zone is where the reader's times are.
	Zone Zone
	// Density is "compact" or empty.
	Density string
	// Path is this page with its query, where changed preferences return to.
	Path string
	// Query fills the search box.
	Query string
	// Failing is how many deliveries ask for attention, beside the rail link.
	Failing int
	// Attention is how many matters need a human, beside their link.
	Attention int
	// Live tells whether the page updates itself.
	Live bool
	// Notice is shown over the page once, nil for none.
	Notice *Notice
	// Version names the running build.
	Version string
}

// User is who is signed in.
type User struct {
	Name  string
	Email string
	Role  string
}

// Initials returns up to two letters for the user's button.
func (u User) Initials() string {
	var letters strings.Builder
	for word := range strings.FieldsSeq(u.Name) {
		letter, _ := utf8.DecodeRuneInString(word)
		letters.WriteRune(letter)
		if utf8.RuneCountInString(letters.String()) == 2 {
			break
		}
	}
	return strings.ToUpper(letters.String())
}

// Crumb is one step of the breadcrumb.
type Crumb struct {
	Label string
	// Href is empty for the page itself.
	Href string
}

// Notice is a message over a page or in a dialog.
type Notice struct {
	Tone  Tone
	Title string
	Text  string
	// Href and Action are an optional link; both or neither.
	Href   string
	Action string
}

// navGroup is a titled part of the rail.
type navGroup struct {
	title string
	items []navItem
}

type navItem struct {
	section Section
	label   string
	icon    string
	href    string
	// key is what follows "g" on the keyboard.
	key string
}

// navigation lists the pages that exist, in the order of the rail.
func navigation() []navGroup {
	return []navGroup{
		{items: []navItem{
			{SectionOverview, "Overview", "layout-dashboard", PathHome, "o"},
			{SectionAttention, "Needs attention", "inbox", PathAttention, "n"},
			{SectionApplications, "Applications", "folder-open", PathApplications, "a"},
			{SectionLoans, "Loans and draws", "landmark", PathLoans, "w"},
		}},
		{title: "Webhooks", items: []navItem{
			{SectionDeliveries, "Deliveries", "send", PathDeliveries, "d"},
			{SectionEvents, "Events", "zap", PathEvents, "v"},
			{SectionBulks, "Bulk re-sends", "rotate-ccw", PathBulks, "b"},
			{SectionSubscriptions, "Subscriptions", "webhook", PathSubscriptions, "s"},
		}},
		{title: "Communications", items: []navItem{
			{SectionEmails, "E-mails", "mail", PathEmails, "e"},
			{SectionEmailSamples, "E-mail previews", "eye", PathEmailSamples, "m"},
		}},
		{title: "Partners", items: []navItem{
			{SectionPartners, "Partners", "building-2", PathPartners, "p"},
			{SectionProducts, "Products", "package", PathProducts, "t"},
			{SectionRequests, "API requests", "activity", PathRequests, "r"},
		}},
		{title: "Administration", items: []navItem{
			{SectionPeople, "People", "user", PathPeople, "u"},
			{SectionAudit, "Audit log", "history", PathAudit, "l"},
			{SectionQueues, "Job queues", "list-checks", PathQueues, "q"},
			{SectionSystem, "System", "server", PathSystem, "y"},
			{SectionSettings, "Settings", "settings", PathSettings, "c"},
		}},
		{title: "Reference", items: []navItem{
			{"docs", "Docs", "book-open", PathDocs, "h"},
		}},
	}
}

// adminSections are only for admins: nobody else sees them in the rail.
var adminSections = map[Section]bool{SectionPeople: true, SectionSettings: true}

// navigationFor lists the pages that a user of a role may open.
func navigationFor(role string) []navGroup {
	var groups []navGroup
	for _, group := range navigation() {
		group.items = slices.DeleteFunc(group.items, func(item navItem) bool {
			return adminSections[item.section] && role != "admin"
		})
		if len(group.items) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}

// pageTitle joins the page's and the product's name.
func pageTitle(title string) string {
	if title == "" {
		return "Drawbridge"
	}
	return title + " · Drawbridge"
}
