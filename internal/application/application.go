// Package application serves loan applications: creating and deciding them,
// accepting an offer, and every later change of status, amount, terms,
// documents and tasks.
//
// Each change locks the application's row, asks package lending what it means,
// writes it down and records its event, all in the caller's transaction. The
// loan opens here too, in the transaction in which an application first is both
// Approved and has an offered product selected.
package application

import (
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/catalog"
	"drawbridge/internal/event"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// Service serves applications.
type Service struct {
	DB     *postgres.DB
	Events *event.Recorder
	Loans  *loan.Service
	// Products are what a decision may offer.
	Products *catalog.Service
	// Switches lets the last name of a borrower steer the decision; for
	// development only.
	Switches bool
}

// Caller is who asks; the nil merchant reaches every application.
type Caller = loan.Caller

// Borrower is who borrows.
type Borrower struct {
	FirstName string  `db:"borrower_first_name" json:"first_name"`
	LastName  string  `db:"borrower_last_name" json:"last_name"`
	Email     string  `db:"borrower_email" json:"email"`
	Phone     *string `db:"borrower_phone" json:"phone"`
	// AnnualIncome is nil if it was not stated.
	AnnualIncome *lending.Money `db:"borrower_annual_income" json:"annual_income"`
}

// Project is what the loan pays for.
type Project struct {
	Name        string  `db:"project_name" json:"name"`
	Description *string `db:"project_description" json:"description"`
	Address     *string `db:"project_address" json:"address"`
}

// NewApplication is what Create needs.
type NewApplication struct {
	Source            lending.Source
	PartnerUID        uuid.UUID
	MerchantUID       uuid.UUID
	RequestedAmount   lending.Money
	ProductUID        *uuid.UUID
	ExternalReference *string
	Borrower          Borrower
	Project           Project
}

// Application is an application with its offers.
type Application struct {
	UID               uuid.UUID `db:"application_uid"`
	MerchantUID       uuid.UUID `db:"merchant_uid"`
	Source            lending.Source
	Status            lending.ApplicationStatus
	Communications    lending.Communications
	ExternalReference *string       `db:"external_reference"`
	RequestedAmount   lending.Money `db:"requested_amount"`
	Borrower          Borrower      `db:"-"`
	Project           Project       `db:"-"`
	// Offers are ordered by product code.
	Offers []lending.Offer
	// SelectedProductUID is nil until an offer was accepted, and
	// SelectedProductCode empty.
	SelectedProductUID  *uuid.UUID `db:"selected_product_uid"`
	SelectedProductCode string     `db:"selected_product_code"`
	// LoanOpen tells that the loan has opened, which nothing undoes.
	LoanOpen bool
	// Document is empty until documents were sent.
	Document lending.DocumentStatus `db:"document_status"`
	// Decided tells that the decision has run and was final.
	Decided   bool
	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

// Task is something that somebody must do for an application.
type Task struct {
	UID            uuid.UUID          `db:"task_uid" json:"task_uid"`
	ApplicationUID uuid.UUID          `db:"application_uid" json:"-"`
	Title          string             `json:"title"`
	Status         lending.TaskStatus `json:"status"`
	// Former is the status before MoveTask changed it, empty otherwise.
	Former lending.TaskStatus `db:"-" json:"-"`
}

// subject names the task in what its events tell.
func (t Task) subject() string { return "task/" + t.UID.String() }

// Selected returns the uid of the selected product as package lending has it, empty
// while none is.
func (a Application) Selected() string {
	if a.SelectedProductUID == nil {
		return ""
	}
	return a.SelectedProductUID.String()
}
