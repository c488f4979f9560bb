package lending

import "slices"

// Stage is one step of a loan's schedule.
type Stage struct {
	// Number counts from 1.
	Number int `json:"stage"`
	// Percent is the share of the loan amount.
	Percent Percent `json:"percentage"`
	// Scheduled is the amount planned for the stage, whatever was drawn for it.
	Scheduled Money `json:"scheduled_amount"`
}

// DrawKind says what a draw does to the loan.
type DrawKind string

// The kinds of draws. Final and early ones take the whole remaining balance.
const (
	DrawRegular DrawKind = "regular"
	DrawFinal   DrawKind = "final"
	DrawEarly   DrawKind = "early"
)

// Completes reports whether a draw of this kind ends the loan.
func (k DrawKind) Completes() bool { return k == DrawFinal || k == DrawEarly }

// Disbursement is a draw that was granted.
type Disbursement struct {
	ID int64 `db:"merchant_disbursement_id"`
	// Number is sequential within the loan, from 1; one of a cancelled draw is not reused.
	Number int `db:"disbursement_number"`
	// Stage is the number of the stage that the disbursement pays out.
	Stage  int
	Kind   DrawKind
	Gross  Money `db:"gross_amount"`
	Fee    Money `db:"fee_amount"`
	Net    Money `db:"net_amount"`
	Status FundingStatus
	// UpdatedLoanAmount is nil for a draw that did not revise the loan amount.
	UpdatedLoanAmount *Money `db:"updated_loan_amount"`
}

// Loan is an open loan with everything drawn from it.
type Loan struct {
	// OriginalAmount is the approved amount, which bounds a revised one.
	OriginalAmount Money
	// FeePercent is the merchant fee that the next draw pays.
	FeePercent Percent
	Stages     []Stage
	// Disbursements are by number.
	Disbursements []Disbursement
}

// OpenLoan returns the loan for an accepted offer.
func OpenLoan(offer Offer, schedule Schedule) Loan {
	return Loan{
		OriginalAmount: offer.ApprovedAmount,
		FeePercent:     offer.MerchantFeePercentage,
		Stages:         schedule.Stages(offer.ApprovedAmount),
	}
}

// LoanToOpen returns the offer for which a loan is due: the application is
// Approved and the selected product made it an offer. False means not yet.
func LoanToOpen(status ApplicationStatus, offers []Offer, productUID string) (Offer, bool) {
	if status != StatusApproved {
		return Offer{}, false
	}
	return SelectedOffer(offers, productUID)
}

// Amount returns the total that may be drawn: the amount to which the newest draw in force with
// a revision set it, else the approved amount. It is computed from the draws alone, so no order
// of draws and returns can make it wrong. If a later draw is returned, an earlier, lower
// revision applies again and more may already be drawn; Amount is then what is drawn.
func (l Loan) Amount() Money {
	amount := l.OriginalAmount
	for _, disbursement := range l.live() {
		amount = valueOr(disbursement.UpdatedLoanAmount, amount)
	}
	return MaxMoney(amount, l.Drawn())
}

// Drawn returns the gross of every disbursement in force, pending ones included.
func (l Loan) Drawn() Money {
	var drawn Money
	for _, disbursement := range l.live() {
		drawn = drawn.Add(disbursement.Gross)
	}
	return drawn
}

// Balance returns what is left to draw.
func (l Loan) Balance() Money { return l.Amount().Sub(l.Drawn()) }

// IsPending reports whether the money of a draw is still under way. If not, every earlier draw
// was disbursed, or was cancelled or returned and left its stage open: draw rule 5.
func (l Loan) IsPending() bool {
	return slices.ContainsFunc(l.Disbursements, func(d Disbursement) bool {
		return d.Status.IsPending()
	})
}

// IsCompleted reports whether a final or early draw is in force, so that no stage is left even
// if the schedule had more.
func (l Loan) IsCompleted() bool {
	return slices.ContainsFunc(l.live(), func(d Disbursement) bool { return d.Kind.Completes() })
}

// NextNumber returns the number of the next disbursement.
func (l Loan) NextNumber() int {
	highest := 0
	for _, disbursement := range l.Disbursements {
		highest = max(highest, disbursement.Number)
	}
	return highest + 1
}

// NextStage returns the first stage that has no draw. It skips a stage whose share rounded to
// zero unless that is the last. False means that every stage is drawn.
func (l Loan) NextStage() (Stage, bool) {
	for _, stage := range l.Stages {
		if l.isDrawn(stage) || stage.Scheduled.IsZero() && !l.isLast(stage) {
			continue
		}
		return stage, true
	}
	return Stage{}, false
}

// WithDraw returns the loan after the draw was granted as disbursement id.
func (l Loan) WithDraw(id int64, draw Draw) Loan {
	disbursement := Disbursement{
		ID: id, Number: l.NextNumber(), Stage: draw.Stage, Kind: draw.Kind,
		Gross: draw.Gross, Fee: draw.Fee, Net: draw.Net, Status: FundingRequested,
		UpdatedLoanAmount: draw.NewLoanAmount,
	}
	l.Disbursements = append(slices.Clone(l.Disbursements), disbursement)
	return l
}

// MoveDisbursement returns the loan after the funding of a disbursement moved to another status,
// and whether that changed anything. A cancelled or returned draw frees its stage and balance,
// and its revised loan amount no longer applies, so Amount and Stages may change. Errors: as
// FundingStatus.Move, and NOT_FOUND for an id that is not of this loan.
func (l Loan) MoveDisbursement(id int64, to FundingStatus) (Loan, bool, error) {
	at := slices.IndexFunc(l.Disbursements, func(d Disbursement) bool { return d.ID == id })
	if at < 0 {
		return l, false, NewError(CodeNotFound, "the loan has no disbursement %d", id)
	}
	changed, err := l.Disbursements[at].Status.Move(to)
	if err != nil || !changed {
		return l, false, err
	}
	l.Disbursements = slices.Clone(l.Disbursements)
	l.Disbursements[at].Status = to
	if to.InForce() {
		return l, true, nil
	}
	// The approved amount may have changed since the draw: the freed stage gets its share of the
	// current one.
	l.Stages = l.stagesFor(l.OriginalAmount)
	return l, true, nil
}

// stagesFor recomputes the stages not yet drawn: each takes its share of the amount, and the
// last takes the amount less all stages before it. If draws under an older amount leave less
// than zero, the last is 0.00.
func (l Loan) stagesFor(amount Money) []Stage {
	shares := make(Schedule, len(l.Stages))
	for i, stage := range l.Stages {
		shares[i] = stage.Percent
	}
	fresh := shares.Stages(amount)
	left := amount
	for i, stage := range l.Stages {
		switch {
		case l.isDrawn(stage):
			fresh[i].Scheduled = stage.Scheduled
		case l.isLast(stage):
			fresh[i].Scheduled = MaxMoney(left, Money{})
		}
		left = left.Sub(fresh[i].Scheduled)
	}
	return fresh
}

// live returns the disbursements in force.
func (l Loan) live() []Disbursement {
	live := make([]Disbursement, 0, len(l.Disbursements))
	for _, disbursement := range l.Disbursements {
		if disbursement.Status.InForce() {
			live = append(live, disbursement)
		}
	}
	return live
}

func (l Loan) isDrawn(stage Stage) bool {
	return slices.ContainsFunc(l.live(), func(d Disbursement) bool {
		return d.Stage == stage.Number
	})
}

func (l Loan) isLast(stage Stage) bool { return stage.Number == len(l.Stages) }
