// Package applications renders applications with their loans and documents, and the products.
package applications

import (
	"fmt"
	"strings"
	"time"

	"github.com/a-h/templ"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/retention"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/views/ui"
)

// Page is one application with its loan and its timeline.
type Page struct {
	Summary     application.Summary
	Application application.Application
	// Undelivered links to a delivery that failed for good, nil if there is none.
	Undelivered *ui.Notice
	// LegalHold is the hold on the application, nil if there is none.
	LegalHold *retention.LegalHold
	// Loan is nil until it opens.
	Loan *loan.Loan
	// Draws and Certificates are those on this page; the pagers lead to the others.
	Draws             []loan.Disbursement
	DrawsPager        ui.PagerProps
	Certificates      []loan.StoredCertificate
	CertificatesPager ui.PagerProps
	Tasks             []application.TaskEntry
	// Actions are the changes that are possible now.
	Actions  []ActionGroup
	Timeline Timeline
}

// ActionGroup is the possible changes of one subject.
type ActionGroup struct {
	Title   string
	Actions []Action
}

// Action is the link to the form of one change.
type Action struct {
	Label, Href string
	// Note says what the change would cause.
	Note string
	// Move is the new status, empty if the change is not a change of status.
	Move string
}

// Timeline is a page of an application's timeline.
type Timeline struct {
	// Kinds are the tabs that show or hide kinds of entries.
	Kinds   []ui.Tab
	Entries []Entry
	// Newest and Older link to other pages, empty if there are none.
	Newest, Older string
}

// Entry is one entry of the timeline.
type Entry struct {
	// ID is unique on the page.
	ID    string
	At    time.Time
	Icon  string
	Tone  ui.Tone
	Title string
	// Code is the kind of an event, empty if the entry is not an event.
	Code string
	// Href leads to more about the entry, empty if there is no more.
	Href string
	// Chip is the state of an e-mail or the answer to a request, nil if the entry has none.
	Chip *ui.ChipProps
	// Tag marks a re-send, empty for none.
	Tag  string
	Text string
	// Outcome is the outcome of an event's deliveries, nil if the entry has none.
	Outcome *delivery.EventOutcome
}

// outcomeWords summarises the deliveries of an event, beginning with what needs attention.
func outcomeWords(of delivery.EventOutcome) string {
	var parts []string
	for _, part := range []struct {
		count int
		word  string
	}{
		{of.Failed, "failed"},
		{of.Open, "under way"},
		{of.Delivered, "delivered"},
		{of.MadeGood, "failed and made good"},
		{of.Cancelled, "cancelled"},
	} {
		if part.count > 0 {
			parts = append(parts, ui.Number(part.count)+" "+part.word)
		}
	}
	return ui.Plural(of.Total(), "delivery", "deliveries") + ": " + strings.Join(parts, ", ")
}

// triedWords summarises a delivery's attempts: "2 attempts, HTTP 503".
func triedWords(tried delivery.Tried) string {
	if tried.AttemptCount == 0 {
		return "no attempt yet"
	}
	return ui.Plural(tried.AttemptCount, "attempt", "attempts") + ", " +
		ui.OutcomeWord(tried.LastStatus(), tried.LastError())
}

// SourceWord says who created an application.
func SourceWord(source lending.Source) string {
	return ui.If(source == lending.SourceConsole, "An operator, in the console",
		"The partner, through the API")
}

// DocumentWord describes the state of the loan documents.
func DocumentWord(status lending.DocumentStatus) string {
	switch status {
	case lending.DocumentSent:
		return "Sent"
	case lending.DocumentSigned:
		return "Signed"
	case lending.DocumentNone:
	}
	return "Not sent"
}

// loanState says what prevents the next draw, if anything.
func loanState(open loan.Loan) string {
	switch {
	case open.IsPending() && (open.Status.IsFinal() || !open.Balance().IsPositive()):
		return "A draw is pending; none follows it"
	case open.IsPending():
		return "A draw is pending; the next one waits for it"
	case !open.Balance().IsPositive(): // the money of an earlier draw may have been returned
		return "Drawn to the end"
	case open.Status != lending.StatusApproved:
		return "No draw while the application is not Approved"
	}
	return "The next draw may be requested"
}

// evidenceWords lists the evidence of a funding step, empty if there is none.
func evidenceWords(change loan.Change) string {
	var given []string
	for _, field := range []*string{
		change.Method, change.Reference, change.EffectiveDate, change.Reason,
	} {
		if field != nil {
			given = append(given, ui.Visible(*field))
		}
	}
	if len(given) == 0 {
		return ""
	}
	return DrawWord(change.Status) + ": " + strings.Join(given, ", ")
}

func drawTable(draws []loan.Disbursement) ui.TableProps[loan.Disbursement] {
	return ui.TableProps[loan.Disbursement]{
		Caption: "Disbursements of the loan, oldest first",
		RowID:   func(d loan.Disbursement) string { return fmt.Sprintf("draw-%d", d.ID) },
		Rows:    draws,
		Columns: []ui.Column[loan.Disbursement]{
			{Title: "Status", Class: "w-state", Cell: drawStatusCell},
			{Title: "Disbursement", Header: true, Cell: drawNameCell},
			ui.Amounts("Gross", "col-a w-amount end",
				func(d loan.Disbursement) *lending.Money { return &d.Gross }).Titled(),
			ui.Amounts("Fee", "col-b w-amount end",
				func(d loan.Disbursement) *lending.Money { return &d.Fee }).Titled(),
			ui.Amounts("Net", "col-b w-amount end",
				func(d loan.Disbursement) *lending.Money { return &d.Net }).Titled(),
			ui.Times("Requested", "w-time end",
				func(d loan.Disbursement) time.Time { return d.RequestedAt }),
		},
	}
}

// stageTable lists the stages of a schedule, and the amounts drawn for them.
func stageTable(stages []lending.Stage, draws []loan.Disbursement) ui.TableProps[lending.Stage] {
	drawn := map[int]*lending.Money{}
	for _, draw := range draws {
		if draw.Status.InForce() {
			drawn[draw.Stage] = &draw.Gross
		}
	}
	return ui.TableProps[lending.Stage]{
		Caption: "Schedule of the loan",
		RowID:   func(s lending.Stage) string { return fmt.Sprintf("stage-%d", s.Number) },
		Rows:    stages,
		Columns: []ui.Column[lending.Stage]{
			{Title: "Stage", Header: true, Cell: stageNameCell},
			ui.Amounts("Scheduled", "w-amount end",
				func(s lending.Stage) *lending.Money { return &s.Scheduled }),
			ui.Amounts("Drawn", "w-amount end",
				func(s lending.Stage) *lending.Money { return drawn[s.Number] }),
		},
	}
}

// through names the merchant of an application, and its partner if the names differ.
func through(s application.Summary) string {
	return ui.If(s.MerchantName == s.PartnerName, s.MerchantName,
		s.MerchantName+" of "+s.PartnerName)
}

func offerTable(offers []lending.Offer, selected string) ui.TableProps[lending.Offer] {
	return ui.TableProps[lending.Offer]{
		Caption: "Offers by product",
		RowID:   func(o lending.Offer) string { return "offer-" + o.ProductUID },
		Rows:    offers,
		Columns: []ui.Column[lending.Offer]{
			{
				Title: "Product", Header: true, Cell: func(o lending.Offer) templ.Component {
					return offerNameCell(o, o.ProductUID == selected)
				},
			},
			ui.Amounts("Approved", "w-amount end",
				func(o lending.Offer) *lending.Money { return &o.ApprovedAmount }).Titled(),
			{
				Title: "Maximum", Class: "col-a w-amount end", Named: true, Cell: offerMaximumCell,
				Money: func(o lending.Offer) *lending.Money { return &o.MaxAmount },
			},
			ui.Texts("Months", "col-b w-rate end", func(o lending.Offer) string { return o.Term }).Titled(),
			ui.Texts("Rate", "col-b w-rate end",
				func(o lending.Offer) string { return o.InterestRate.String() + " %" }).Titled(),
			ui.Texts("Fee", "col-b w-rate end",
				func(o lending.Offer) string { return o.MerchantFeePercentage.String() + " %" }).Titled(),
		},
	}
}

func taskTable(tasks []application.TaskEntry) ui.TableProps[application.TaskEntry] {
	return ui.TableProps[application.TaskEntry]{
		Caption: "Tasks, oldest first",
		RowID:   func(t application.TaskEntry) string { return "task-" + t.UID.String() },
		Rows:    tasks,
		Columns: []ui.Column[application.TaskEntry]{
			ui.Chips("Status", "w-state",
				func(t application.TaskEntry) ui.ChipProps { return ui.TaskChip(string(t.Status)) }),
			{Title: "Task", Header: true, Cell: taskTitleCell},
			ui.Times("Created", "w-time end",
				func(t application.TaskEntry) time.Time { return t.CreatedAt }),
			ui.Times("Changed", "col-b w-time end",
				func(t application.TaskEntry) time.Time { return t.UpdatedAt }).Titled(),
		},
	}
}
