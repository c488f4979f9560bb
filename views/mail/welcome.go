package mail

import "cmp"

// Welcome greets a borrower once communications about the application may start.
type Welcome struct {
	Borrower
	// The fields of the plan are empty until an offer was accepted.
	ProductName    string
	ApprovedAmount string // "12000.00"
	Term           string // months
	InterestRate   string // percent a year
}

// Subject names the lender.
func (w Welcome) Subject(lender Lender) string {
	return "Welcome to " + short(lender.LenderName, 60)
}

func (w Welcome) write(d *document) {
	accepted := "Your choice is recorded: your application continues with the plan below."
	if w.ProductName == "" {
		accepted = "Your application has reached us. We will keep you informed by e-mail."
	}
	d.Preview, d.Why = accepted, whyBorrower(d.Lender)
	d.heading(w.greeting("Welcome", "")...)
	d.paragraph("Thank you for choosing ", d.Lender.LenderName, " to finance ",
		cmp.Or(w.ProjectName, "your project"), ". "+accepted)
	d.facts("Your plan",
		Fact{"Plan", w.ProductName},
		Fact{"Approved amount", d.Lender.priced(w.ApprovedAmount)},
		Fact{"Term", with(w.Term, " months")},
		Fact{"Interest rate", with(w.InterestRate, "% a year")})
	d.section("What happens next", "We will write to this address whenever we need something from "+
		"you, such as an authorization or a document. Until then there is nothing to do.")
	d.facts("Your application", w.facts()...)
	d.note("Please keep this e-mail: with the reference we can find your application at once.")
	d.note(w.contact(d.Lender))
}
