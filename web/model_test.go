package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
)

// seen is what the lender's systems, subscribers and the borrower see of an application.
type seen struct {
	Status         lending.ApplicationStatus `json:"status"`
	Communications lending.Communications    `json:"communications"`
	Variables      struct {
		Product string `json:"selected_product"`
	} `json:"variables"`
	Offers        []lending.Offer        `json:"offers"`
	Loan          *seenLoan              `json:"loan"`
	Document      lending.DocumentStatus `json:"document_status"`
	Tasks         []seenTask             `json:"tasks"`
	Updated       time.Time              `json:"updated_at"`
	Events, Mails []string               `json:"-"`
}

// sort sorts the lists whose order is undefined if a clock goes back.
func (s *seen) sort() {
	slices.Sort(s.Mails)
	slices.SortFunc(s.Tasks, func(a, b seenTask) int { return strings.Compare(a.UID, b.UID) })
}

type seenLoan struct {
	Original lending.Money   `json:"original_amount"`
	Amount   lending.Money   `json:"loan_amount"`
	Drawn    lending.Money   `json:"drawn_amount"`
	Balance  lending.Money   `json:"balance"`
	Stages   []lending.Stage `json:"schedule"`
	Draws    []seenDraw      `json:"disbursements"`
}

type seenDraw struct {
	ID     int64                 `json:"merchantDisbursementId"`
	Number int                   `json:"disbursementNumber"`
	Kind   lending.DrawKind      `json:"kind"`
	Gross  lending.Money         `json:"grossDisbursedAmount"`
	Net    lending.Money         `json:"netDisbursedAmount"`
	Status lending.FundingStatus `json:"status"`
}

type seenTask struct {
	UID    string             `json:"task_uid"`
	Status lending.TaskStatus `json:"status"`
}

// model is an application according to the pure rules alone.
type model struct {
	seen

	decided bool
	product lending.Product // the selected one; no uid if none is
	loan    *lending.Loan
}

func (m *model) clone() *model {
	other := *m
	other.Tasks = slices.Clone(m.Tasks)
	other.Events, other.Mails = slices.Clone(m.Events), slices.Clone(m.Mails)
	return &other
}

// view sets the fields that follow from the others.
func (m *model) view() seen {
	m.Variables.Product = m.product.Code
	m.sort()
	if m.loan == nil {
		return m.seen
	}
	m.Loan = &seenLoan{
		Original: m.loan.OriginalAmount, Amount: m.loan.Amount(), Drawn: m.loan.Drawn(),
		Balance: m.loan.Balance(), Stages: m.loan.Stages,
	}
	for _, d := range m.loan.Disbursements {
		m.Loan.Draws = append(m.Loan.Draws,
			seenDraw{ID: d.ID, Number: d.Number, Kind: d.Kind, Gross: d.Gross, Net: d.Net, Status: d.Status})
	}
	return m.seen
}

func (m *model) record(event lending.Event) {
	m.Events = append(m.Events, string(event.Kind)+" "+event.Status)
}

func (m *model) mail(kind string) {
	state := "suppressed"
	if m.Communications == lending.CommunicationsEnabled {
		state = "queued"
	}
	m.Mails = append(m.Mails, kind+" "+state)
}

func (m *model) enter(to lending.ApplicationStatus) error {
	changed, err := m.Status.Move(to)
	if changed {
		m.Status = to
		m.record(lending.StatusUpdated("", to, nil))
		if to.NeedsStipulation() {
			m.mail("stipulation")
		}
		m.open()
	}
	return err
}

func (m *model) open() {
	offer, due := lending.LoanToOpen(m.Status, m.Offers, m.product.UID)
	if due && m.loan == nil {
		loan := lending.OpenLoan(offer, m.product.Schedule)
		m.loan = &loan
	}
}

func (m *model) decide(request lending.DecisionRequest) error {
	request.Status, request.Decided = m.Status, m.decided
	decision, err := lending.Decide(request)
	if err != nil {
		return err
	}
	m.decided, m.Offers = true, decision.Offers
	m.open()
	return m.enter(decision.Status)
}

func (m *model) accept(product lending.Product) error {
	_, offered := lending.SelectedOffer(m.Offers, product.UID)
	switch {
	case m.Status.IsFinal():
		return lending.NewError(lending.CodeInvalidState, "")
	case m.product.UID == product.UID:
		return nil
	case m.decided && !offered:
		return lending.ProductNotFound()
	case m.loan != nil:
		return lending.NewError(lending.CodeInvalidState, "")
	}
	m.product = product
	if m.Communications != lending.CommunicationsEnabled {
		m.Communications = lending.CommunicationsEnabled
		m.mail("welcome")
	}
	m.open()
	return nil
}

func (m *model) change(
	edit func(lending.Approval) (lending.OfferChange, error), event lending.Event,
) error {
	outcome, err := edit(lending.Approval{
		Status: m.Status, Offers: m.Offers, ProductUID: m.product.UID, Loan: m.loan,
	})
	if err == nil && outcome.Changed {
		m.Offers, m.loan = outcome.Offers, outcome.Loan
		m.record(event)
	}
	return err
}

func (m *model) draw(request lending.DrawRequest, answer apptest.Answer) error {
	draw, err := lending.DecideDraw(m.Status, m.loan, request)
	if err == nil {
		loan := m.loan.WithDraw(apptest.DisbursementID(answer), draw)
		m.loan = &loan
		m.record(lending.FundingChanged("", lending.FundingRequested))
	}
	return err
}

func (m *model) fund(id int64, to lending.FundingStatus) error {
	loan, changed, err := m.loan.MoveDisbursement(id, to)
	if changed {
		m.loan = &loan
		m.record(lending.FundingChanged("", to))
	}
	return err
}

// step is a request and its expected effect by the rules, given the ids in its answer.
type step struct {
	call apptest.Call
	do   func(*model, apptest.Answer) error
}

// machine sends requests about one application.
type machine struct {
	*apptest.Server

	r        *rapid.T
	bank     apptest.Account
	clock    *apptest.Clock
	products []lending.Product
	asked    lending.Money
	uid      uuid.UUID
	now      *model
}

// TestWhateverIsCalled sends random requests of a partner and of the lender, some of them two
// at once, some repeated under their key, while the clock advances, stops and goes back.
// Answers, events and mails must follow from the pure rules, in some order of the requests.
func TestWhateverIsCalled(t *testing.T) {
	t.Parallel()
	clock, db := apptest.NewClock(), pgtest.New(t)
	db.Now = clock.Now
	s := apptest.StartServer(t, db)
	s.Home = s.NewAccount("Home")
	m := machine{Server: s, clock: clock, bank: s.NewSystem("bank", partner.Scopes()...)}
	for code, schedule := range map[string]string{
		"WHOLE": "100", "HALVES": "50,50", "SOLAR": "40,40,20", "THIRDS": "33.33,33.33,33.34",
	} {
		m.products = append(m.products, s.AddProduct(t, catalog.NewProduct{
			Code: code, Schedule: schedule, Min: "0.01", Max: "99999.99",
		}))
	}
	rapid.Check(t, func(r *rapid.T) {
		run := m
		run.r = r
		run.create()
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			clock.Move(time.Duration(rapid.IntRange(-1, 1).Draw(r, "hours")) * time.Hour)
			steps := []step{run.step()}
			if rapid.IntRange(0, 3).Draw(r, "at once") == 0 {
				steps = append(steps, run.step())
			}
			run.take(steps...)
		}
		run.follow()
	})
}

func (m *machine) create() {
	m.asked = lending.Cents(rapid.OneOf(
		rapid.Int64Range(1, 20), rapid.Int64Range(1_000, 12_000_000)).Draw(m.r, "asked"))
	body := apptest.Borrow()
	body["requested_amount"] = m.asked.String()
	delete(body["borrower"].(map[string]any), "annual_income")
	answer := m.Do(apptest.Call{Method: http.MethodPost, Path: "/v2/application", JSON: body})
	m.uid = uuid.MustParse(answer.Text("thrive_application_uid"))
	m.now = &model{seen: seen{
		Status: lending.StatusPendingReview, Communications: lending.CommunicationsPaused,
	}}
	if rapid.IntRange(0, 2).Draw(m.r, "bare") > 0 {
		for _, step := range []step{m.decide(), m.accept(), m.moveTo(lending.StatusApproved)} {
			m.take(step)
		}
	}
}

// step makes a random request, often one that the rules allow.
func (m *machine) step() step {
	kinds := []func() step{m.move, m.terms, m.documents, m.task, m.accept, m.decide, m.amount}
	if len(m.now.Tasks) > 0 {
		kinds = append(kinds, m.endTask)
	}
	switch {
	case m.now.loan != nil:
		kinds = append(kinds, m.draw, m.draw, m.draw, m.draw, m.draw)
		if len(m.now.loan.Disbursements) > 0 {
			kinds = append(kinds, m.fund, m.fund, m.fund, m.fund, m.fund, m.fund, m.fund)
		}
	case m.now.decided:
		kinds = append(kinds, m.accept, m.accept, m.move)
	default:
		kinds = append(kinds, m.decide, m.decide, m.decide)
	}
	return rapid.SampledFrom(kinds).Draw(m.r, "kind")()
}

func (m *machine) decide() step {
	return step{
		post("/v2/application/create-run-decision", map[string]any{"thrive_application_uid": m.uid}),
		func(now *model, _ apptest.Answer) error {
			return now.decide(lending.DecisionRequest{Products: m.products, Requested: m.asked})
		},
	}
}

func (m *machine) accept() step {
	product := rapid.SampledFrom(m.products).Draw(m.r, "product")
	call := post("/v2/application/accept-offer", map[string]any{
		"thrive_application_uid": m.uid, "selected_product_uid": product.UID,
	})
	call.Method = http.MethodPut
	return step{call, func(now *model, _ apptest.Answer) error { return now.accept(product) }}
}

func (m *machine) move() step {
	to := lending.StatusApproved
	if rapid.IntRange(0, 2).Draw(m.r, "elsewhere") == 0 {
		to = rapid.SampledFrom(lending.AllApplicationStatuses()).Draw(m.r, "status")
	}
	return m.moveTo(to)
}

func (m *machine) moveTo(to lending.ApplicationStatus) step {
	return step{
		m.either("application", m.uid, "status", map[string]any{"status": to}),
		func(now *model, _ apptest.Answer) error { return now.enter(to) },
	}
}

func (m *machine) amount() step {
	amount := m.anyAmount()
	return step{
		m.either("application", m.uid, "amount", map[string]any{"approved_amount": amount}),
		func(now *model, _ apptest.Answer) error {
			return now.change(func(a lending.Approval) (lending.OfferChange, error) {
				return a.ChangeAmount(amount)
			}, lending.AmountUpdated("", lending.Offer{}, lending.Offer{}))
		},
	}
}

func (m *machine) terms() step {
	fee := rapid.SampledFrom([]string{"0", "3.75", "99.9999", "100"}).Draw(m.r, "fee")
	terms, err := lending.ParseTerms(nil, nil, &fee)
	if err != nil {
		m.r.Fatal(err)
	}
	return step{
		m.either("application", m.uid, "terms", map[string]any{"merchant_fee_percentage": fee}),
		func(now *model, _ apptest.Answer) error {
			return now.change(func(a lending.Approval) (lending.OfferChange, error) {
				return a.ChangeTerms(terms)
			}, lending.TermsUpdated("", lending.Offer{}, lending.Offer{}))
		},
	}
}

func (m *machine) documents() step {
	to := rapid.SampledFrom([]lending.DocumentStatus{
		lending.DocumentSent, lending.DocumentSigned,
	}).Draw(m.r, "document")
	return step{
		m.either("application", m.uid, "document", map[string]any{"status": to}),
		func(now *model, _ apptest.Answer) error {
			changed, err := now.Document.Move(to)
			if changed {
				now.Document = to
				now.record(lending.DocumentChanged("", to))
			}
			return err
		},
	}
}

func (m *machine) task() step {
	call := m.either("application", m.uid, "task", map[string]any{"title": "Proof of income"})
	if call.As != nil {
		call.Path += "s"
	}
	return step{call, func(now *model, answer apptest.Answer) error {
		now.Tasks = append(now.Tasks, seenTask{answer.Text("task_uid"), lending.TaskPending})
		now.record(lending.TaskCreated("", "", lending.TaskPending))
		now.mail("task")
		return nil
	}}
}

func (m *machine) endTask() step {
	uid := rapid.SampledFrom(m.now.Tasks).Draw(m.r, "task").UID
	to := rapid.SampledFrom(lending.TaskPending.Next()).Draw(m.r, "to")
	return step{
		m.either("task", uid, "status", map[string]any{"status": to}),
		func(now *model, _ apptest.Answer) error {
			at := slices.IndexFunc(now.Tasks, func(t seenTask) bool { return t.UID == uid })
			changed, err := now.Tasks[at].Status.Move(to)
			if changed {
				now.Tasks[at].Status = to
				now.record(lending.TaskUpdated("", "", to))
			}
			return err
		},
	}
}

func (m *machine) draw() step {
	form := map[string]string{}
	documents := lending.DocumentsAbsent
	due, err := lending.DecideDraw(m.now.Status, m.now.loan, lending.DrawRequest{})
	fits := err == nil || due.DocumentsRequired
	if due.DocumentsRequired == (rapid.IntRange(0, 5).Draw(m.r, "documents") > 0) && fits {
		form["metadata"], documents = `{"projectName":"New roof"}`, lending.DocumentsGiven
	}
	for _, part := range []string{lending.PartDisbursementAmount, lending.PartLoanAmount} {
		if rapid.IntRange(0, 3).Draw(m.r, part) == 0 {
			form[part] = m.anyAmount().String()
		}
	}
	if rapid.IntRange(0, 4).Draw(m.r, "early") == 0 {
		form[lending.PartCompletedEarly] = "true"
	}
	call := post("/v2/loan/"+m.uid.String()+"/request-draw", nil)
	call.Form = form
	return step{call, func(now *model, answer apptest.Answer) error {
		request, err := lending.ParseDrawRequest(form, documents)
		if err != nil {
			return err
		}
		return now.draw(request, answer)
	}}
}

func (m *machine) fund() step {
	draws := m.now.loan.Disbursements
	draw := draws[len(draws)-1]
	if rapid.IntRange(0, 3).Draw(m.r, "older") == 0 {
		draw = rapid.SampledFrom(draws).Draw(m.r, "disbursement")
	}
	to := rapid.SampledFrom(lending.AllFundingStatuses()[1:]).Draw(m.r, "to")
	if next := draw.Status.Next(); len(next) > 0 && rapid.IntRange(0, 5).Draw(m.r, "skip") > 0 {
		to = rapid.SampledFrom(next).Draw(m.r, "next")
	}
	return step{
		m.either("disbursement", draw.ID, "status", map[string]any{"status": to, "reason": "asked"}),
		func(now *model, _ apptest.Answer) error { return now.fund(draw.ID, to) },
	}
}

// either returns a request to the partner's sandbox, or the same one of the lender.
func (m *machine) either(kind string, id any, what string, body map[string]any) apptest.Call {
	if rapid.Bool().Draw(m.r, "sandbox") {
		return post(fmt.Sprintf("/v2/sandbox/%s/%v/%s", kind, id, what), body)
	}
	call := post(fmt.Sprintf("/lender/v1/%ss/%v/%s", kind, id, what), body)
	call.As = &m.bank
	return call
}

func post(path string, body any) apptest.Call {
	return apptest.Call{Method: http.MethodPost, Path: path, JSON: body}
}

// anyAmount returns an amount near the limits.
func (m *machine) anyAmount() lending.Money {
	near := []lending.Money{lending.Cents(1), m.asked}
	if loan := m.now.loan; loan != nil {
		near = append(near, loan.OriginalAmount, loan.Drawn(), loan.Balance(),
			loan.Stages[0].Scheduled, loan.Stages[len(loan.Stages)-1].Scheduled)
	}
	off := rapid.SampledFrom([]int64{-100, -1, 0, 0, 1, 100}).Draw(m.r, "off")
	amount := rapid.SampledFrom(near).Draw(m.r, "near").Add(lending.Cents(off))
	return lending.MaxMoney(amount, lending.Cents(1))
}

// take sends the steps at once, and continues with an order of them that explains all results.
func (m *machine) take(steps ...step) {
	answers := make([]apptest.Answer, len(steps))
	again := rapid.IntRange(0, 3).Draw(m.r, "again") == 0
	var callers sync.WaitGroup
	for i, step := range steps {
		callers.Go(func() { answers[i] = m.call(step.call, again) })
	}
	callers.Wait()
	got := m.see()
	if got.Updated.Before(m.now.Updated) {
		m.r.Fatalf("updated_at went back from %s to %s", m.now.Updated, got.Updated)
	}
	var whys []string
	for range steps {
		after, why := m.now.clone(), ""
		for i, step := range steps {
			code := lending.ErrorCode(step.do(after, answers[i]))
			if code != lending.Code(answers[i].Code()) {
				why = fmt.Sprintf("%s is refused as %q, not %q", step.call.Path, answers[i].Raw, code)
				break
			}
		}
		if why == "" {
			why = cmp.Diff(after.view(), got, cmpopts.EquateEmpty(),
				cmpopts.IgnoreFields(seen{}, "Updated"))
		}
		if why == "" {
			after.Updated, m.now = got.Updated, after
			return
		}
		whys = append(whys, why)
		slices.Reverse(steps)
		slices.Reverse(answers)
	}
	m.r.Fatalf("no order of the calls explains what came of them:\n%s", strings.Join(whys, "\n"))
}

// call sends a request under a key and, if it succeeds and again is set, repeats it.
func (m *machine) call(call apptest.Call, again bool) apptest.Answer {
	call.Header = map[string]string{"Idempotency-Key": uuid.NewString()}
	answer, err := m.Try(call)
	if err == nil && again && answer.Status < http.StatusMultipleChoices {
		var replayed apptest.Answer
		replayed, err = m.Try(call)
		if !bytes.Equal(replayed.Raw, answer.Raw) {
			err = fmt.Errorf("%s was answered %s and then %s", call.Path, answer.Raw, replayed.Raw)
		}
	}
	if err != nil {
		m.T.Error(err)
	}
	return answer
}

// see reads the application, its events and its mails as the lender does.
func (m *machine) see() seen {
	answer := m.Do(apptest.Call{
		Method: http.MethodGet, Path: "/lender/v1/applications/" + m.uid.String(), As: &m.bank,
	})
	var got seen
	if err := json.Unmarshal(answer.Result.Data, &got); err != nil {
		m.r.Fatal(err)
	}
	got.Events, got.Mails = m.Events(m.uid), m.Mails(m.uid)
	got.sort()
	return got
}

// follow reads the application's feed, which must have each event once and in order.
func (m *machine) follow() {
	var feed struct {
		Events []struct {
			Sequence    int
			Event, Body string
		}
	}
	waittest.Until(m.T, "the feed has every event", func() bool {
		answer := m.Get("/v2/application/" + m.uid.String() + "/events")
		if err := json.Unmarshal(answer.Result.Data, &feed); err != nil {
			m.r.Fatal(err)
		}
		return len(feed.Events) >= len(m.now.Events)
	})
	for i, event := range feed.Events {
		kind, status, _ := strings.Cut(m.now.Events[i], " ")
		if event.Sequence != i+1 || event.Event != kind ||
			!strings.Contains(event.Body, `"status":"`+status+`"`) {
			m.r.Fatalf("event %d of %q is %+v", i+1, m.now.Events, event)
		}
	}
}
