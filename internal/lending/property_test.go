package lending_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"drawbridge/internal/lending"
)

// model is an independent implementation of a loan, in whole cents and ten-thousandths of a
// percent, which uses nothing of the package but the names of codes and statuses. Random
// sequences of actions run on both, and both must agree.
type model struct {
	original        int64
	fee             int64
	shares, planned []int64
	draws           []modelDraw
}

type modelDraw struct {
	stage  int
	kind   string
	gross  int64
	said   int64 // updatedLoanAmount, 0 without it
	status string
}

// halfUp returns share (in ten-thousandths of a percent) of cents, rounded half up.
func halfUp(cents, share int64) int64 {
	const whole = 1_000_000
	// Split to avoid overflow: cents can be near 10^14.
	return cents/whole*share + (cents%whole*share+whole/2)/whole
}

func newModel(amount, fee int64, shares []int64) *model {
	m := &model{original: amount, fee: fee, shares: shares}
	m.planned = m.fresh()
	return m
}

// fresh returns the schedule of a loan of the approved amount without draws.
func (m *model) fresh() []int64 {
	planned := make([]int64, len(m.shares))
	rest := m.original
	for i := range m.shares[:len(m.shares)-1] {
		planned[i] = min(halfUp(m.original, m.shares[i]), rest)
		rest -= planned[i]
	}
	planned[len(planned)-1] = rest
	return planned
}

func (m *model) replan() {
	fresh, rest := m.fresh(), m.original
	for i := range m.planned {
		if m.drawn(i + 1) {
			fresh[i] = m.planned[i]
		} else if i == len(m.planned)-1 {
			fresh[i] = max(rest, 0)
		}
		rest -= fresh[i]
	}
	m.planned = fresh
}

func (m *model) live() []modelDraw {
	return slices.DeleteFunc(slices.Clone(m.draws), func(d modelDraw) bool {
		return d.status == "CANCELLED" || d.status == "RETURNED"
	})
}

// amount returns the updatedLoanAmount of the newest draw in force that had one, else the
// approved amount, and never less than what is drawn.
func (m *model) amount() int64 {
	amount := m.original
	for _, draw := range m.live() {
		if draw.said != 0 {
			amount = draw.said
		}
	}
	return max(amount, m.taken())
}

func (m *model) drawn(stage int) bool {
	return slices.ContainsFunc(m.live(), func(d modelDraw) bool { return d.stage == stage })
}

func (m *model) taken() int64 {
	sum := int64(0)
	for _, draw := range m.live() {
		sum += draw.gross
	}
	return sum
}

func (m *model) pending() bool {
	return slices.ContainsFunc(m.live(), func(d modelDraw) bool {
		return d.status != "FUNDING_SETTLED"
	})
}

// finished reports whether the last stage is drawn, by its own draw or by one that completed the
// loan early.
func (m *model) finished() bool {
	return m.drawn(len(m.shares)) ||
		slices.ContainsFunc(m.live(), func(d modelDraw) bool { return d.kind != "regular" })
}

func (m *model) nextStage() int {
	for stage := 1; stage < len(m.shares); stage++ {
		if !m.drawn(stage) && m.planned[stage-1] > 0 {
			return stage
		}
	}
	return len(m.shares)
}

// wish is a draw request in cents, -1 for an absent amount.
type wish struct {
	reduced, revised int64
	early, documents bool
}

// expect returns the code of the refusal, or the empty code and the draw.
func (m *model) expect(w wish) (lending.Code, modelDraw) {
	balance := m.amount() - m.taken()
	switch {
	case m.pending():
		return "DRAW_PENDING", modelDraw{}
	case balance <= 0 || m.drawn(m.nextStage()):
		// A draw was returned whose stage is no longer worth anything.
		return "AMOUNT_EXCEEDS_BALANCE", modelDraw{}
	}
	stage := m.nextStage()
	draw := modelDraw{stage: stage, kind: "regular", gross: m.planned[stage-1]}
	switch {
	case stage == len(m.shares) || balance <= draw.gross:
		draw.kind = "final"
	case w.early && len(m.live()) == 0:
		return "EARLY_COMPLETION_NOT_ALLOWED", draw
	case w.early:
		draw.kind = "early"
	}
	if completes := draw.kind != "regular"; completes != w.documents {
		if completes {
			return "COMPLETION_DOCUMENTS_REQUIRED", draw
		}
		return "COMPLETION_DOCUMENTS_NOT_ALLOWED", draw
	} else if completes {
		return m.expectCompleting(w, draw)
	}
	switch {
	case w.revised >= 0 || w.reduced == 0:
		return "VALIDATION_ERROR", draw
	case w.reduced >= draw.gross:
		return "AMOUNT_EXCEEDS_BALANCE", draw
	case w.reduced > 0:
		draw.gross = w.reduced
	}
	return "", draw
}

func (m *model) expectCompleting(w wish, draw modelDraw) (lending.Code, modelDraw) {
	draw.gross = m.amount() - m.taken()
	switch {
	case w.revised < 0:
		return "", draw
	case w.revised > m.original:
		return "AMOUNT_EXCEEDS_BALANCE", draw
	case w.revised <= m.taken():
		return "VALIDATION_ERROR", draw
	}
	draw.said = w.revised
	draw.gross = w.revised - m.taken()
	return "", draw
}

// machine runs each action on the loan and on the model.
type machine struct {
	loan   lending.Loan
	offer  lending.Offer
	model  *model
	offers int64 // the offer's max_amount in cents
}

func newMachine(t *rapid.T) *machine {
	shares, parts := drawSchedule(t)
	amount := rapid.OneOf(
		rapid.Int64Range(1, 200), rapid.Int64Range(1_000, 9_999_999),
		rapid.Int64Range(1, 50_000_000_000_000),
	).Draw(t, "amount")
	fee := rapid.SampledFrom([]int64{0, 1, 37_500, 125_001, 1_000_000}).Draw(t, "fee")
	feePercent, err := lending.ParsePercent(fmt.Sprintf("%d.%04d", fee/10_000, fee%10_000))
	if err != nil {
		t.Fatal(err)
	}
	offer := lending.Offer{
		ProductUID: "A", ProductCode: "A", Term: "12", MerchantFeePercentage: feePercent,
		ApprovedAmount: lending.Cents(amount), MaxAmount: lending.Cents(2 * amount),
	}
	return &machine{
		loan: lending.OpenLoan(offer, shares), offer: offer,
		model: newModel(amount, fee, parts), offers: 2 * amount,
	}
}

// amountNear generates an amount, often one at the boundary of a rule.
func (m *machine) amountNear(t *rapid.T, label string) int64 {
	stage := m.model.nextStage()
	edges := []int64{
		0, 1, m.model.amount(), m.model.original, m.model.taken(), m.model.planned[stage-1],
		m.model.amount() - m.model.taken(), m.offers,
	}
	edge := rapid.SampledFrom(edges).Draw(t, label)
	near := edge + rapid.Int64Range(-1, 1).Draw(t, label+" off by")
	anywhere := rapid.Int64Range(0, m.offers+1).Draw(t, label+" anywhere")
	return max(0, rapid.SampledFrom([]int64{near, near, anywhere}).Draw(t, label+" chosen"))
}

// Draw requests a draw.
func (m *machine) Draw(t *rapid.T) {
	w := wish{
		reduced: -1, revised: -1,
		early:     rapid.Bool().Draw(t, "early"),
		documents: rapid.Bool().Draw(t, "documents"),
	}
	request := lending.DrawRequest{ProjectCompletedEarly: w.early}
	if w.documents {
		request.Documents = lending.DocumentsGiven
	}
	if rapid.Bool().Draw(t, "has reduced") {
		w.reduced = m.amountNear(t, "reduced")
		reduced := lending.Cents(w.reduced)
		request.UpdatedDisbursementAmount = &reduced
	}
	if rapid.Bool().Draw(t, "has revised") {
		w.revised = m.amountNear(t, "revised")
		revised := lending.Cents(w.revised)
		request.UpdatedLoanAmount = &revised
	}
	m.request(t, w, request)
}

// Next requests the next due draw, so that sequences reach their end.
func (m *machine) Next(t *rapid.T) {
	w := wish{reduced: -1, revised: -1}
	_, due := m.model.expect(w)
	w.documents = due.kind == "final"
	request := lending.DrawRequest{}
	if w.documents {
		request.Documents = lending.DocumentsGiven
	}
	m.request(t, w, request)
}

func (m *machine) request(t *rapid.T, w wish, request lending.DrawRequest) {
	code, want := m.model.expect(w)
	got, err := lending.DecideDraw(lending.StatusApproved, &m.loan, request)
	if lending.ErrorCode(err) != code {
		t.Fatalf("%+v: %v, want %q", w, err, code)
	}
	if err != nil {
		return
	}
	fee := halfUp(want.gross, m.model.fee)
	wanted := fmt.Sprintf("%s %d %s %s %s", want.kind, want.stage, lending.Cents(want.gross),
		lending.Cents(fee), lending.Cents(want.gross-fee))
	if outcome(got, nil) != wanted {
		t.Fatalf("%+v: %s, want %s", w, outcome(got, nil), wanted)
	}
	m.loan = m.loan.WithDraw(int64(100+len(m.model.draws)), got)
	want.status = "FUNDING_REQUESTED"
	m.model.draws = append(m.model.draws, want)
}

// Fund moves a random disbursement to a random status, mostly a permitted one.
func (m *machine) Fund(t *rapid.T) {
	if len(m.model.draws) == 0 {
		return
	}
	at := len(m.model.draws) - 1
	if rapid.IntRange(0, 4).Draw(t, "older") == 0 {
		at = rapid.IntRange(0, at).Draw(t, "disbursement")
	}
	draw := &m.model.draws[at]
	to := rapid.SampledFrom([]string{
		"FUNDING_REQUESTED", "FUNDING_PROCESSING", "FUNDING_PROCESSING", "FUNDING_SETTLED",
		"FUNDING_SETTLED", "CANCELLED", "RETURNED",
	}).Draw(t, "to")
	allowed := slices.Contains([]string{
		"FUNDING_REQUESTED>FUNDING_PROCESSING", "FUNDING_PROCESSING>FUNDING_SETTLED",
		"FUNDING_REQUESTED>CANCELLED", "FUNDING_PROCESSING>CANCELLED",
		"FUNDING_SETTLED>RETURNED",
	}, draw.status+">"+to)
	moved, changed, err := m.loan.MoveDisbursement(int64(100+at), lending.FundingStatus(to))
	if changed != allowed || (err != nil) != (!allowed && draw.status != to) {
		t.Fatalf("%s to %s: changed %v, %v", draw.status, to, changed, err)
	}
	m.loan = moved
	if !allowed {
		return
	}
	draw.status = to
	if to == "CANCELLED" || to == "RETURNED" {
		m.model.replan()
	}
}

// ChangeAmount changes the approved amount.
func (m *machine) ChangeAmount(t *rapid.T) {
	cents := m.amountNear(t, "approved")
	want := lending.Code("")
	switch {
	case m.model.finished():
		want = "INVALID_STATE"
	case cents == 0 || cents > m.offers || cents < m.model.taken():
		want = "VALIDATION_ERROR"
	}
	change, err := lending.Approval{
		Status: lending.StatusApproved, Offers: []lending.Offer{m.offer}, ProductUID: "A", Loan: &m.loan,
	}.ChangeAmount(lending.Cents(cents))
	if lending.ErrorCode(err) != want {
		t.Fatalf("amount %d: %v, want %q", cents, err, want)
	}
	if err != nil {
		return
	}
	if change.Changed != (cents != m.model.original) {
		t.Fatalf("amount %d instead of %d: changed %v", cents, m.model.original, change.Changed)
	}
	m.offer, m.loan = change.Updated, *change.Loan
	m.model.original = cents
	m.model.replan()
}

// Check runs after every action.
func (m *machine) Check(t *rapid.T) {
	loan, model := m.loan, m.model
	same := map[string][2]lending.Money{
		"amount":   {loan.Amount(), lending.Cents(model.amount())},
		"original": {loan.OriginalAmount, lending.Cents(model.original)},
		"drawn":    {loan.Drawn(), lending.Cents(model.taken())},
		"balance":  {loan.Balance(), loan.Amount().Sub(loan.Drawn())},
	}
	for i, planned := range model.planned {
		same[fmt.Sprintf("stage %d", i+1)] = [2]lending.Money{
			loan.Stages[i].Scheduled, lending.Cents(planned),
		}
	}
	for what, pair := range same {
		if !pair[0].Equal(pair[1]) {
			t.Fatalf("%s is %s, want %s", what, pair[0], pair[1])
		}
	}
	if loan.Balance().IsNegative() || loan.OriginalAmount.Less(loan.Amount()) {
		t.Fatalf("balance %s of %s, originally %s", loan.Balance(), loan.Amount(), loan.OriginalAmount)
	}
	m.checkDisbursements(t)
}

func (m *machine) checkDisbursements(t *rapid.T) {
	pending, returned, stages := 0, false, map[int]bool{}
	for i, disbursement := range m.loan.Disbursements {
		if disbursement.Number != i+1 || string(disbursement.Status) != m.model.draws[i].status {
			t.Fatalf("disbursement %d is %+v", i+1, disbursement)
		}
		if !disbursement.Gross.IsPositive() || disbursement.Net.IsNegative() ||
			!disbursement.Net.Add(disbursement.Fee).Equal(disbursement.Gross) {
			t.Fatalf("disbursement %d pays %+v", i+1, disbursement)
		}
		if disbursement.Status.IsPending() {
			pending++
		}
		if disbursement.Status == lending.FundingReturned {
			returned = true
			continue
		}
		if disbursement.Status == lending.FundingCancelled {
			continue
		}
		if stages[disbursement.Stage] {
			t.Fatalf("stage %d is drawn twice", disbursement.Stage)
		}
		stages[disbursement.Stage] = true
	}
	if pending > 1 || m.loan.IsPending() != (pending == 1) {
		t.Fatalf("%d draws are pending", pending)
	}
	// Once everything was drawn, only returned money can be left.
	if m.loan.IsCompleted() && !returned && !m.loan.Balance().IsZero() {
		t.Fatalf("a completed loan has %s left", m.loan.Balance())
	}
}

// Each of the parallel runs checks a hundred sequences.
func TestRandomSequencesAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	for run := range 30 {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				m := newMachine(t)
				t.Repeat(map[string]func(*rapid.T){
					"": m.Check, "draw": m.Draw, "next": m.Next, "next again": m.Next,
					"fund": m.Fund, "fund again": m.Fund, "change amount": m.ChangeAmount,
				})
			})
		})
	}
}

func TestFullScheduleDrawsTheWholeLoan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		whole := m.loan.Amount()
		for range len(m.loan.Stages) {
			if m.loan.IsCompleted() {
				break
			}
			m.Next(t)
			last := m.loan.Disbursements[len(m.loan.Disbursements)-1]
			for _, to := range []lending.FundingStatus{"FUNDING_PROCESSING", "FUNDING_SETTLED"} {
				m.loan, _, _ = m.loan.MoveDisbursement(last.ID, to)
			}
			m.model.draws[len(m.model.draws)-1].status = "FUNDING_SETTLED"
			m.Check(t)
		}
		if !m.loan.Drawn().Equal(whole) || !m.loan.IsCompleted() {
			t.Fatalf("%s of %s were drawn", m.loan.Drawn(), whole)
		}
	})
}
