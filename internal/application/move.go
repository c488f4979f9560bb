package application

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Move changes the status of an application. Moving to the current status is not a change and
// records nothing.
//
// Errors: NOT_FOUND, INVALID_STATE.
func (s *Service) Move(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, to lending.ApplicationStatus,
) (Application, error) {
	app, err := lock(ctx, tx, caller, uid)
	if err != nil {
		return Application{}, err
	}
	changed, err := app.Status.Move(to)
	if err != nil || !changed {
		return app, err
	}
	return s.enter(ctx, tx, app, to)
}

// enter writes the status, opens the loan if only the status was missing, and records the event.
func (s *Service) enter(
	ctx context.Context, tx *postgres.Tx, app Application, to lending.ApplicationStatus,
) (Application, error) {
	if err := change(ctx, tx, app.UID, `status = $2`, string(to)); err != nil {
		return Application{}, err
	}
	app.Status = to
	if err := s.openLoan(ctx, tx, &app); err != nil {
		return Application{}, err
	}
	offer := lending.ReportedOffer(app.Offers, app.Selected())
	return s.record(ctx, tx, app, lending.StatusUpdated(app.UID.String(), to, offer))
}

// record records the event of a change, which also sets the application's UpdatedAt.
func (s *Service) record(
	ctx context.Context, tx *postgres.Tx, app Application, event lending.Event,
) (_ Application, err error) {
	app.UpdatedAt, err = s.Events.RecordChange(ctx, tx, event)
	return app, err
}

// openLoan opens the loan once the application is Approved and the selected
// product made it an offer, unless it is open already.
func (s *Service) openLoan(ctx context.Context, tx *postgres.Tx, app *Application) error {
	offer, due := lending.LoanToOpen(app.Status, app.Offers, app.Selected())
	if !due || app.LoanOpen {
		return nil
	}
	var schedule lending.Schedule // also of a product that is no longer offered
	err := tx.GetContext(ctx, &schedule,
		`SELECT schedule FROM products WHERE product_uid = $1`, offer.ProductUID)
	if err != nil {
		return fmt.Errorf("loading the schedule of product %s: %w", offer.ProductUID, err)
	}
	app.LoanOpen = true
	return s.Loans.Open(ctx, tx, app.UID, offer, schedule)
}

// ChangeAmount changes the approved amount of the offer and of the open loan. Setting the
// current amount is not a change and records nothing.
//
// Errors: NOT_FOUND and those of lending.Approval.ChangeAmount.
func (s *Service) ChangeAmount(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, amount lending.Money,
) (Application, error) {
	return s.changeOffer(ctx, tx, caller, uid, offerEdit{
		decide: func(approval lending.Approval) (lending.OfferChange, error) {
			return approval.ChangeAmount(amount)
		},
		event: lending.AmountUpdated,
	})
}

// ChangeTerms changes term, rate or fee. Setting the current terms is not a change and records
// nothing.
//
// Errors: NOT_FOUND and those of lending.Approval.ChangeTerms.
func (s *Service) ChangeTerms(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, terms lending.Terms,
) (Application, error) {
	return s.changeOffer(ctx, tx, caller, uid, offerEdit{
		decide: func(approval lending.Approval) (lending.OfferChange, error) {
			return approval.ChangeTerms(terms)
		},
		event: lending.TermsUpdated,
	})
}

// offerEdit computes a change of offers and builds its event.
type offerEdit struct {
	decide func(lending.Approval) (lending.OfferChange, error)
	event  func(uid string, previous, updated lending.Offer) lending.Event
}

func (s *Service) changeOffer(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, edit offerEdit,
) (Application, error) {
	app, err := lock(ctx, tx, caller, uid)
	if err != nil {
		return Application{}, err
	}
	open, err := s.Loans.Find(ctx, tx, uid)
	if err != nil {
		return Application{}, err
	}
	outcome, err := edit.decide(Standing{Application: app, Loan: open}.Approval())
	if err != nil || !outcome.Changed {
		return app, err
	}
	if err := saveOffers(ctx, tx, uid, outcome.Offers); err != nil {
		return Application{}, err
	}
	if outcome.Loan != nil {
		if err := s.Loans.Update(ctx, tx, uid, *outcome.Loan); err != nil {
			return Application{}, err
		}
	}
	app.Offers = outcome.Offers
	return s.record(ctx, tx, app, edit.event(uid.String(), outcome.Previous, outcome.Updated))
}

// RecordDocument records that the loan documents were sent or signed.
//
// Errors: NOT_FOUND, INVALID_STATE.
func (s *Service) RecordDocument(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, to lending.DocumentStatus,
) (Application, error) {
	app, err := lock(ctx, tx, caller, uid)
	if err != nil {
		return Application{}, err
	}
	changed, err := app.Document.Move(to)
	if err != nil || !changed {
		return app, err
	}
	if err := change(ctx, tx, uid, `document_status = $2`, string(to)); err != nil {
		return Application{}, err
	}
	app.Document = to
	return s.record(ctx, tx, app, lending.DocumentChanged(uid.String(), to))
}

// AddTask adds a task to an application. Error: NOT_FOUND.
func (s *Service) AddTask(
	ctx context.Context, tx *postgres.Tx, caller Caller, uid uuid.UUID, title string,
) (Task, error) {
	if _, err := lock(ctx, tx, caller, uid); err != nil {
		return Task{}, err
	}
	task := Task{
		UID: postgres.NewUID(tx.Now), ApplicationUID: uid, Title: title, Status: lending.TaskPending,
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO tasks (task_uid, application_uid, title, status, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $5)`,
		task.UID, uid, title, string(task.Status), tx.Now)
	if err != nil {
		return Task{}, fmt.Errorf("inserting a task of application %s: %w", uid, err)
	}
	event := lending.TaskCreated(uid.String(), title, task.Status)
	event.Subject = task.subject()
	return task, s.Events.Record(ctx, tx, event)
}

// MoveTask completes or cancels a task. False means that it already had that status. Errors:
// NOT_FOUND, INVALID_STATE.
func (s *Service) MoveTask(
	ctx context.Context, tx *postgres.Tx, caller Caller, taskUID uuid.UUID, to lending.TaskStatus,
) (Task, bool, error) {
	task := Task{UID: taskUID}
	err := tx.GetContext(ctx, &task.ApplicationUID,
		`SELECT application_uid FROM tasks WHERE task_uid = $1`, taskUID)
	if err := postgres.RowError(err, errNoTask(taskUID), "finding task %s", taskUID); err != nil {
		return Task{}, false, err
	}
	_, err = lock(ctx, tx, caller, task.ApplicationUID)
	if lending.ErrorCode(err) == lending.CodeNotFound {
		return Task{}, false, errNoTask(taskUID) // do not reveal another merchant's task
	}
	if err != nil {
		return Task{}, false, err
	}
	// Read under the lock, so that two simultaneous moves see each other.
	err = tx.QueryRowContext(ctx, `SELECT title, status FROM tasks WHERE task_uid = $1`,
		taskUID).Scan(&task.Title, &task.Status)
	if err != nil {
		return Task{}, false, fmt.Errorf("loading task %s: %w", taskUID, err)
	}
	changed, err := task.Status.Move(to)
	if err != nil || !changed {
		return task, false, err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE tasks SET status = $2, updated_at = $3 WHERE task_uid = $1`,
		taskUID, string(to), tx.Now)
	if err != nil {
		return Task{}, false, fmt.Errorf("moving task %s: %w", taskUID, err)
	}
	task.Former, task.Status = task.Status, to
	event := lending.TaskUpdated(task.ApplicationUID.String(), task.Title, to)
	event.Subject = task.subject()
	return task, true, s.Events.Record(ctx, tx, event)
}

func errNoTask(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no task has the id %s", uid)
}
