// Package application serves loan applications: creating and deciding them,
// accepting an offer, and every later change of status, amount, terms,
// documents and tasks.
//
// Each change locks the application's row, has package lending decide its outcome, writes it and
// records its event, all in the caller's transaction. The loan opens here too, in the
// transaction in which an application is first both Approved and has an offered product
// selected.
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
	// Products supplies the products that a decision may offer.
	Products *catalog.Service
	// Switches lets the last name of a borrower steer the decision; for
	// development only.
	Switches bool
}

// Caller identifies the caller; the nil merchant may access every application.
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

// NewApplication is the input of Create.
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
	// SelectedProductUID is nil, and SelectedProductCode empty, until an offer is accepted.
	SelectedProductUID  *uuid.UUID `db:"selected_product_uid"`
	SelectedProductCode string     `db:"selected_product_code"`
	// LoanOpen means that the loan has opened, which cannot be undone.
	LoanOpen bool
	// Document is empty until documents are sent.
	Document lending.DocumentStatus `db:"document_status"`
	// Decided means that the decision has run and was final.
	Decided   bool
	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
}

// Task is something that someone must do for an application.
type Task struct {
	UID            uuid.UUID          `db:"task_uid" json:"task_uid"`
	ApplicationUID uuid.UUID          `db:"application_uid" json:"-"`
	Title          string             `json:"title"`
	Status         lending.TaskStatus `json:"status"`
	// Former is the status before MoveTask changed it, empty otherwise.
	Former lending.TaskStatus `db:"-" json:"-"`
}

// subject names the task as the subject of its events.
func (t Task) subject() string { return "task/" + t.UID.String() }

// Selected returns the uid of the selected product as text, empty while none is selected.
func (a Application) Selected() string {
	if a.SelectedProductUID == nil {
		return ""
	}
	return a.SelectedProductUID.String()
}
