// Package loan serves draws: requesting and previewing them, moving their money on, and the
// completion certificates that go with them.
//
// A loan has the identity of its application, and the application's row is the one lock for
// both: anyone who changes either holds it. Package lending decides what is allowed and computes
// the amounts; this package loads the values for it and writes the result.
package loan

import (
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/calendar"
	"drawbridge/internal/document"
	"drawbridge/internal/event"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Service serves loans.
type Service struct {
	DB     *postgres.DB
	Events *event.Recorder
	// Calendar computes how old draws are in business time, and the cut-off for paying them.
	Calendar calendar.Calendar
	// LoanQuota and DayQuota bound what is stored; zero means the default.
	LoanQuota, DayQuota Quota
}

// Caller identifies the caller. The nil merchant is the operator of the service, who may access
// every loan.
type Caller struct {
	MerchantUID uuid.UUID
	// Name is recorded with what the caller does.
	Name string
}

// DrawInput is a well-formed draw request with its documentation.
type DrawInput struct {
	Request  lending.DrawRequest
	Metadata lending.Metadata
	Files    []document.File
}

// Disbursement is a draw that was granted (specification section 2.4).
type Disbursement struct {
	lending.Disbursement
	ApplicationUID uuid.UUID `db:"application_uid"`
	MerchantUID    uuid.UUID `db:"merchant_uid"`
	RequestedAt    time.Time `db:"requested_at"`
	// SettledAt is kept if the money comes back later.
	SettledAt   *time.Time `db:"settled_at"`
	CancelledAt *time.Time `db:"cancelled_at"`
	ReturnedAt  *time.Time `db:"returned_at"`
	// Changes are the status changes of the money, oldest first.
	Changes []Change `db:"-"`
}

// Loan is a loan with its schedule and all its disbursements.
type Loan struct {
	lending.Loan
	ApplicationUID uuid.UUID
	MerchantUID    uuid.UUID
	Status         lending.ApplicationStatus
	ProductUID     uuid.UUID
	ProductCode    string
	// History holds the disbursements by number, cancelled and returned ones included.
	History []Disbursement
}

// Preview is the expected outcome of a draw request.
type Preview struct {
	lending.Draw
	// Refusal is nil if the draw would be granted.
	Refusal *lending.Error
}

// Certificate is a stored completion certificate.
type Certificate struct {
	UID      uuid.UUID
	Files    []document.File
	Metadata lending.Metadata
}
