package e2etest

import (
	"time"

	"github.com/google/uuid"
)

// The published credentials of the demo users.
const (
	DemoOperator = "operator@drawbridge.example"
	DemoAdmin    = "admin@drawbridge.example"
	DemoPassword = "drawbridge-demo"
)

// Demo is what `drawbridge demo` prints.
type Demo struct {
	BaseURL      string            `json:"base_url"`
	Users        []DemoUser        `json:"users"`
	Partners     []DemoPartner     `json:"partners"`
	Products     []Product         `json:"products"`
	Loans        []DemoLoan        `json:"loans"`
	Applications []DemoApplication `json:"applications"`
}

// DemoUser is a user who may sign in to the console.
type DemoUser struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// DemoPartner is a partner with its API clients.
type DemoPartner struct {
	Name    string       `json:"name"`
	UID     uuid.UUID    `json:"partner_uid"`
	Clients []DemoClient `json:"clients"`
}

// DemoClient is a pair of credentials.
type DemoClient struct {
	ID        string      `json:"client_id"`
	Secret    string      `json:"client_secret"`
	Merchants []uuid.UUID `json:"merchant_uids"`
}

// DemoLoan is a loan and its stage.
type DemoLoan struct {
	UID         uuid.UUID `json:"loan_application_uid"`
	MerchantUID uuid.UUID `json:"merchant_uid"`
	Stage       string    `json:"stage"`
}

// DemoApplication is an application without a loan.
type DemoApplication struct {
	UID         uuid.UUID `json:"thrive_application_uid"`
	MerchantUID uuid.UUID `json:"merchant_uid"`
	Status      string    `json:"status"`
}

// Product is a loan product that a borrower may choose.
type Product struct {
	UID    string `json:"product_uid"`
	Code   string `json:"code"`
	Name   string `json:"name"`
	Min    any    `json:"min_amount"`
	Max    any    `json:"max_amount"`
	Active bool   `json:"active"`
}

// Subscription is a subscription as commands print it.
type Subscription struct {
	UID     uuid.UUID `json:"subscription_uid"`
	Events  []string  `json:"events"`
	Headers []Header  `json:"headers"`
	Rate    *int      `json:"rate"`
	State   string    `json:"state"`
	Secret  *string   `json:"secret"`
}

// Header is a custom header; the value of a secret one is nil.
type Header struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Secret bool    `json:"secret"`
}

// Delivery is a line of `drawbridge delivery list`.
type Delivery struct {
	UID          uuid.UUID `json:"delivery_uid"`
	State        string    `json:"state"`
	AttemptCount int       `json:"attempt_count"`
}

// DeliveryDetail is what `drawbridge delivery show` prints.
type DeliveryDetail struct {
	Delivery

	Attempts []Attempt `json:"attempts"`
}

// Attempt is one request and its outcome.
type Attempt struct {
	HTTPStatus *int    `json:"http_status"`
	ErrorClass *string `json:"error_class"`
	Fault      *string `json:"fault"`
}

// Bulk is a bulk re-send.
type Bulk struct {
	UID    uuid.UUID `json:"bulk_uid"`
	State  string    `json:"state"`
	Pace   int       `json:"pace"`
	Reason *string   `json:"reason"`
	Total  int       `json:"total"`
	Counts struct {
		Waiting, Sent, Delivered, Failed, Cancelled, Skipped int
	} `json:"counts"`
}

// BulkDetail is a bulk re-send and, for a draft, its plan.
type BulkDetail struct {
	Bulk

	Plan *struct {
		Total         int   `json:"total"`
		Subscriptions []any `json:"subscriptions"`
	} `json:"plan"`
}

// Restore is the state of a restored database.
type Restore struct {
	Active     bool       `json:"held"`
	Since      *time.Time `json:"held_at"`
	Reason     *string    `json:"reason"`
	Deliveries int        `json:"deliveries"`
	Mails      int        `json:"mails"`
}

// Released says what the end of a quarantine cancelled.
type Released struct {
	CancelledDeliveries int `json:"cancelled_deliveries"`
	CancelledMails      int `json:"cancelled_mails"`
}

// Finding is the result of one of the doctor's checks.
type Finding string

// The findings.
const (
	FindingOK      Finding = "ok"
	FindingWarning Finding = "warning"
	FindingFailed  Finding = "failed"
	FindingSkipped Finding = "skipped"
)

// Check is one of the doctor's checks.
type Check struct {
	Name    string  `json:"name"`
	Finding Finding `json:"finding"`
	Detail  string  `json:"detail"`
	Remedy  string  `json:"remedy"`
}
