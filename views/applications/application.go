package applications

import (
	"context"
	"fmt"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/views/ui"
)

// ApplicationPage is the page of one application and its loan.
type ApplicationPage struct {
	ui.Frame
	Row ui.ApplicationRow
	// Undelivered points to a delivery that failed for good, nil without one.
	Undelivered *ui.Notice
	// Source and Communications say who created it and whether mails go out.
	Source         string
	Communications string
	// Hold is the legal hold that keeps all of it, nil without one.
	Hold *HoldView
	// Document is the status of the loan documents, empty when none were sent.
	Document    string
	Updated     time.Time
	Phone       string
	Income      string
	Project     string
	Description string
	Address     string
	// Decided tells that the decision has run.
	Decided bool
	Offers  []OfferView
	// Loan is nil until it opens.
	Loan         *LoanView
	Certificates []CertificateView
	Tasks        []TaskView
	// Actions are what an operator may do now.
	Actions []ActionGroup
	Kinds   []ui.Tab
	Moments []MomentView
	// Newest and Older are neighbouring pages of the timeline, empty where there is
	// none.
	Newest, Older string
}

// noLoan says why there is no loan.
func (p ApplicationPage) noLoan() string {
	if lending.ApplicationStatus(p.Row.Status).IsFinal() {
		return "No loan was opened."
	}
	return "No loan yet. It opens once the application is Approved and the borrower's offer is " +
		"selected."
}

// noOffers says why there is no offer although no decision refused one.
func (p ApplicationPage) noOffers() string {
	if lending.ApplicationStatus(p.Row.Status) == lending.StatusPendingReview {
		return "No offers yet: the decision has not run, or asked for a manual review."
	}
	return "No offers: the application moved on without a decision."
}

// ActionGroup is what may be done about one thing.
type ActionGroup struct {
	Title   string
	Actions []ActionLink
}

// ActionLink leads to the form of one change.
type ActionLink struct {
	Label, Href string
	// Note says what it would cause.
	Note string
	// Move is the status that it moves to, empty for any other change.
	Move string
}

// OfferView is one offer of an application.
type OfferView struct {
	ProductUID, Code, Name  string
	Approved, Maximum       string
	Term, Rate, MerchantFee string
	BorrowerMax, ProjectMax string
	Selected                bool
}

// LoanView is a loan with its schedule.
type LoanView struct {
	Product string
	Amount  string
	// Original is the amount before it was revised, empty when it never was.
	Original string
	Drawn    string
	Balance  string
	// State says in a sentence what may be drawn next.
	State  string
	Stages []StageView
	Draws  []DrawView
}

// StageView is one step of the schedule and the draw that took it.
type StageView struct {
	Number    int
	Percent   string
	Scheduled string
	// Drawn is what was drawn for it, empty for nothing.
	Drawn string
}

// DrawView is one disbursement.
type DrawView struct {
	ID        int64
	Number    int
	Stage     int
	Kind      string
	Status    string
	Gross     string
	Fee       string
	Net       string
	Requested time.Time
	Settled   time.Time
}

// originalNote tells what a revised amount was before.
func originalNote(l LoanView) string {
	if l.Original == "" {
		return "as approved"
	}
	return "revised, was " + l.Original
}

// settled says when the money arrived, empty while it has not.
func (d DrawView) settled(ctx context.Context) string {
	if d.Settled.IsZero() {
		return ""
	}
	return "Settled " + ui.Absolute(ctx, d.Settled)
}

func (d DrawView) elementID() string { return fmt.Sprintf("draw-%d", d.ID) }

// CertificateView is one completion certificate.
type CertificateView struct {
	UID     string
	Created time.Time
	// Draw is the number of the draw that it came with, 0 for none.
	Draw int
	// Metadata is a JSON object, empty for none.
	Metadata []byte
	Files    []FileView
}

func (c CertificateView) title() string {
	if c.Draw == 0 {
		return "Stored ahead of a draw"
	}
	return fmt.Sprintf("Came with draw %d", c.Draw)
}

// FileView is one file to download.
type FileView struct {
	UID    string
	Name   string
	Type   string
	Size   int64
	SHA256 string
}

func (f FileView) note() string { return ui.ByteSize(int(f.Size)) + ", " + f.Type }

// TaskView is one task.
type TaskView struct {
	UID     string
	Title   string
	Status  string
	Created time.Time
	Updated time.Time
}

// MomentView is one thing that happened, in the timeline of an application.
type MomentView struct {
	// ID is unique on the page.
	ID    string
	At    time.Time
	Icon  string
	Tone  ui.Tone
	Title string
	// Href leads to more about it, empty for nothing more.
	Href string
	// Chip is the state of a delivery or a mail, nil for none.
	Chip *ui.ChipProps
	// Tag marks a re-send, empty for none.
	Tag  string
	Text string
}

func drawTable(draws []DrawView) ui.TableProps[DrawView] {
	return ui.TableProps[DrawView]{
		Caption: "Disbursements of the loan, oldest first",
		RowID:   DrawView.elementID,
		Rows:    draws,
		Columns: []ui.Column[DrawView]{
			{Title: "Status", Class: "w-state", Cell: drawStatusCell},
			{Title: "Disbursement", Header: true, Cell: drawNameCell},
			{Title: "Gross", Class: "col-a w-amount end", Cell: drawGrossCell},
			{Title: "Fee", Class: "col-b w-amount end", Cell: drawFeeCell},
			{Title: "Net", Class: "col-b w-amount end", Cell: drawNetCell},
			{Title: "Requested", Class: "w-time end", Cell: drawRequestedCell},
		},
	}
}

func stageTable(stages []StageView) ui.TableProps[StageView] {
	return ui.TableProps[StageView]{
		Caption: "Schedule of the loan",
		RowID:   func(s StageView) string { return fmt.Sprintf("stage-%d", s.Number) },
		Rows:    stages,
		Columns: []ui.Column[StageView]{
			{Title: "Stage", Header: true, Cell: stageNameCell},
			{Title: "Scheduled", Class: "w-amount end", Cell: stageScheduledCell},
			{Title: "Drawn", Class: "w-amount end", Cell: stageDrawnCell},
		},
	}
}

func offerTable(offers []OfferView) ui.TableProps[OfferView] {
	return ui.TableProps[OfferView]{
		Caption: "Offers by product",
		RowID:   func(o OfferView) string { return "offer-" + o.ProductUID },
		Rows:    offers,
		Columns: []ui.Column[OfferView]{
			{Title: "Product", Header: true, Cell: offerNameCell},
			{Title: "Approved", Class: "w-amount end", Cell: offerApprovedCell},
			{Title: "Maximum", Class: "col-a w-amount end", Cell: offerMaximumCell},
			{Title: "Months", Class: "col-b w-rate end", Cell: offerTermCell},
			{Title: "Rate", Class: "col-b w-rate end", Cell: offerRateCell},
			{Title: "Fee", Class: "col-b w-rate end", Cell: offerFeeCell},
		},
	}
}

func taskTable(tasks []TaskView) ui.TableProps[TaskView] {
	return ui.TableProps[TaskView]{
		Caption: "Tasks, oldest first",
		RowID:   func(t TaskView) string { return "task-" + t.UID },
		Rows:    tasks,
		Columns: []ui.Column[TaskView]{
			{Title: "Status", Class: "w-state", Cell: taskStatusCell},
			{Title: "Task", Header: true, Cell: taskTitleCell},
			{Title: "Created", Class: "w-time end", Cell: taskCreatedCell},
			{Title: "Changed", Class: "col-b w-time end", Cell: taskUpdatedCell},
		},
	}
}
