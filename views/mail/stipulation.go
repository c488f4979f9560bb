package mail

import "drawbridge/internal/lending"

// Stipulation tells a borrower that the application waits for their action.
type Stipulation struct {
	Borrower
	// Status is the application's status: Hard Pull Authorization or Pend Clearance.
	Status lending.ApplicationStatus
}

// demand is the text that differs between the statuses.
type demand struct{ subject, title, need, next string }

func (s Stipulation) demand(lender Lender) demand {
	asked := demand{
		subject: short(lender.LenderName, 60) + " needs something from you",
		title:   "Your application is waiting for you",
		need:    "Your application needs your attention",
		next:    "As soon as that is done, your application continues by itself.",
	}
	switch s.Status {
	case lending.StatusHardPullAuthorization:
		return demand{
			subject: short(lender.LenderName, 60) + " needs your authorization",
			title:   "We need your authorization",
			need:    "Your permission to request your full credit report",
			next: "Such a request is a hard inquiry and may show on your report. It is made only " +
				"once you have agreed to it.",
		}
	case lending.StatusPendClearance:
		asked.need = "Documents or answers that confirm what your application says"
		asked.next = "As soon as they have arrived and been checked, your application " +
			"continues by itself."
	default: // a general text for any other status
	}
	return asked
}

// Subject says what is needed.
func (s Stipulation) Subject(lender Lender) string { return s.demand(lender).subject }

func (s Stipulation) write(d *document) {
	asked, guide := s.demand(d.Lender), d.Lender.LenderName
	if s.MerchantName != "" {
		guide += " or " + s.MerchantName
	}
	d.Preview = asked.need
	d.heading(asked.title)
	d.paragraph(s.greeting("Hello",
		". Before your application can continue, one thing is needed from you:")...)
	d.callout("* ", asked.need)
	d.paragraph(asked.next + " " + guide + " will guide you through it.")
	s.close(d)
}
