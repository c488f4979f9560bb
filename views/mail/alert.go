package mail

import (
	"strings"
	"time"

	"drawbridge/internal/email"
	"drawbridge/internal/lending"
)

// Alert tells operators about a subscription or about the lender's own work that needs them.
type Alert struct {
	Kind        email.Kind
	PartnerName string
	// Name is the subscription's name, which may be empty, and URL its endpoint.
	Name, URL string
	// Since is the RFC 3339 time since when deliveries have failed, or had failed.
	Since string
	// Failures is the number of failed attempts since then.
	Failures  string
	LastError string
	// Event, Reference and Delivery belong to used up attempts: the event kind, the
	// application and the delivery.
	Event, Reference, Delivery string
	// Paused means that the subscription paused itself because it was failing.
	Paused bool
	// Count, Day and Draws belong to overdue draws and undecided applications: their number,
	// the days concerned as YYYY-MM-DD, the earliest first and separated by commas, and the
	// numbers of the draws.
	Count, Day, Draws string
	// ConsoleURL is the page of the console to open.
	ConsoleURL string
}

// product is the signature of mails to the lender's own staff, after the lender's name.
const product = "Drawbridge"

// wording is the text that differs between the kinds.
type wording struct{ subject, title, lead, next, button string }

func (a Alert) wording() wording {
	endpoint := endpointOf(a.Name, a.URL)
	switch a.Kind {
	case email.KindSubscriptionRecovered:
		return wording{
			subject: "Webhooks recovered: " + endpoint,
			title:   "Webhooks are delivered again",
			lead:    "The endpoint accepts events again. New events are being delivered.",
			next: "Deliveries whose attempts were used up meanwhile are not sent again by " +
				"themselves: re-send them from the subscription's page.",
			button: "Open the subscription",
		}
	case email.KindDrawsOverdue:
		return wording{
			subject: "Draws are overdue: " + a.Count,
			title:   "Draws are waiting for their money",
			lead:    "They have been in one state for longer than their products allow.",
			next: "The draw desk says what has to be done about each. No other e-mail is sent about " +
				"them while the alert is open.",
			button: "See what needs attention",
		}
	case email.KindUndecided:
		return wording{
			subject: "Applications are waiting for a decision: " + a.Count + ", notice due " + a.when(),
			title:   "Applications are waiting for a decision",
			lead: "They have been complete for weeks and are still undecided. Regulation B requires " +
				"that applicants are notified of the decision within 30 days.",
			next:   "Approve or decline them. Close those that nobody pursues any more.",
			button: "See what needs attention",
		}
	case email.KindAttemptsUsedUp:
		return wording{
			subject: "Webhook not delivered: " + endpoint,
			title:   "A webhook could not be delivered",
			lead:    "Every attempt to deliver an event failed, and it is not sent again by itself.",
			next:    "Once the cause is fixed, re-send the delivery from its page.",
			button:  "Open the delivery",
		}
	default: // it fails, below
	}
	if a.Paused {
		return wording{
			subject: "Webhooks paused: " + endpoint,
			title:   "A webhook endpoint was paused",
			lead: "Every attempt to deliver events to this endpoint has failed for a while. " +
				"Drawbridge has paused it, as its settings ask; events wait until it is resumed.",
			next: "Ask the partner to look at the endpoint, then resume the subscription. " +
				"What waited goes out then.",
			button: "Open the subscription",
		}
	}
	return wording{
		subject: "Webhooks failing: " + endpoint,
		title:   "A webhook endpoint is failing",
		lead: "Every attempt to deliver events to this endpoint has failed for a while. " +
			"Drawbridge goes on trying.",
		next: "Ask the partner to look at the endpoint. This is the only e-mail about it until " +
			"it recovers.",
		button: "Open the subscription",
	}
}

// days formats its days.
func (a Alert) days() []string {
	days := strings.Split(a.Day, ", ")
	for i, day := range days {
		if at, err := time.Parse(time.DateOnly, day); err == nil {
			days[i] = at.Format("2 January 2006")
		}
	}
	return days
}

// when names the day, or the first of several.
func (a Alert) when() string {
	days := a.days()
	if len(days) > 1 {
		return "from " + days[0] + " on"
	}
	return "on " + days[0]
}

func (a Alert) facts() []Fact {
	since, day, count := "Failing since", "Overdue since", "Draws"
	switch a.Kind {
	case email.KindSubscriptionRecovered:
		since = "Had failed since"
	case email.KindUndecided:
		day, count = "Notice due on", "Applications"
	default:
	}
	return []Fact{
		{"Partner", a.PartnerName},
		{"Subscription", a.Name},
		{"Endpoint", a.URL},
		{"Event", lending.EventKind(a.Event).Named()},
		{"Application", a.Reference},
		{"Delivery", a.Delivery},
		{since, moment(a.Since)},
		{"Failed attempts", a.Failures},
		{"Last error", a.LastError},
		{count, a.Count},
		{"Draw numbers", a.Draws},
		{day, strings.Join(a.days(), ", ")},
	}
}

// Subject names the subscription.
func (a Alert) Subject(Lender) string { return a.wording().subject }

func (a Alert) write(d *document) {
	words := a.wording()
	d.Preview = words.lead
	if d.Lender.LenderName != product {
		d.Signature = product + ", " + d.Lender.LenderName
	}
	d.Why = "You receive this because this address is named for alerts of Drawbridge, or because " +
		"you operate it."
	d.heading(words.title)
	d.paragraph(words.lead)
	d.facts("What is known", a.facts()...)
	d.paragraph(words.next)
	d.action(words.button, a.ConsoleURL)
}
