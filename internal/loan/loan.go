// Package loan serves draws: requesting and previewing them, moving their
// money on, and the completion certificates that go with them.
//
// A loan has the identity of its application, and the application's row is the
// one lock for both: anyone who changes either holds it. What is allowed and what
// it amounts to is decided by package lending; this package loads the values,
// asks, and writes the answer down.
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
	// Calendar says how old draws are, and until when they are paid.
	Calendar calendar.Calendar
	// LoanQuota and DayQuota bound what is stored; zero means the usual bounds.
	LoanQuota, DayQuota Quota
}

// Caller is who asks. The nil merchant is the operator of the service, who may
// reach every loan.
type Caller struct {
	MerchantUID uuid.UUID
	// Name goes into the record of what was done.
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
	// SettledAt stays when the money came back later.
	SettledAt   *time.Time `db:"settled_at"`
	CancelledAt *time.Time `db:"cancelled_at"`
	ReturnedAt  *time.Time `db:"returned_at"`
	// Changes are the steps of the money, oldest first.
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

// Preview is what a draw request would come to.
type Preview struct {
	lending.Draw
	// Refusal is nil when the draw would be granted.
	Refusal *lending.Error
}

// Certificate is a stored completion certificate.
type Certificate struct {
	UID      uuid.UUID
	Files    []document.File
	Metadata lending.Metadata
}
