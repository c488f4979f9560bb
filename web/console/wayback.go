package console

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"drawbridge/views"
)

// upward is a list of the console, and what it lists.
type upward struct {
	href, label string
	section     views.Section
	// thing is one of what it lists.
	thing string
}

// upwards are the lists that pages of one thing stand under.
var upwards = []upward{
	{views.PathApplications, "All applications", views.SectionApplications, "application"},
	{views.PathDeliveries, "All deliveries", views.SectionDeliveries, "delivery"},
	{views.PathEvents, "All events", views.SectionEvents, "event"},
	{views.PathBulks, "All bulk re-sends", views.SectionBulks, "bulk re-send"},
	{views.PathSubscriptions, "All subscriptions", views.SectionSubscriptions, "subscription"},
	{views.PathEmails, "All e-mails", views.SectionEmails, "e-mail"},
	{views.PathPartners, "All partners", views.SectionPartners, "partner"},
	{views.PathProducts, "All products", views.SectionProducts, "product"},
	{views.PathRequests, "All API requests", views.SectionRequests, "API request"},
	{views.PathPeople, "All people", views.SectionPeople, "person"},
	{views.PathAttention, "All that needs attention", views.SectionAttention, "item"},
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
		list.href == views.PathApplications {
		list.href, list.label = views.ApplicationPath(uid), "Back to the application"
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
