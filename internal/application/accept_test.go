package application_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

func TestAcceptOfferHasItsFourEffects(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	w.NewProduct(t, "ROOF", "100")
	app := w.Application(t, apptest.In(lending.StatusHardPull))
	rival := w.Application(t, apptest.In(lending.StatusApproved))
	recorded := w.Statuses(t, app.UID)

	if err := accept(t, w, app.UID, solar, rival.UID, rival.UID); err != nil {
		t.Fatal(err)
	}
	got := w.Get(t, app.UID)
	if got.SelectedProductUID == nil || got.SelectedProductUID.String() != solar.UID ||
		got.SelectedProductCode != "SOLAR" {
		t.Errorf("selected %v %q", got.SelectedProductUID, got.SelectedProductCode)
	}
	if got.Communications != lending.CommunicationsEnabled {
		t.Errorf("communications %s", got.Communications)
	}
	if got.Status != lending.StatusHardPull {
		t.Errorf("status %s, accepting does not move it", got.Status)
	}
	same(t, "mails", w.MailsOf(t, app.UID), "stipulation: suppressed", "welcome: queued")
	same(t, "events of the accepted one", w.Statuses(t, app.UID), recorded...)
	if status := w.Get(t, rival.UID).Status; status != lending.StatusClosed {
		t.Errorf("the linked one is %s", status)
	}
	same(t, "events of the linked one", w.Statuses(t, rival.UID),
		statusEvent+"Hard Pull Authorization", statusEvent+"Approved", statusEvent+"Closed")
	same(t, "mails of the linked one", w.MailsOf(t, rival.UID), "stipulation: suppressed")

	// From now on mails are sent.
	w.Move(t, app.UID, lending.StatusPendClearance)
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Applications.AddTask(ctx, tx, w.Caller(), app.UID, "Sign")
		return err
	})
	same(t, "mails", w.MailsOf(t, app.UID),
		"stipulation: suppressed", "welcome: queued", "stipulation: queued", "task: queued")
}

func TestAcceptOfferAgain(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	app := w.Loan(t, solar)
	recorded, mails := w.Statuses(t, app.UID), w.MailsOf(t, app.UID)
	late := w.Application(t)
	clearance := w.Application(t, apptest.In(lending.StatusApproved),
		apptest.Selecting(solar))
	w.Move(t, clearance.UID, lending.StatusPendClearance)

	for range 2 {
		if err := accept(t, w, app.UID, solar, late.UID); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "events", w.Statuses(t, app.UID), recorded...)
	same(t, "mails", w.MailsOf(t, app.UID), mails...)
	same(t, "events of the newly linked one", w.Statuses(t, late.UID), statusEvent+"Closed")
	if err := accept(t, w, clearance.UID, solar); err != nil {
		t.Errorf("repeated on an application that is Approved no more: %v", err)
	}
}

func TestAcceptAnotherProduct(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar, roof := w.NewProduct(t, "SOLAR", "40,40,20"), w.NewProduct(t, "ROOF", "100")
	app := w.Application(t, apptest.In(lending.StatusHardPull),
		apptest.Selecting(solar))
	if err := accept(t, w, app.UID, roof); err != nil {
		t.Fatal(err)
	}
	if got := w.Get(t, app.UID).SelectedProductCode; got != "ROOF" {
		t.Errorf("selected %s", got)
	}
	same(t, "mails", w.MailsOf(t, app.UID), "stipulation: suppressed", "welcome: queued")

	w.Move(t, app.UID, lending.StatusApproved)
	refused(t, accept(t, w, app.UID, solar), lending.CodeInvalidState)
	if got := w.GetLoan(t, app.UID).ProductCode; got != "ROOF" {
		t.Errorf("the loan is of %s", got)
	}
	if err := accept(t, w, app.UID, roof); err != nil {
		t.Errorf("the product of the loan: %v", err)
	}
}

func TestAcceptBeforeTheDecision(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	large := w.AddProduct(t, catalog.NewProduct{Code: "LARGE", Min: "50000"})

	t.Run("the decision makes its offer", func(t *testing.T) {
		t.Parallel()
		app := w.Application(t)
		if err := accept(t, w, app.UID, solar); err != nil {
			t.Fatal(err)
		}
		same(t, "mails", w.MailsOf(t, app.UID), "welcome: queued")
		same(t, "events", w.Statuses(t, app.UID))
		if _, err := decide(t, w, app.UID); err != nil {
			t.Fatal(err)
		}
		same(t, "mails", w.MailsOf(t, app.UID), "welcome: queued", "stipulation: queued")
		w.Move(t, app.UID, lending.StatusApproved)
		if got := w.GetLoan(t, app.UID).ProductCode; got != "SOLAR" {
			t.Errorf("the loan is of %s", got)
		}
	})
	t.Run("the decision makes it no offer", func(t *testing.T) {
		t.Parallel()
		app := w.Application(t)
		if err := accept(t, w, app.UID, large); err != nil {
			t.Fatal(err)
		}
		if _, err := decide(t, w, app.UID); err != nil {
			t.Fatal(err)
		}
		w.Move(t, app.UID, lending.StatusApproved)
		got := w.Get(t, app.UID)
		if got.LoanOpen || got.SelectedProductCode != "LARGE" {
			t.Errorf("selected %s, loan open: %t", got.SelectedProductCode, got.LoanOpen)
		}
		if err := accept(t, w, app.UID, large); err != nil {
			t.Errorf("repeated with the same product: %v", err)
		}
		if err := accept(t, w, app.UID, solar); err != nil {
			t.Fatal(err)
		}
		if got := w.GetLoan(t, app.UID).ProductCode; got != "SOLAR" {
			t.Errorf("the loan is of %s", got)
		}
		same(t, "mails", w.MailsOf(t, app.UID), "welcome: queued", "stipulation: queued")
	})
}

func TestAcceptOfferRefusals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	large := w.AddProduct(t, catalog.NewProduct{Code: "LARGE", Min: "50000"})
	retired := w.AddProduct(t, catalog.NewProduct{Code: "RETIRED"})
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		return w.Catalog.SetActive(ctx, tx, uuid.MustParse(retired.UID), false)
	})
	other := w.NewMerchant(t, w.Partner, "Other")
	foreign := w.Application(t, apptest.Of(w.Partner, other))
	foreignPartner := w.NewPartner(t, "Foreign")
	far := w.Application(t,
		apptest.Of(foreignPartner, w.NewMerchant(t, foreignPartner, "Far")))

	in := func(status lending.ApplicationStatus, options ...apptest.Option) func() uuid.UUID {
		return func() uuid.UUID {
			return w.Application(t, append(options, apptest.In(status))...).UID
		}
	}
	offered := in(lending.StatusApproved)
	tests := []struct {
		name    string
		app     func() uuid.UUID
		product lending.Product
		linked  []uuid.UUID
		want    lending.Code
	}{
		{
			name: "unknown application", app: uuid.New, product: solar,
			want: lending.CodeApplicationNotFound,
		},
		{
			name: "another merchant's", app: func() uuid.UUID { return foreign.UID }, product: solar,
			want: lending.CodeApplicationNotFound,
		},
		{
			name: "unknown product", app: offered,
			product: lending.Product{UID: uuid.NewString()}, want: lending.CodeProductNotFound,
		},
		{
			name: "product without an offer", app: offered, product: large,
			want: lending.CodeProductNotFound,
		},
		{
			name: "retired product before the decision", app: in(lending.StatusPendingReview),
			product: retired, want: lending.CodeProductNotFound,
		},
		{
			name: "unknown product before the decision", app: in(lending.StatusPendingReview),
			product: lending.Product{UID: uuid.NewString()}, want: lending.CodeProductNotFound,
		},
		{
			name: "Declined", app: in(lending.StatusDeclined), product: solar,
			want: lending.CodeInvalidState,
		},
		{
			name: "Closed", app: in(lending.StatusClosed), product: solar,
			want: lending.CodeInvalidState,
		},
		{
			name: "linked: another merchant's", app: offered, product: solar,
			linked: []uuid.UUID{foreign.UID}, want: lending.CodeApplicationNotFound,
		},
		{
			name: "linked: another partner's", app: offered, product: solar,
			linked: []uuid.UUID{far.UID}, want: lending.CodeApplicationNotFound,
		},
		{
			name: "linked: unknown", app: offered, product: solar,
			linked: []uuid.UUID{uuid.New()}, want: lending.CodeApplicationNotFound,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			uid, sibling := test.app(), w.Application(t)
			linked := append([]uuid.UUID{sibling.UID}, test.linked...)
			mails := w.MailsOf(t, uid)
			refused(t, accept(t, w, uid, test.product, linked...), test.want)
			same(t, "mails", w.MailsOf(t, uid), mails...)
			same(t, "events of the sibling", w.Statuses(t, sibling.UID))
			if w.Count(t, `SELECT count(*) FROM applications WHERE application_uid = $1
				AND (offer_selected OR communications = 'enabled')`, uid) != 0 {
				t.Error("the refused acceptance changed the application")
			}
		})
	}
	t.Run("linked to itself", func(t *testing.T) {
		t.Parallel()
		uid := offered()
		refused(t, accept(t, w, uid, solar, uid), lending.CodeApplicationNotFound)
	})
	t.Run("same product, but Closed by now", func(t *testing.T) {
		t.Parallel()
		uid := w.Loan(t, solar).UID
		w.Move(t, uid, lending.StatusClosed)
		refused(t, accept(t, w, uid, solar), lending.CodeInvalidState)
	})
	t.Run("an operator links another merchant's", func(t *testing.T) {
		t.Parallel()
		err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.AcceptOffer(ctx, tx, apptest.Operator(),
				application.Acceptance{
					ApplicationUID: offered(), ProductUID: uuid.MustParse(solar.UID),
					Linked: []uuid.UUID{foreign.UID},
				})
			return err
		})
		refused(t, err, lending.CodeApplicationNotFound)
		same(t, "events of the other merchant's", w.Statuses(t, foreign.UID))
	})
}

func TestEndedLinkedApplicationsStay(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	declined := w.Application(t, apptest.In(lending.StatusDeclined))
	closed := w.Application(t, apptest.In(lending.StatusClosed))
	recorded := [][]string{w.Statuses(t, declined.UID), w.Statuses(t, closed.UID)}
	app := w.Application(t, apptest.In(lending.StatusApproved))
	if err := accept(t, w, app.UID, solar, closed.UID, declined.UID); err != nil {
		t.Fatal(err)
	}
	if got := w.Get(t, declined.UID).Status; got != lending.StatusDeclined {
		t.Errorf("the declined one is %s", got)
	}
	same(t, "events of the declined one", w.Statuses(t, declined.UID), recorded[0]...)
	same(t, "events of the closed one", w.Statuses(t, closed.UID), recorded[1]...)
}

func TestConsoleApplicationIsWelcomedOnce(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	app := w.Application(t, apptest.From(lending.SourceConsole))
	if _, err := decide(t, w, app.UID); err != nil {
		t.Fatal(err)
	}
	if err := accept(t, w, app.UID, solar); err != nil {
		t.Fatal(err)
	}
	same(t, "mails", w.MailsOf(t, app.UID), "welcome: queued", "stipulation: queued")
}

func TestLoanOpensInEitherOrder(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	steps := map[string]func(t *testing.T, uid uuid.UUID){
		"approve": func(t *testing.T, uid uuid.UUID) {
			t.Helper()
			w.Move(t, uid, lending.StatusApproved)
		},
		"accept": func(t *testing.T, uid uuid.UUID) {
			t.Helper()
			if err := accept(t, w, uid, solar); err != nil {
				t.Fatal(err)
			}
		},
		"suspend": func(t *testing.T, uid uuid.UUID) {
			t.Helper()
			w.Move(t, uid, lending.StatusPendClearance)
		},
	}
	orders := [][]string{
		{"approve", "accept"},
		{"accept", "approve"},
		{"approve", "suspend", "accept", "approve"},
		{"accept", "approve", "suspend", "approve"},
	}
	for _, order := range orders {
		t.Run(order[0]+" first", func(t *testing.T) {
			t.Parallel()
			app := w.Application(t, apptest.In(lending.StatusHardPull))
			for i, step := range order {
				open := w.Get(t, app.UID).LoanOpen
				steps[step](t, app.UID)
				if got := w.Get(t, app.UID); got.LoanOpen !=
					(open || got.Status == lending.StatusApproved && got.SelectedProductUID != nil) {
					t.Errorf("after %q the loan is open: %t", order[:i+1], got.LoanOpen)
				}
			}
			opened := w.GetLoan(t, app.UID)
			if opened.Amount().String() != "10000.00" || opened.OriginalAmount.String() != "10000.00" ||
				len(opened.Stages) != 3 {
				t.Errorf("opened %+v", opened.Loan)
			}
		})
	}
}
