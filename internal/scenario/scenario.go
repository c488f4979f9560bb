// Package scenario takes an application to a well-known state at once, through the use cases
// that partners and the lender call one by one, with all the events that these cause. It is for
// sandboxes.
package scenario

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// Name names a scenario (decisions section 11).
type Name string

// The scenarios.
const (
	// Approved: decided, offer accepted, Approved, loan open.
	Approved Name = "approved"
	// Declined: the decision made no offer.
	Declined Name = "declined"
	// ThreeStages: approved, over at least three stages, the first draw settled.
	ThreeStages Name = "three_stages"
	// PaidOut: every stage settled.
	PaidOut Name = "paid_out"
	// Returned: the first draw settled, and its money was returned.
	Returned Name = "returned"
)

// Names lists every scenario.
func Names() []Name { return []Name{Approved, Declined, ThreeStages, PaidOut, Returned} }

// Parse parses a name. Error: VALIDATION_ERROR.
func Parse(text string) (Name, error) {
	if !slices.Contains(Names(), Name(text)) {
		return "", lending.Invalid("name", `"name" must be one of: %s`, lending.JoinNames(Names()))
	}
	return Name(text), nil
}

// Service runs scenarios.
type Service struct {
	Applications *application.Service
	Loans        *loan.Service
}

// Wanted is the scenario to run, and for whom.
type Wanted struct {
	Name       Name
	PartnerUID uuid.UUID
	By         loan.Caller
	// ProductUID is nil for the first active product that fits.
	ProductUID *uuid.UUID
}

// Outcome is the result of a scenario.
type Outcome struct {
	ApplicationUID uuid.UUID
	// HasLoan means that the loan is open.
	HasLoan bool
	// Steps say what was done, in order.
	Steps []string
}

// play is a running scenario.
type play struct {
	*Service

	tx      *postgres.Tx
	wanted  Wanted
	product lending.Product
	outcome Outcome
}

// asked is the amount that the borrower requests, within the product's bounds.
const asked = "25000.00"

// Play runs a scenario in the transaction. Errors: VALIDATION_ERROR for a product that does not
// fit, INVALID_STATE if none does.
func (s *Service) Play(ctx context.Context, tx *postgres.Tx, wanted Wanted) (Outcome, error) {
	p := &play{Service: s, tx: tx, wanted: wanted}
	products, err := s.Applications.Products.ListActive(ctx, tx)
	if err != nil {
		return Outcome{}, err
	}
	if p.product, err = choose(products, wanted); err != nil {
		return Outcome{}, err
	}
	if err := p.apply(ctx); err != nil || wanted.Name == Declined {
		return p.outcome, err
	}
	product, err := uuid.Parse(p.product.UID)
	if err != nil {
		return Outcome{}, fmt.Errorf("reading the product's uid: %w", err)
	}
	uid := p.outcome.ApplicationUID
	_, err = s.Applications.AcceptOffer(ctx, tx, wanted.By, application.Acceptance{
		ApplicationUID: uid, ProductUID: product,
	})
	if err != nil {
		return Outcome{}, err
	}
	p.step("Accepted the offer of %s", p.product.Code)
	app, err := s.Applications.Move(ctx, tx, wanted.By, uid, lending.StatusApproved)
	if err != nil {
		return Outcome{}, err
	}
	p.outcome.HasLoan = app.LoanOpen
	p.step("Moved to %s: the loan is open", app.Status)
	draws := 0
	switch wanted.Name {
	case ThreeStages, Returned:
		draws = 1
	case PaidOut:
		draws = len(p.product.Schedule)
	case Approved, Declined:
	}
	// Rounding may make a stage the last one: its share is all that is left to draw.
	for number, completed := 1, false; number <= draws && !completed; number++ {
		if completed, err = p.draw(ctx, number); err != nil {
			return Outcome{}, err
		}
	}
	return p.outcome, nil
}

// choose returns the named product, or the first that fits.
func choose(products []lending.Product, wanted Wanted) (lending.Product, error) {
	stages := 1
	if wanted.Name == ThreeStages {
		stages = 3
	}
	for _, product := range products {
		named := wanted.ProductUID == nil || product.UID == wanted.ProductUID.String()
		if named && len(product.Schedule) >= stages {
			return product, nil
		}
	}
	of, has := "", "there is no active product"
	if stages > 1 {
		of = fmt.Sprintf(" with at least %d stages", stages)
		has = fmt.Sprintf("no active product has at least %d stages", stages)
	}
	if wanted.ProductUID != nil {
		return lending.Product{}, lending.Invalid("product_uid",
			`"product_uid" must be an active product%s`, of)
	}
	return lending.Product{}, lending.NewError(lending.CodeInvalidState,
		"%s; ask the lender to set one up", has)
}

func (p *play) step(format string, args ...any) {
	p.outcome.Steps = append(p.outcome.Steps, fmt.Sprintf(format, args...))
}

// apply creates an application that gets an offer of the product, or none, and runs the decision.
func (p *play) apply(ctx context.Context) error {
	amount, err := lending.ParseMoney(asked)
	if err != nil {
		return err
	}
	request := application.NewApplication{
		Source: lending.SourcePartner, PartnerUID: p.wanted.PartnerUID,
		MerchantUID:     p.wanted.By.MerchantUID,
		RequestedAmount: lending.MaxMoney(lending.MinMoney(amount, p.product.Max), p.product.Min),
		Borrower: application.Borrower{
			FirstName: "Robin", LastName: "Sample", Email: "robin.sample@example.com",
		},
		Project: application.Project{Name: "Sandbox scenario: " + string(p.wanted.Name)},
	}
	if p.wanted.Name == Declined {
		// A borrower with an income of zero may owe nothing, so that no product makes an offer.
		request.Borrower.AnnualIncome = new(lending.Money)
	}
	app, err := p.Applications.Create(ctx, p.tx, request)
	if err != nil {
		return err
	}
	p.outcome.ApplicationUID = app.UID
	p.step("Created an application over %s", request.RequestedAmount)
	if app, err = p.Applications.RunDecision(ctx, p.tx, p.wanted.By, app.UID); err != nil {
		return err
	}
	p.step("Ran the decision: %s", app.Status)
	return nil
}

// draw requests the next draw and settles it; in the Returned scenario its money is returned. It
// reports whether the draw completed the loan.
func (p *play) draw(ctx context.Context, number int) (completed bool, err error) {
	open, err := p.Loans.Find(ctx, p.tx, p.outcome.ApplicationUID)
	if err != nil {
		return false, err
	}
	next, err := lending.DecideDraw(lending.StatusApproved, open,
		lending.DrawRequest{Documents: lending.DocumentsAssumed})
	if err != nil {
		return false, err
	}
	var input loan.DrawInput
	if next.DocumentsRequired {
		if input.Metadata, err = lending.ParseMetadata([]byte(`{"projectName":"Sandbox"}`)); err != nil {
			return false, err
		}
	}
	made, err := p.Loans.RequestDraw(ctx, p.tx, p.wanted.By, p.outcome.ApplicationUID, input)
	if err != nil {
		return false, err
	}
	p.step("Requested draw %d: disbursement %d over %s", number, made.ID, made.Gross)
	moves := []lending.FundingStatus{lending.FundingProcessing, lending.FundingSettled}
	if p.wanted.Name == Returned {
		moves = append(moves, lending.FundingReturned)
	}
	for _, to := range moves {
		_, _, err := p.Loans.MoveFunding(ctx, p.tx, p.wanted.By, made.ID,
			lending.FundingChange{Status: to})
		if err != nil {
			return false, err
		}
		p.step("Disbursement %d: %s", made.ID, string(to))
	}
	return next.Kind.Completes(), nil
}
