package mail

import (
	"cmp"
	"strings"
)

// Contact tells a partner's contact about deliveries that used up their attempts.
type Contact struct {
	PartnerName string
	// Subscription is its id, Name its name, which may be empty, and URL its endpoint.
	Subscription, Name, URL string
	// Failures is the number of such deliveries since the last mail.
	Failures string
	// Kinds has one line per kind of event, such as "task.created: 3".
	Kinds string
	// Since is the RFC 3339 time of the earliest event.
	Since string
	// RecoverSince is the RFC 3339 time to start a recovery from, empty for Since.
	RecoverSince string
	// Deleted means that the subscription was deleted: nothing can fail or be re-sent there
	// any more.
	Deleted bool
	// DocsURL is the guide to catching up, empty if unknown.
	DocsURL string
}

const (
	contactLead = "Every attempt to deliver these events to your endpoint failed. They are kept, " +
		"and are not sent again by themselves."
	contactRead = "To fetch what you missed, follow the feed with GET /v2/events from the last " +
		"cursor that you kept, or read one application with GET /v2/application/{uid}/events."
	contactAsk   = "To have them sent again, call POST /v2/recoveries with this body:"
	contactOlder = "Some events are too old for that. Read them as above, or send one delivery " +
		"again with POST /v2/deliveries/{delivery_uid}/resend."
	contactGone  = "The subscription was deleted meanwhile: nothing can be sent to it again."
	contactLimit = "The next mail about this subscription comes in an hour at the earliest and " +
		"tells of everything that fails until then."
)

// what counts the deliveries, in words.
func (c Contact) what() string {
	if c.Failures == "1" {
		return "1 webhook was not delivered"
	}
	return c.Failures + " webhooks were not delivered"
}

// Subject counts the deliveries and names the subscription.
func (c Contact) Subject(Lender) string { return c.what() + ": " + endpointOf(c.Name, c.URL) }

// body is the request body of the recovery.
func (c Contact) body() string {
	return `{"subscription_uid": "` + c.Subscription + `", "since": "` +
		cmp.Or(c.RecoverSince, c.Since) + `"}`
}

func (c Contact) write(d *document) {
	facts := []Fact{
		{"Partner", c.PartnerName},
		{"Subscription", c.Name},
		{"Subscription id", c.Subscription},
		{"Endpoint", c.URL},
		{"First event", moment(c.Since)},
	}
	for line := range strings.Lines(c.Kinds) {
		kind, count, _ := strings.Cut(strings.TrimSpace(line), ": ")
		facts = append(facts, Fact{kind, count})
	}
	d.Preview = contactLead
	d.Why = "You receive this because you are named as your company's contact for webhooks."
	d.heading(c.what())
	d.paragraph(contactLead)
	d.facts("What was not delivered", facts...)
	d.paragraph(contactRead)
	if c.Deleted {
		d.paragraph(contactGone)
	} else {
		d.paragraph(contactAsk)
		d.callout("", c.body())
		if c.RecoverSince != "" {
			d.paragraph(contactOlder)
		}
	}
	d.action("Catch up after an outage", c.DocsURL)
	if !c.Deleted {
		d.note(contactLimit)
	}
}
