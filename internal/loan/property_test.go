package loan_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// machine runs actions on the services with one loan, and on the pure rules alongside.
type machine struct {
	t     *testing.T
	world *apptest.Harness
	uid   uuid.UUID
	model lending.Loan
	// status is the application's.
	status lending.ApplicationStatus
	// recorded are the draw statuses that events must report, in this order.
	recorded []string
}

// Random sequences of everything that can happen to a loan: the tables agree with the pure
// rules, and the money in them adds up after every step.
func TestLoansFollowTheRules(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	products := []lending.Product{
		w.NewProduct(t, "WHOLE", "100"),
		w.NewProduct(t, "HALVES", "50,50"),
		w.NewProduct(t, "SOLAR", "40,40,20"),
		w.NewProduct(t, "THIRDS", "33.33,33.33,33.34"),
		w.NewProduct(t, "TENTHS", "10,10,10,10,10,10,10,10,10,10"),
	}
	rapid.Check(t, func(r *rapid.T) {
		product := rapid.SampledFrom(products).Draw(r, "product")
		asked := lending.Cents(rapid.Int64Range(100_000, 9_999_999).Draw(r, "requested"))
		app := w.Loan(t, product, apptest.Requesting(asked.String()))
		m := &machine{t: t, world: w, uid: app.UID, status: app.Status}
		m.model = w.GetLoan(t, app.UID).Loan
		// Draws and their funding are most of what happens to a loan.
		actions := []func(*rapid.T){
			m.draw, m.draw, m.draw, m.fund, m.fund, m.fund, m.amount, m.fee, m.leaveOrReturn,
		}
		for range rapid.IntRange(1, 16).Draw(r, "steps") {
			rapid.SampledFrom(actions).Draw(r, "action")(r)
			m.check(r)
		}
	})
}

// same fails the test unless the service refused exactly what the rules refused.
func (m *machine) same(r *rapid.T, got, want error) bool {
	if lending.ErrorCode(got) != lending.ErrorCode(want) || (got == nil) != (want == nil) ||
		(got != nil && got.Error() != want.Error()) {
		r.Fatalf("the service answered %v, the rules say %v", got, want)
	}
	return got == nil
}

func (m *machine) draw(r *rapid.T) {
	var input loan.DrawInput
	if rapid.Bool().Draw(r, "documents") {
		input = apptest.Documented()
	}
	switch rapid.SampledFrom([]string{"plain", "reduced", "revised"}).Draw(r, "amounts") {
	case "reduced":
		amount := m.anyAmount(r)
		input.Request.UpdatedDisbursementAmount = &amount
	case "revised":
		amount := m.anyAmount(r)
		input.Request.UpdatedLoanAmount = &amount
	}
	input.Request.ProjectCompletedEarly = rapid.Bool().Draw(r, "early")

	var made loan.Disbursement
	err := m.world.Try(m.t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = m.world.Loans.RequestDraw(ctx, tx, m.world.Caller(), m.uid, input)
		return err
	})
	request := input.Request
	if !input.Metadata.IsZero() {
		request.Documents = lending.DocumentsGiven
	}
	draw, want := lending.DecideDraw(m.status, &m.model, request)
	if m.same(r, err, want) {
		m.model = m.model.WithDraw(made.ID, draw)
		m.recorded = append(m.recorded, string(lending.FundingRequested))
	}
}

// fund makes several moves at once, each of which applies to the result of those before it.
func (m *machine) fund(r *rapid.T) {
	if len(m.model.Disbursements) == 0 {
		return
	}
	moves := make([]loan.Move, rapid.IntRange(1, 4).Draw(r, "moves"))
	for i := range moves {
		moves[i].ID = rapid.SampledFrom(m.model.Disbursements).Draw(r, "disbursement").ID
		moves[i].Status = rapid.SampledFrom(lending.AllFundingStatuses()).Draw(r, "status")
	}
	var made []loan.Moved
	err := m.world.Try(m.t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, err = m.world.Loans.MoveFundings(ctx, tx, m.world.Caller(), moves)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	for i, move := range moves {
		after, changed, want := m.model.MoveDisbursement(move.ID, move.Status)
		if m.same(r, made[i].Refusal, want) {
			m.model = after
		}
		if made[i].Changed != changed {
			r.Fatalf("%v says changed: %t", move, made[i].Changed)
		}
		if changed {
			m.recorded = append(m.recorded, lending.FundingChanged("", move.Status).Status)
		}
	}
}

func (m *machine) amount(r *rapid.T) {
	amount := m.anyAmount(r)
	decide := func(a lending.Approval) (lending.OfferChange, error) { return a.ChangeAmount(amount) }
	m.change(r, decide,
		func(ctx context.Context, tx *postgres.Tx) error {
			_, err := m.world.Applications.ChangeAmount(ctx, tx, m.world.Caller(), m.uid, amount)
			return err
		})
}

func (m *machine) fee(r *rapid.T) {
	fee := rapid.SampledFrom([]string{"0", "1.5", "3.75", "100"}).Draw(r, "fee")
	terms, err := lending.ParseTerms(nil, nil, &fee)
	if err != nil {
		r.Fatal(err)
	}
	decide := func(a lending.Approval) (lending.OfferChange, error) { return a.ChangeTerms(terms) }
	m.change(r, decide,
		func(ctx context.Context, tx *postgres.Tx) error {
			_, err := m.world.Applications.ChangeTerms(ctx, tx, m.world.Caller(), m.uid, terms)
			return err
		})
}

func (m *machine) change(
	r *rapid.T, decide func(lending.Approval) (lending.OfferChange, error),
	use func(ctx context.Context, tx *postgres.Tx) error,
) {
	app := m.world.Get(m.t, m.uid)
	outcome, want := decide(lending.Approval{
		Status: m.status, Offers: app.Offers, ProductUID: app.SelectedProductUID.String(),
		Loan: &m.model,
	})
	if m.same(r, m.world.Try(m.t, use), want) {
		m.model = *outcome.Loan
	}
}

func (m *machine) leaveOrReturn(*rapid.T) {
	if m.status = lending.StatusPendClearance; m.world.Get(m.t, m.uid).Status == m.status {
		m.status = lending.StatusApproved
	}
	m.world.Move(m.t, m.uid, m.status)
}

// anyAmount generates an amount near a boundary, and sometimes zero.
func (m *machine) anyAmount(r *rapid.T) lending.Money {
	near := []lending.Money{
		{}, m.model.Amount(), m.model.OriginalAmount, m.model.Balance(), m.model.Drawn(),
	}
	for _, stage := range m.model.Stages {
		near = append(near, stage.Scheduled)
	}
	amount := rapid.SampledFrom(near).Draw(r, "near")
	amount = amount.Add(lending.Cents(rapid.Int64Range(-50_000, 50_000).Draw(r, "off")))
	return lending.MaxMoney(amount, lending.Money{})
}

// check compares the tables with the model, and the totals with their parts.
func (m *machine) check(r *rapid.T) {
	stored := m.world.GetLoan(m.t, m.uid)
	if diff := cmp.Diff(m.model, stored.Loan, cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("the tables differ from the rules (-rules +tables):\n%s", diff)
	}
	for _, draw := range stored.History {
		if last := draw.AsOf(time.Now().Add(time.Hour)).Status; last != draw.Status {
			r.Fatalf("disbursement %d is %s, its last change says %s", draw.ID, draw.Status, last)
		}
	}
	var recorded []string
	for _, event := range m.world.EventsOf(m.t, m.uid) {
		if strings.HasPrefix(string(event.Kind), "disbursement.") {
			recorded = append(recorded, event.Status)
		}
	}
	if diff := cmp.Diff(m.recorded, recorded, cmpopts.EquateEmpty()); diff != "" {
		r.Fatalf("events (-want +got):\n%s", diff)
	}
	if stored.Balance().IsNegative() {
		r.Fatalf("balance %s", stored.Balance())
	}
	if m.world.Count(m.t, `
		SELECT count(*)
		  FROM loans l
		  JOIN offers o USING (application_uid, product_uid)
		 WHERE l.application_uid = $1
		   AND l.original_amount = o.approved_amount
		   AND l.drawn_amount = (SELECT coalesce(sum(gross_amount), 0)
		                           FROM disbursements
		                          WHERE application_uid = $1
		                            AND status NOT IN ('CANCELLED', 'RETURNED'))`, m.uid) != 1 {
		r.Fatal("drawn_amount is not the sum of the draws that stand, " +
			"or original_amount not the approved amount")
	}
}
