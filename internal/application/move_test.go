package application_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

func move(
	t *testing.T, w *apptest.Harness, uid uuid.UUID, to lending.ApplicationStatus,
) (application.Application, error) {
	t.Helper()
	var moved application.Application
	err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		moved, err = w.Applications.Move(ctx, tx, w.Caller(), uid, to)
		return err
	})
	return moved, err
}

// Every status with every other: a permitted move is written and published once, a forbidden one
// changes nothing.
func TestMove(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.NewProduct(t, "SOLAR", "100")
	for _, from := range lending.AllApplicationStatuses() {
		for _, to := range lending.AllApplicationStatuses() {
			t.Run(string(from)+" to "+string(to), func(t *testing.T) {
				t.Parallel()
				app := w.Application(t, apptest.In(from))
				recorded := w.Statuses(t, app.UID)
				changed, allowed := from.Move(to)
				moved, err := move(t, w, app.UID, to)
				refused(t, err, lending.ErrorCode(allowed))
				want := from
				if changed {
					want = to
					recorded = append(recorded, statusEvent+string(to))
				}
				if got := w.Get(t, app.UID).Status; got != want || err == nil && moved.Status != want {
					t.Errorf("status %s, answered %s, want %s", got, moved.Status, want)
				}
				same(t, "events", w.Statuses(t, app.UID), recorded...)
			})
		}
	}
}

func TestStipulationMails(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "100")
	app := w.Application(t, apptest.In(lending.StatusHardPull),
		apptest.Selecting(solar))
	before := len(w.MailsOf(t, app.UID))
	for _, to := range []lending.ApplicationStatus{
		lending.StatusPendClearance, lending.StatusHardPullAuthorization, lending.StatusHardPull,
		lending.StatusApproved, lending.StatusClosed,
	} {
		w.Move(t, app.UID, to)
	}
	same(t, "mails", w.MailsOf(t, app.UID)[before:], "stipulation: queued", "stipulation: queued")
}

func TestOtherMerchantsChangeNothing(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	app := w.Loan(t, solar)
	var task application.Task
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		task, err = w.Applications.AddTask(ctx, tx, w.Caller(), app.UID, "Sign")
		return err
	})
	recorded := w.Statuses(t, app.UID)
	stranger := loan.Caller{MerchantUID: w.NewMerchant(t, w.Partner, "Other"), Name: "other"}
	rate := "1"
	terms, err := lending.ParseTerms(nil, &rate, nil)
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]func(ctx context.Context, tx *postgres.Tx) error{
		"Move": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.Move(ctx, tx, stranger, app.UID, lending.StatusClosed)
			return err
		},
		"ChangeAmount": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.ChangeAmount(ctx, tx, stranger, app.UID, lending.Cents(1))
			return err
		},
		"ChangeTerms": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.ChangeTerms(ctx, tx, stranger, app.UID, terms)
			return err
		},
		"RecordDocument": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.RecordDocument(ctx, tx, stranger, app.UID, lending.DocumentSent)
			return err
		},
		"AddTask": func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.AddTask(ctx, tx, stranger, app.UID, "Sign")
			return err
		},
		"MoveTask": func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := w.Applications.MoveTask(ctx, tx, stranger, task.UID, lending.TaskCompleted)
			return err
		},
		"MoveTask of none": func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := w.Applications.MoveTask(ctx, tx, stranger, uuid.New(), lending.TaskCompleted)
			return err
		},
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, w.Try(t, use), lending.CodeNotFound)
			same(t, "events", w.Statuses(t, app.UID), recorded...)
		})
	}
}

func TestChangeAmount(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	change := func(t *testing.T, uid uuid.UUID, amount string) error {
		t.Helper()
		return w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.ChangeAmount(ctx, tx, w.Caller(), uid, apptest.Money(amount))
			return err
		})
	}
	app := w.Loan(t, solar)
	w.Settle(t, w.Draw(t, app.UID, loan.DrawInput{}).ID)
	known := len(w.EventsOf(t, app.UID))

	for range 2 { // the second changes nothing
		if err := change(t, app.UID, "9000"); err != nil {
			t.Fatal(err)
		}
	}
	all := w.EventsOf(t, app.UID)[known:]
	if len(all) != 1 {
		t.Fatalf("%d events, want 1", len(all))
	}
	const offer = `{"term":"120","interest_rate":"7.99",` +
		`"borrower_max_approved_amount":"100000.00","project_max_approved_amount":"10000.00",` +
		`"max_amount":"10000.00","approved_amount":"%s","merchant_fee_percentage":"3.75"}`
	want := fmt.Sprintf(`{"application_id":"%s","status":"Loan Amount Updated","timestamp":"%s",`+
		`"data":{"previous_approved_offer":`+offer+`,"updated_approved_offer":`+offer+`}}`,
		app.UID, stamp(all[0]), "10000.00", "9000.00")
	if all[0].Kind != lending.EventAmountUpdated || all[0].Body != want {
		t.Errorf("recorded %s %s\nwant %s", all[0].Kind, all[0].Body, want)
	}
	got := w.GetLoan(t, app.UID)
	var stages []string
	for _, stage := range got.Stages {
		stages = append(stages, stage.Scheduled.String())
	}
	same(t, "stages", stages, "4000.00", "3600.00", "1400.00")
	if got.Amount().String() != "9000.00" || got.OriginalAmount.String() != "9000.00" ||
		got.Balance().String() != "5000.00" {
		t.Errorf("loan %+v", got.Loan)
	}

	refused(t, change(t, app.UID, "10000.01"), lending.CodeValidation)
	refused(t, change(t, app.UID, "3999.99"), lending.CodeValidation)
	w.Move(t, app.UID, lending.StatusPendClearance)
	refused(t, change(t, app.UID, "8000"), lending.CodeInvalidState)
}

func TestChangeOfEveryOfferWhileNoneIsSelected(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	w.NewProduct(t, "SOLAR", "100")
	w.AddProduct(t, catalog.NewProduct{Code: "SMALL", Max: "6000"})
	app := w.Application(t, apptest.In(lending.StatusApproved))
	known := len(w.EventsOf(t, app.UID))
	fee, term := "1.5", "060"
	terms, err := lending.ParseTerms(&term, nil, &fee)
	if err != nil {
		t.Fatal(err)
	}
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Applications.ChangeTerms(ctx, tx, w.Caller(), app.UID, terms)
		return err
	})
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Applications.ChangeAmount(ctx, tx, w.Caller(), app.UID, apptest.Money("5000"))
		return err
	})
	var lines []string
	for _, o := range w.Get(t, app.UID).Offers {
		lines = append(lines, fmt.Sprint(o.ProductCode, " ", o.Term, " ", o.MerchantFeePercentage,
			" ", o.ApprovedAmount))
	}
	same(t, "offers", lines, "SMALL 60 1.5 5000.00", "SOLAR 60 1.5 5000.00")

	all := w.EventsOf(t, app.UID)[known:]
	if len(all) != 2 || all[0].Status != "Terms Updated" || all[1].Status != "Loan Amount Updated" {
		t.Fatalf("events %+v", all)
	}
	if strings.Contains(all[0].Body, "max_amount") {
		t.Errorf("an offer update has no max_amount: %s", all[0].Body)
	}
	for i, want := range []string{
		`"previous_approved_offer":{"term":"120","interest_rate":"7.99",` +
			`"borrower_max_approved_amount":"100000.00","project_max_approved_amount":"10000.00",` +
			`"approved_amount":"10000.00","merchant_fee_percentage":"3.75"}`,
		`"updated_approved_offer":{"term":"60","interest_rate":"7.99",` +
			`"borrower_max_approved_amount":"100000.00","project_max_approved_amount":"10000.00",` +
			`"max_amount":"10000.00","approved_amount":"5000.00","merchant_fee_percentage":"1.5"}`,
	} {
		if !strings.Contains(all[i].Body, want) {
			t.Errorf("body %s\nlacks %s", all[i].Body, want)
		}
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Application(t)
	record := func(to lending.DocumentStatus) error {
		return w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.RecordDocument(ctx, tx, w.Caller(), app.UID, to)
			return err
		})
	}
	refused(t, record(lending.DocumentSigned), lending.CodeInvalidState)
	for _, to := range []lending.DocumentStatus{
		lending.DocumentSent, lending.DocumentSent, lending.DocumentSigned, lending.DocumentSigned,
	} {
		if err := record(to); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, record(lending.DocumentSent), lending.CodeInvalidState)
	same(t, "events", w.Statuses(t, app.UID),
		"document.sent: DOCUMENT_SENT", "document.signed: DOCUMENT_SIGNED")
	for _, recorded := range w.EventsOf(t, app.UID) {
		want := fmt.Sprintf(`{"application_id":%q,"status":%q,"timestamp":%q}`,
			app.UID, recorded.Status, stamp(recorded))
		if recorded.Body != want {
			t.Errorf("body %s\nwant %s", recorded.Body, want)
		}
	}
	if got := w.Get(t, app.UID).Document; got != lending.DocumentSigned {
		t.Errorf("documents are %s", got)
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Application(t)
	const title = `Upload <proof> of "income" & señal`
	var first, second application.Task
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		if first, err = w.Applications.AddTask(ctx, tx, w.Caller(), app.UID, title); err != nil {
			return err
		}
		second, err = w.Applications.AddTask(ctx, tx, w.Caller(), app.UID, "Call")
		return err
	})
	move := func(uid uuid.UUID, to lending.TaskStatus) error {
		return w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := w.Applications.MoveTask(ctx, tx, w.Caller(), uid, to)
			return err
		})
	}
	for range 2 { // the second changes nothing
		if err := move(first.UID, lending.TaskCompleted); err != nil {
			t.Fatal(err)
		}
	}
	if err := move(second.UID, lending.TaskCancelled); err != nil {
		t.Fatal(err)
	}
	refused(t, move(first.UID, lending.TaskCancelled), lending.CodeInvalidState)
	refused(t, move(second.UID, lending.TaskPending), lending.CodeInvalidState)

	same(t, "events", w.Statuses(t, app.UID), "task.created: Pending", "task.created: Pending",
		"task.updated: Completed", "task.updated: cancelled")
	recorded := w.EventsOf(t, app.UID)[2]
	want := fmt.Sprintf(`{"application_id":"%s","status":"Completed","timestamp":"%s",`+
		`"task_title":"Upload <proof> of \"income\" & señal"}`, app.UID, stamp(recorded))
	if recorded.Body != want {
		t.Errorf("body %s\nwant %s", recorded.Body, want)
	}
	same(t, "mails", w.MailsOf(t, app.UID), "task: suppressed", "task: suppressed")
}
