package apptest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/application"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// Draft says what an application is to become.
type Draft struct {
	application.NewApplication

	status   lending.ApplicationStatus
	selected uuid.UUID
}

// Option changes a draft.
type Option func(*Draft)

// In brings the application into a status; a status from Hard Pull Authorization on includes a
// decision.
func In(status lending.ApplicationStatus) Option { return func(d *Draft) { d.status = status } }

// Selecting accepts the offer of a product at the end.
func Selecting(product lending.Product) Option {
	return func(d *Draft) { d.selected = uuid.MustParse(product.UID) }
}

// Requesting sets the requested amount, such as "12000.00".
func Requesting(amount string) Option {
	return func(d *Draft) { d.RequestedAmount = Money(amount) }
}

// Earning states the borrower's annual income.
func Earning(income string) Option {
	return func(d *Draft) {
		d.Borrower.AnnualIncome = new(Money(income))
	}
}

// LastName sets the last name, by which the test controls the decision.
func LastName(name string) Option { return func(d *Draft) { d.Borrower.LastName = name } }

// From sets the interface that creates the application.
func From(source lending.Source) Option { return func(d *Draft) { d.Source = source } }

// Of makes it an application of another merchant.
func Of(partnerUID, merchantUID uuid.UUID) Option {
	return func(d *Draft) { d.PartnerUID, d.MerchantUID = partnerUID, merchantUID }
}

// Application makes an application: of the harness's merchant, for 10,000.00, from the partner
// interface, in Pending Review, unless the options say otherwise.
func (h *Harness) Application(t testing.TB, options ...Option) application.Application {
	t.Helper()
	draft := Draft{
		NewApplication: application.NewApplication{
			Source:          lending.SourcePartner,
			PartnerUID:      h.Partner,
			MerchantUID:     h.Merchant,
			RequestedAmount: Money("10000"),
			Borrower: application.Borrower{
				FirstName: "Ana", LastName: "Lima", Email: "ana@example.com",
			},
			Project: application.Project{Name: "Roof"},
		},
		status: lending.StatusPendingReview,
	}
	for _, option := range options {
		option(&draft)
	}
	uid := do(t, h, func(ctx context.Context, tx *postgres.Tx) (application.Application, error) {
		return h.Applications.Create(ctx, tx, draft.NewApplication)
	}).UID
	if draft.status != lending.StatusPendingReview {
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Applications.RunDecision(ctx, tx, Operator(), uid)
			return err
		})
		h.Move(t, uid, draft.status)
	}
	if draft.selected != uuid.Nil {
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Applications.AcceptOffer(ctx, tx, Operator(), application.Acceptance{
				ApplicationUID: uid, ProductUID: draft.selected,
			})
			return err
		})
	}
	return h.Get(t, uid)
}

// Loan makes an Approved application with an open loan over the requested amount
// under the product.
func (h *Harness) Loan(
	t testing.TB, product lending.Product, options ...Option,
) application.Application {
	t.Helper()
	return h.Application(t,
		append([]Option{In(lending.StatusApproved), Selecting(product)}, options...)...)
}

// Get loads an application.
func (h *Harness) Get(t testing.TB, uid uuid.UUID) application.Application {
	t.Helper()
	app, err := h.Applications.Get(t.Context(), Operator(), uid)
	must(t, err)
	return app
}

// GetLoan loads a loan.
func (h *Harness) GetLoan(t testing.TB, uid uuid.UUID) loan.Loan {
	t.Helper()
	found, err := h.Loans.Get(t.Context(), Operator(), uid)
	must(t, err)
	return found
}

// Move moves an application to a status.
func (h *Harness) Move(t testing.TB, uid uuid.UUID, to lending.ApplicationStatus) {
	t.Helper()
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Applications.Move(ctx, tx, Operator(), uid, to)
		return err
	})
}

// Amid runs read in the middle of a change: the first statement of read that needs the table waits
// until the change has committed.
func (h *Harness) Amid(
	t testing.TB, table string, change func(ctx context.Context, tx *postgres.Tx) error, read func(),
) {
	t.Helper()
	done := make(chan struct{})
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `LOCK TABLE `+table); err != nil {
			return err
		}
		if err := change(ctx, tx); err != nil {
			return err
		}
		go func() {
			defer close(done)
			read()
		}()
		pgtest.WaitForLock(t, h.DB)
		return nil
	})
	<-done
}

// Draw requests a draw as the harness's merchant.
func (h *Harness) Draw(t testing.TB, uid uuid.UUID, input loan.DrawInput) loan.Disbursement {
	t.Helper()
	return do(t, h, func(ctx context.Context, tx *postgres.Tx) (loan.Disbursement, error) {
		return h.Loans.RequestDraw(ctx, tx, h.Caller(), uid, input)
	})
}

// Fund moves the money of a disbursement through the statuses.
func (h *Harness) Fund(t testing.TB, id int64, statuses ...lending.FundingStatus) {
	t.Helper()
	for _, to := range statuses {
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := h.Loans.MoveFunding(ctx, tx, Operator(), id,
				lending.FundingChange{Status: to})
			return err
		})
	}
}

// Settle moves the money of a requested disbursement to the settled status.
func (h *Harness) Settle(t testing.TB, id int64) {
	t.Helper()
	h.Fund(t, id, lending.FundingProcessing, lending.FundingSettled)
}

// Documented returns a draw request with metadata and these files.
func Documented(files ...document.File) loan.DrawInput {
	metadata, err := lending.ParseMetadata([]byte(
		`{"projectName":"Roof","completionDate":"2026-03-01","systemDetails":{"panelCount":12}}`))
	if err != nil {
		panic(err) // a mistake in the line above
	}
	return loan.DrawInput{Metadata: metadata, Files: files}
}

// File describes a stored PDF whose content is the text.
func File(name, text string) document.File {
	uid, sum := uuid.New(), sha256.Sum256([]byte(text))
	return document.File{
		UID: uid, Name: name, Size: int64(len(text)), ContentType: "application/pdf",
		SHA256: hex.EncodeToString(sum[:]), Key: "documents/" + uid.String(),
	}
}

// Money reads an amount such as "12000.00" and panics if it cannot.
func Money(text string) lending.Money {
	amount, err := lending.ParseMoney(text)
	if err != nil {
		panic(err)
	}
	return amount
}
