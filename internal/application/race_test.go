package application_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// together runs the functions concurrently and returns their results.
func together(uses ...func() error) []error {
	errs := make([]error, len(uses))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, use := range uses {
		all.Go(func() {
			<-start
			errs[i] = use()
		})
	}
	close(start)
	all.Wait()
	return errs
}

func TestOfAHundredAcceptancesOneWelcomes(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	app := w.Application(t, apptest.In(lending.StatusApproved))
	rival := w.Application(t)
	before := w.Queued(t, email.Queue)
	uses := make([]func() error, 100)
	for i := range uses {
		uses[i] = func() error { return accept(t, w, app.UID, solar, rival.UID) }
	}
	for _, err := range together(uses...) {
		if err != nil {
			t.Error(err)
		}
	}
	same(t, "mails", w.MailsOf(t, app.UID), "stipulation: suppressed", "welcome: queued")
	if got := w.Queued(t, email.Queue) - before; got != 1 {
		t.Errorf("%d mails queued, want 1", got)
	}
	got := w.Get(t, app.UID)
	if got.SelectedProductCode != "SOLAR" || !got.LoanOpen ||
		got.Communications != lending.CommunicationsEnabled {
		t.Errorf("accepted %+v", got)
	}
	same(t, "events of the linked one", w.Statuses(t, rival.UID), statusEvent+"Closed")
	if stages := w.GetLoan(t, app.UID).Stages; len(stages) != 3 {
		t.Errorf("the loan has %d stages", len(stages))
	}
}

// Two offers of one borrower, each accepted with the other linked: one wins, and the database
// never has to break a deadlock.
func TestAcceptancesThatLinkEachOther(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	var runs atomic.Int32
	attempt := func(uid uuid.UUID, linked ...uuid.UUID) func() error {
		return func() error {
			return w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
				runs.Add(1)
				_, err := w.Applications.AcceptOffer(ctx, tx, w.Caller(), application.Acceptance{
					ApplicationUID: uid, ProductUID: uuid.MustParse(solar.UID), Linked: linked,
				})
				return err
			})
		}
	}
	const rounds = 20
	for range rounds {
		a := w.Application(t, apptest.In(lending.StatusApproved))
		b := w.Application(t, apptest.In(lending.StatusApproved))
		errs := together(attempt(a.UID, b.UID), attempt(b.UID, a.UID))
		won, lost := a.UID, b.UID
		if errs[0] != nil {
			won, lost = lost, won
			errs[0], errs[1] = errs[1], errs[0]
		}
		if errs[0] != nil {
			t.Fatalf("neither was accepted: %v, %v", errs[0], errs[1])
		}
		refused(t, errs[1], lending.CodeInvalidState)
		if !w.Get(t, won).LoanOpen || w.Get(t, lost).Status != lending.StatusClosed ||
			w.Get(t, lost).SelectedProductUID != nil {
			t.Errorf("won %+v, lost %+v", w.Get(t, won), w.Get(t, lost))
		}
	}
	if runs.Load() != 2*rounds {
		t.Errorf("%d runs of %d acceptances: a deadlock was broken", runs.Load(), 2*rounds)
	}
}

// Approving and accepting at once opens the loan once, whichever comes first.
func TestApprovalRacesAcceptance(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar, roof := w.NewProduct(t, "SOLAR", "40,40,20"), w.NewProduct(t, "ROOF", "100")
	for range 20 {
		app := w.Application(t, apptest.In(lending.StatusHardPull))
		errs := together(
			func() error { return accept(t, w, app.UID, solar) },
			func() error { return accept(t, w, app.UID, roof) },
			func() error { _, err := move(t, w, app.UID, lending.StatusApproved); return err },
		)
		for _, err := range errs {
			if err != nil {
				refused(t, err, lending.CodeInvalidState) // the loan was already open
			}
		}
		got := w.Get(t, app.UID)
		if found := w.GetLoan(t, app.UID); found.ProductCode != got.SelectedProductCode {
			t.Errorf("the loan is of %s, selected is %s", found.ProductCode, got.SelectedProductCode)
		}
	}
}

func TestDecisionsRace(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.NewProduct(t, "SOLAR", "40,40,20")
	app := w.Application(t)
	uses := make([]func() error, 20)
	for i := range uses {
		uses[i] = func() error { _, err := decide(t, w, app.UID); return err }
	}
	made := 0
	for _, err := range together(uses...) {
		if err == nil {
			made++
			continue
		}
		refused(t, err, lending.CodeInvalidState)
	}
	if made != 1 {
		t.Errorf("decided %d times", made)
	}
	same(t, "events", w.Statuses(t, app.UID), statusEvent+"Hard Pull Authorization")
}

// An application is read in one snapshot, even if a change commits between two of the statements
// that read it.
func TestReadsAreOfOneMoment(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.NewProduct(t, "SOLAR", "40,40,20")
	reads := map[string]func(uuid.UUID) (application.Application, error){
		"offers": func(uid uuid.UUID) (application.Application, error) {
			return w.Applications.Get(t.Context(), w.Caller(), uid)
		},
		// The list finds it by its status, then loads it.
		"products": func(uid uuid.UUID) (application.Application, error) {
			found, _, err := w.Applications.Find(t.Context(), application.Wanted{
				MerchantUIDs: []uuid.UUID{w.Merchant}, Status: lending.StatusApproved,
			}, postgres.Paging{Limit: 1})
			if err != nil || len(found) != 1 || found[0].UID != uid {
				return application.Application{}, fmt.Errorf("found %+v: %w", found, err)
			}
			return found[0], nil
		},
	}
	for table, read := range reads {
		uid := w.Application(t, apptest.In(lending.StatusApproved)).UID
		change := func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.ChangeAmount(ctx, tx, w.Caller(), uid, apptest.Money("5000"))
			if err == nil {
				_, err = w.Applications.Move(ctx, tx, w.Caller(), uid, lending.StatusPendClearance)
			}
			return err
		}
		w.Amid(t, table, change, func() {
			got, err := read(uid)
			if err != nil {
				t.Errorf("%s: %v", table, err)
				return
			}
			if amount := got.Offers[0].ApprovedAmount.String(); got.Status != lending.StatusApproved ||
				amount != "10000.00" {
				t.Errorf("%s: %s with an offer of %s", table, got.Status, amount)
			}
		})
	}
}

// Readers of the list detect a change by its time, to the millisecond, whatever the clock does.
func TestTimesOfChangeNeverRepeat(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	once := w.NewProduct(t, "ONCE", "100")
	app := w.Application(t)
	uid, caller := app.UID, w.Caller()
	last := app.UpdatedAt
	changed := func(what string, shown time.Time) {
		t.Helper()
		stored := w.Get(t, uid).UpdatedAt
		if !stored.Truncate(time.Millisecond).After(last) {
			t.Errorf("%s was at %s, what was before at %s", what, stored, last)
		}
		if !shown.IsZero() && !shown.Equal(stored) {
			t.Errorf("%s answered %s, stored is %s", what, shown, stored)
		}
		last = stored
		clock.Move(-time.Microsecond)
	}
	change := func(
		what string, use func(context.Context, *postgres.Tx) (application.Application, error),
	) {
		t.Helper()
		var answer application.Application
		w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
			answer, err = use(ctx, tx)
			return err
		})
		changed(what, answer.UpdatedAt)
	}
	move := func(to lending.ApplicationStatus) {
		t.Helper()
		change(string(to), func(
			ctx context.Context, tx *postgres.Tx,
		) (application.Application, error) {
			return w.Applications.Move(ctx, tx, caller, uid, to)
		})
	}
	move(lending.StatusApproved)
	change("the decision", func(
		ctx context.Context, tx *postgres.Tx,
	) (application.Application, error) {
		return w.Applications.RunDecision(ctx, tx, caller, uid)
	})
	if err := accept(t, w, uid, once); err != nil {
		t.Fatal(err)
	}
	changed("the acceptance", time.Time{})
	change("the amount", func(
		ctx context.Context, tx *postgres.Tx,
	) (application.Application, error) {
		return w.Applications.ChangeAmount(ctx, tx, caller, uid, apptest.Money("9000.00"))
	})
	change("the document", func(
		ctx context.Context, tx *postgres.Tx,
	) (application.Application, error) {
		return w.Applications.RecordDocument(ctx, tx, caller, uid, lending.DocumentSent)
	})
	change("the certificate", func(
		ctx context.Context, tx *postgres.Tx,
	) (none application.Application, err error) {
		_, err = w.Loans.StoreCertificate(ctx, tx, caller, uid,
			apptest.Documented(apptest.File("a.pdf", "a")))
		return none, err
	})
	draw := w.Draw(t, uid, apptest.Documented(apptest.File("a.pdf", "a")))
	changed("the draw", time.Time{})
	w.Fund(t, draw.ID, lending.FundingProcessing)
	changed("the money", time.Time{})
	change("the task", func(
		ctx context.Context, tx *postgres.Tx,
	) (none application.Application, err error) {
		_, err = w.Applications.AddTask(ctx, tx, caller, uid, "Sign")
		return none, err
	})
	clock.Move(time.Hour)
	move(lending.StatusPendClearance)
	if now := clock.Now().Add(time.Microsecond); !last.Equal(now) {
		t.Errorf("after a leap the change is of %s, the clock showed %s", last, now)
	}
}
