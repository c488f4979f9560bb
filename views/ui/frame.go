// Package ui holds the components that the console's features share: layout, tables,
// filters, forms, plots, and the rows that several features show.
package ui

import (
	"slices"
	"strings"
	"unicode/utf8"

	"drawbridge/internal/operator"
	"drawbridge/static"
	"drawbridge/views/paths"
)

// Section is an entry of the navigation rail.
type Section string

// The sections.
const (
	SectionOverview      Section = "overview"
	SectionAlerts        Section = "attention"
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
	SectionDesk          Section = "desk"
	SectionLoans         Section = "loans"
	SectionPartners      Section = "partners"
	SectionProducts      Section = "products"
	// SectionSystems are the lender's own systems, which call its API.
	SectionSystems  Section = "systems"
	SectionRequests Section = "requests"
	// sectionDocs is the documentation, which is not part of the console.
	sectionDocs Section = "docs"
)

// Frame is the frame of a signed-in user's page.
type Frame struct {
	// Title is the page's heading and, with the product's name, its title.
	Title   string
	Section Section
	// May reports whether the user may open the route at a pattern; nil uses the rendering
	// context instead.
	May func(pattern string) bool
	// Crumbs are the breadcrumbs; the last one is the page itself.
	Crumbs []Crumb
	User   operator.User
	// Environment is shown in a strip above every page; empty in production.
	Environment string
	// Development adds the pages of a development server to the rail.
	Development bool
	// Theme is "light", "dark" or empty for the system's choice.
	Theme string
	// Zone is the time zone of the reader.
	Zone Zone
	// Density is "compact" or empty.
	Density string
	// Path is this page with its query, to which changed preferences return.
	Path string
	// Query fills the search box.
	Query string
	// Failing is the count of failed deliveries beside their link in the rail.
	Failing int
	// Alerts is the count of open alerts beside their link.
	Alerts int
	// Live means that the page updates itself.
	Live bool
	// Notice is shown above the page once, nil for none.
	Notice *Notice
	// Version names the running build.
	Version string
}

// initials returns up to two letters of a name, for the user's button.
func initials(name string) string {
	var letters strings.Builder
	for word := range strings.FieldsSeq(name) {
		letter, _ := utf8.DecodeRuneInString(word)
		letters.WriteRune(letter)
		if utf8.RuneCountInString(letters.String()) == 2 {
			break
		}
	}
	return strings.ToUpper(letters.String())
}

// Crumb is one breadcrumb.
type Crumb struct {
	Label string
	// Href is empty for the page itself.
	Href string
}

// Notice is a message above a page or in a dialog.
type Notice struct {
	Tone  Tone
	Title string
	Text  string
	// Answer means that the notice says why the submitted form was refused: it takes the focus.
	Answer bool
	// Href and Action are an optional link; set both or neither.
	Href   string
	Action string
}

// NavGroup is a titled group of the rail. A folded one opens on a click, and on the pages
// of its own sections.
type NavGroup struct {
	title  string
	folded bool
	Items  []NavItem
}

// open reports whether a folded group is open on a page of a section.
func (g NavGroup) open(section Section) bool {
	return slices.ContainsFunc(g.Items, func(item NavItem) bool { return item.section == section })
}

// NavItem is one page in the rail.
type NavItem struct {
	section Section
	Label   string
	Icon    string
	Href    string
	// key is the key pressed after "g".
	key string
}

// pages are the pages of the rail, by section.
var pages = map[Section]NavItem{
	SectionOverview: {Label: "Overview", Icon: "layout-dashboard", Href: paths.Home, key: "o"},
	SectionAlerts:   {Label: "Needs attention", Icon: "inbox", Href: paths.Alerts, key: "n"},
	SectionApplications: {
		Label: "Applications", Icon: "folder-open", Href: paths.Applications, key: "a",
	},
	SectionLoans:      {Label: "Loans and draws", Icon: "landmark", Href: paths.Loans, key: "w"},
	SectionDesk:       {Label: "Draw desk", Icon: "list-checks", Href: paths.Desk, key: "f"},
	SectionDeliveries: {Label: "Deliveries", Icon: "send", Href: paths.Deliveries, key: "d"},
	SectionEvents:     {Label: "Events", Icon: "zap", Href: paths.Events, key: "v"},
	SectionBulks:      {Label: "Bulk re-sends", Icon: "rotate-ccw", Href: paths.Bulks, key: "b"},
	SectionSubscriptions: {
		Label: "Subscriptions", Icon: "webhook", Href: paths.Subscriptions, key: "s",
	},
	SectionEmails:       {Label: "E-mails", Icon: "mail", Href: paths.Emails, key: "e"},
	SectionEmailSamples: {Label: "E-mail previews", Icon: "eye", Href: paths.EmailSamples, key: "m"},
	SectionPartners:     {Label: "Partners", Icon: "building-2", Href: paths.Partners, key: "p"},
	SectionProducts:     {Label: "Products", Icon: "package", Href: paths.Products, key: "t"},
	SectionRequests:     {Label: "API requests", Icon: "activity", Href: paths.Requests, key: "r"},
	SectionPeople:       {Label: "People", Icon: "user", Href: paths.People, key: "u"},
	SectionSystems:      {Label: "Lender API", Icon: "landmark", Href: paths.Lender, key: "k"},
	SectionAudit:        {Label: "Audit log", Icon: "history", Href: paths.Audit, key: "l"},
	SectionQueues:       {Label: "Job queues", Icon: "list-checks", Href: paths.Queues, key: "q"},
	SectionSystem:       {Label: "System", Icon: "server", Href: paths.System, key: "y"},
	SectionSettings:     {Label: "Settings", Icon: "settings", Href: paths.Settings, key: "c"},
	sectionDocs:         {Label: "Docs", Icon: "book-open", Href: paths.Docs, key: "h"},
	SectionReceiver: {
		Label: "Sample receiver", Icon: "radio-tower", Href: paths.Receiver, key: "x",
	},
	SectionMailbox: {Label: "Mailbox", Icon: "inbox", Href: paths.Mailbox, key: "i"},
}

func group(title string, folded bool, sections ...Section) NavGroup {
	made := NavGroup{title: title, folded: folded}
	for _, section := range sections {
		item := pages[section]
		item.section = section
		made.Items = append(made.Items, item)
	}
	return made
}

// adminSections are only for admins: nobody else sees them in the rail.
var adminSections = map[Section]bool{
	SectionPeople: true, SectionSettings: true, SectionSystems: true,
}

// NavigationFor lists the pages that a role may open: those that its users need many times
// a day come first, those that they need once a week are folded.
func NavigationFor(role string) []NavGroup {
	groups := []NavGroup{
		group("", false, SectionOverview, SectionAlerts, SectionApplications, SectionLoans,
			SectionDesk, SectionSubscriptions, SectionPartners),
		group("Traffic", false, SectionDeliveries, SectionEvents, SectionBulks, SectionEmails,
			SectionRequests),
	}
	if role == string(operator.RoleSupport) {
		groups = []NavGroup{
			group("", false, SectionOverview, SectionAlerts, SectionApplications, SectionDeliveries,
				SectionEvents, SectionEmails, SectionRequests),
			group("Partners", false, SectionPartners, SectionSubscriptions, SectionBulks, SectionLoans,
				SectionDesk),
		}
	}
	groups = append(groups,
		group("Administration", true, SectionPeople, SectionSystems, SectionAudit, SectionQueues,
			SectionSystem, SectionSettings),
		group("Reference", true, sectionDocs, SectionProducts, SectionEmailSamples))
	var open []NavGroup
	for _, group := range groups {
		group.Items = slices.DeleteFunc(group.Items, func(item NavItem) bool {
			return adminSections[item.section] && role != string(operator.RoleAdmin)
		})
		if len(group.Items) > 0 {
			open = append(open, group)
		}
	}
	return open
}

// pageTitle joins the page's and the product's name.
func pageTitle(title string) string { return If(title == "", "Drawbridge", title+" · Drawbridge") }

// htmxConfig keeps htmx within the content security policy, and keeps details and dialogs
// that the reader opened open when a region is updated.
const htmxConfig = `{"includeIndicatorCSS":false,"extensions":"sse",` +
	`"morphIgnore":["data-htmx-powered","open"],"historyCacheSize":0}`

// scripts lists the scripts of this build that every page loads, in order.
func scripts() []string {
	var found []string
	for _, name := range []string{static.HTMX, static.HTMXStream, static.Script} {
		if static.Has(name) {
			found = append(found, static.URL(name))
		}
	}
	return found
}

// shortcut is one keyboard shortcut, for the dialog that lists them.
type shortcut struct {
	keys []string
	does string
}

// shortcuts are bound by the scripts, which also add the rail's.
var shortcuts = []shortcut{
	{[]string{"/"}, "Find anything: ids, references, names, endpoints, pages"},
	{[]string{"Ctrl K"}, "The same, while typing too"},
	{[]string{"j", "k"}, "Next or previous row"},
	{[]string{"Enter"}, "Open the row"},
	{[]string{"o"}, "Show the delivery beside the list; j and k go on, Esc closes"},
	{[]string{"x"}, "Select the row"},
	{[]string{"r"}, "Re-send this delivery"},
	{[]string{"n"}, "New subscription, on their list"},
	{[]string{"e"}, "Edit this subscription"},
	{[]string{"f"}, "Filter the list"},
	{[]string{"p"}, "Pause or resume updates"},
	{[]string{"t"}, "Light or dark"},
	{[]string{"?"}, "This list"},
}

// groups are the groups of the rail, including those of a development server.
func (f Frame) groups() []NavGroup {
	groups := NavigationFor(string(f.User.Role))
	if f.Development {
		groups = append(groups, group("Development", false, SectionReceiver, SectionMailbox))
	}
	return groups
}
