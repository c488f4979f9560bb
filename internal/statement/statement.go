// Package statement makes the daily statements: what happened to a merchant's money on a
// business day, and which events reported it.
//
// A day is the lender's business day; what happens on a weekend or a holiday belongs to the next
// business day's statement, so every point in time is in exactly one. Grace after a day's end
// each merchant gets its statement, empty ones included: version 1, stored byte for byte as JSON
// and as CSV, each with an Ed25519 signature. Until then the statement is open: it is composed
// again for each reader, and marked as open.
//
// A stored statement never changes. If its content turns out to be wrong (a delivery
// arrived after all, or something was recorded late), the run that freezes the next day stores a
// correction: the next version, which names the previous one and its digest. Corrections reach
// back by correctionWindow.
//
// The keys of the tables decide which statements exist, not the process that makes them: a day
// is a row that begins where the previous one ended, and a version is unique. So any number of
// workers may run concurrently and clocks may step; missed statements are made later.
package statement

import (
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/calendar"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
)

const (
	// Grace is how long after its end a day is frozen: whatever began before the end has committed
	// by then, even if clocks differ.
	Grace = 5 * time.Minute
	// correctionWindow is how far corrections look back: a little further than recoveries reach.
	correctionWindow = 35 * 24 * time.Hour
	// history is for how many days before the first run statements are made.
	history = 7 * 24 * time.Hour
	// batch is the number of merchants whose statements are composed together.
	batch = 20
)

// Service makes and serves statements.
type Service struct {
	DB       *postgres.DB
	Keys     *secret.Keyring
	Calendar calendar.Calendar
	Loans    *loan.Service
}

// Format is a file format of statements.
type Format string

// The formats.
const (
	JSON Format = "json"
	CSV  Format = "csv"
)

// Formats lists the formats.
func Formats() []Format { return []Format{JSON, CSV} }

// ContentType returns the media type of the format.
func (f Format) ContentType() string {
	if f == CSV {
		return "text/csv; charset=utf-8"
	}
	return "application/json"
}

// day is a business day for which statements are made.
type day struct {
	Day    time.Time `db:"day"`
	Begins time.Time `db:"begins"`
	Ends   time.Time `db:"ends"`
}

func (d day) date() string { return d.Day.Format(time.DateOnly) }

// Outcome is the outcome of an event at one subscription: "waiting", "failed", "cancelled" or
// "delivered".
type Outcome string

// OutcomeDelivered is the outcome of an event that arrived.
const OutcomeDelivered Outcome = "delivered"

// amounts are sums over disbursements.
type amounts struct {
	Count int           `json:"count"`
	Gross lending.Money `json:"gross"`
	Fee   lending.Money `json:"fee"`
	Net   lending.Money `json:"net"`
}

func (a *amounts) add(d loan.Disbursement) {
	a.Count++
	a.Gross, a.Fee, a.Net = a.Gross.Add(d.Gross), a.Fee.Add(d.Fee), a.Net.Add(d.Net)
}

// totals are the sums of a statement: over its disbursements, each counted once, and, by status,
// over the disbursements that reached the status that day.
type totals struct {
	amounts
	ByStatus map[lending.FundingStatus]amounts `json:"by_status"`
}

// change is a status change of a disbursement on the day.
type change struct {
	Status lending.FundingStatus `json:"status"`
	At     string                `json:"at"`
	lending.Evidence
}

// disbursement is a disbursement that changed on the day, as of the day's end.
type disbursement struct {
	ID                int64                 `json:"merchantDisbursementId"`
	ApplicationUID    uuid.UUID             `json:"loanApplicationUid"`
	ExternalReference *string               `json:"external_reference"`
	Number            int                   `json:"disbursementNumber"`
	Kind              lending.DrawKind      `json:"kind"`
	Status            lending.FundingStatus `json:"status"`
	Gross             lending.Money         `json:"gross"`
	Fee               lending.Money         `json:"fee"`
	Net               lending.Money         `json:"net"`
	lending.Evidence
	Changes []change `json:"changes"`
}

// delivery is the outcome of an event at one subscription.
type delivery struct {
	SubscriptionUID uuid.UUID `db:"subscription_uid" json:"subscription_uid"`
	// UID is the first delivery that arrived, else the first that was created.
	UID         uuid.UUID `db:"delivery_uid" json:"delivery_uid"`
	Outcome     Outcome   `json:"outcome"`
	DeliveredAt *string   `json:"delivered_at"`
}

// event is an event of the day, with its deliveries.
type event struct {
	UID               uuid.UUID         `db:"event_uid" json:"event_uid"`
	Sequence          *int64            `json:"sequence"`
	Kind              lending.EventKind `json:"event"`
	Subject           *string           `json:"subject"`
	ApplicationUID    uuid.UUID         `db:"application_uid" json:"thrive_application_uid"`
	ExternalReference *string           `db:"reference" json:"external_reference"`
	Status            string            `json:"status"`
	Timestamp         string            `json:"timestamp"`
	Deliveries        []delivery        `json:"deliveries"`
}

// content is the content of a statement.
type content struct {
	Totals        totals         `json:"totals"`
	Disbursements []disbursement `json:"disbursements"`
	Events        []event        `json:"events"`
}

// replaced names the version that a correction replaces.
type replaced struct {
	Version int    `json:"version"`
	SHA256  string `json:"sha256"`
}

// document is a statement in its JSON form.
type document struct {
	Date        string    `json:"date"`
	MerchantUID uuid.UUID `json:"merchant_uid"`
	From        string    `json:"from"`
	Until       string    `json:"until"`
	// State is open or frozen; an open one has no version.
	State    State     `json:"state"`
	Version  *int      `json:"version"`
	Replaces *replaced `json:"replaces"`
	FrozenAt *string   `json:"frozen_at"`
	KeyID    string    `json:"key_id"`
	content
}

// State says whether a statement may still change.
type State string

// The states.
const (
	Open   State = "open"
	Frozen State = "frozen"
)

// digest identifies the content of a statement, apart from its time and version.
func (c content) digest() []byte {
	sum := sha256.Sum256(encode(c))
	return sum[:]
}

// unresolved reports whether a delivery may still arrive.
func (c content) unresolved() bool {
	for _, event := range c.Events {
		for _, delivery := range event.Deliveries {
			if delivery.Outcome != OutcomeDelivered {
				return true
			}
		}
	}
	return false
}

// changes counts the changes of disbursements.
func (c content) changes() int {
	count := 0
	for _, disbursement := range c.Disbursements {
		count += len(disbursement.Changes)
	}
	return count
}
