package mail

import (
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
)

// Sample is a message with invented data, for previews.
type Sample struct {
	// Name identifies the sample; it may be used in a file name or an address.
	Name    string
	Title   string
	Message Message
}

// console is the address of buttons in samples.
const console = "https://drawbridge.example/console"

// Samples returns one message of each kind, in the order of the preview.
func Samples() []Sample {
	ana := Borrower{
		FirstName:    "Ana",
		ProjectName:  "Rooftop solar, 8.2 kW",
		MerchantName: "Sunfield Energy",
		Reference:    "0193b5a0-5e2c-7c41-9d3f-6a1f0c2b7e55",
	}
	endpoint := Alert{
		PartnerName: "Sunfield Energy",
		URL:         "https://hooks.sunfield.example/drawbridge/events",
		Since:       "2026-11-21T09:12:00Z",
		Failures:    "84",
		LastError:   "503 Service Unavailable",
		ConsoleURL:  console + "/subscriptions/0193b5a0-11aa-7b20-8c3d-2f4e5a6b7c8d",
	}
	failing, recovered, usedUp := endpoint, endpoint, endpoint
	failing.Kind, failing.Name = email.KindSubscriptionFailing, "Production"
	recovered.Kind = email.KindSubscriptionRecovered
	usedUp.Kind = email.KindAttemptsUsedUp
	usedUp.Since, usedUp.Failures = "", "3"
	usedUp.Event = "disbursement.funding.settled"
	usedUp.Reference = ana.Reference
	usedUp.Delivery = "0193b5a1-77d0-7f3e-a2b4-0c9d8e7f6a51"
	usedUp.ConsoleURL = console + "/deliveries/" + usedUp.Delivery
	draws := Alert{
		Kind: email.KindDrawsOverdue, Count: "3", Day: "2026-11-24", Draws: "#1004, #1007, #1011",
		ConsoleURL: console + "/attention",
	}
	undecided := Alert{
		Kind: email.KindUndecided, Count: "2", Day: "2026-12-04", ConsoleURL: console + "/attention",
	}
	return []Sample{
		{"welcome", "Welcome", Welcome{
			Borrower:       ana,
			ProductName:    "Solar 120",
			ApprovedAmount: "24500.00",
			Term:           "120",
			InterestRate:   "6.99",
		}},
		{"welcome-before-offer", "Welcome, before an offer was accepted", Welcome{Borrower: ana}},
		{"stipulation-authorization", "Stipulation: authorization", Stipulation{
			Borrower: ana, Status: lending.StatusHardPullAuthorization,
		}},
		{"stipulation-clearance", "Stipulation: clearance", Stipulation{
			Borrower: ana, Status: lending.StatusPendClearance,
		}},
		{"task", "Task", Task{Borrower: ana, Title: "Upload a photo of your main electrical panel"}},
		{"alert-failing", "Alert: subscription failing", failing},
		{"alert-recovered", "Alert: subscription recovered", recovered},
		{"alert-attempts-used-up", "Alert: attempts used up", usedUp},
		{"alert-draws-overdue", "Alert: draws overdue", draws},
		{"alert-undecided", "Alert: applications undecided", undecided},
		{"deliveries-failed", "Partner's contact: deliveries failed", Contact{
			PartnerName:  "Sunfield Energy",
			Subscription: "0193b5a0-11aa-7b20-8c3d-2f4e5a6b7c8d",
			Name:         "Production",
			URL:          endpoint.URL,
			Failures:     "14",
			Kinds:        "application.status.update: 3\ndisbursement.funding.settled: 11\n",
			Since:        "2026-11-21T09:12:00Z",
			DocsURL:      "https://drawbridge.example/docs/catch-up",
		}},
	}
}
