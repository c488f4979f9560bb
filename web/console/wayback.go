package console

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// upward is a list of the console, and what it lists.
type upward struct {
	href, label string
	section     ui.Section
	// thing is one of what it lists.
	thing string
}

// upwards are the lists that pages of one thing stand under.
var upwards = []upward{
	{paths.Applications, "All applications", ui.SectionApplications, "application"},
	{paths.Deliveries, "All deliveries", ui.SectionDeliveries, "delivery"},
	{paths.Events, "All events", ui.SectionEvents, "event"},
	{paths.Bulks, "All bulk re-sends", ui.SectionBulks, "bulk re-send"},
	{paths.Subscriptions, "All subscriptions", ui.SectionSubscriptions, "subscription"},
	{paths.Emails, "All e-mails", ui.SectionEmails, "e-mail"},
	{paths.Partners, "All partners", ui.SectionPartners, "partner"},
	{paths.Products, "All products", ui.SectionProducts, "product"},
	{paths.Requests, "All API requests", ui.SectionRequests, "API request"},
	{paths.People, "All people", ui.SectionPeople, "person"},
	{paths.Attention, "All that needs attention", ui.SectionAttention, "item"},
}

// upwardOf finds the list that a path stands under; the zero one for none.
func upwardOf(path string) (found upward, rest string) {
	for _, list := range upwards {
		if below, under := strings.CutPrefix(path, list.href+"/"); under {
			return list, below
		}
	}
	return upward{}, ""
}

// wayBack is where somebody who was refused probably came from: the application
// that was to be changed, or else the list that the page stands under.
func wayBack(path string, status int) upward {
	list, rest := upwardOf(path)
	uid, _, deeper := strings.Cut(rest, "/")
	if _, err := uuid.Parse(uid); err == nil && deeper && status != http.StatusNotFound &&
		list.href == paths.Applications {
		list.href, list.label = paths.To(paths.Application, uid), "Back to the application"
	}
	return list
}

// noSuch says that a path's id names nothing.
func noSuch(path string) string {
	list, _ := upwardOf(path)
	if list.thing == "" {
		return "There is nothing with this id. The link may be cut off"
	}
	return "There is no such " + list.thing + ". The link may be cut off"
}
