package application

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Standing is an application with what its changes depend on, read in one snapshot.
type Standing struct {
	Application

	// Loan is nil until it opens.
	Loan *lending.Loan
	// Task is the requested task, zero if none was requested.
	Task Task
}

// Approval returns the input for a change of amount or terms.
func (s Standing) Approval() lending.Approval {
	return lending.Approval{
		Status: s.Status, Offers: s.Offers, ProductUID: s.Selected(), Loan: s.Loan,
	}
}

// Read returns the current state of an application, and of one of its tasks unless task is nil.
// Error: NOT_FOUND, also for a task of another application.
func (s *Service) Read(ctx context.Context, uid, task uuid.UUID) (found Standing, err error) {
	err = s.inSnapshot(ctx, func(tx *postgres.Tx) (err error) {
		found, err = s.read(ctx, tx, ``, uid, task)
		return err
	})
	return found, err
}

// inSnapshot runs read in a transaction whose statements all see the same snapshot.
func (s *Service) inSnapshot(ctx context.Context, read func(tx *postgres.Tx) error) error {
	return s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx, `SET TRANSACTION READ ONLY, ISOLATION LEVEL REPEATABLE READ`)
		if err != nil {
			return fmt.Errorf("reading at one moment: %w", err)
		}
		return read(tx)
	})
}

// ReadLocked is Read in a transaction that then holds the application's lock, so that the result
// stays true until the transaction ends.
func (s *Service) ReadLocked(
	ctx context.Context, tx *postgres.Tx, uid, task uuid.UUID,
) (Standing, error) {
	return s.read(ctx, tx, lockRows, uid, task)
}

func (s *Service) read(
	ctx context.Context, tx *postgres.Tx, locking string, uid, task uuid.UUID,
) (found Standing, err error) {
	if found.Application, err = load(ctx, tx, Caller{}, uid, locking); err != nil {
		return Standing{}, err
	}
	if found.Loan, err = s.Loans.Find(ctx, tx, uid); err != nil || task == uuid.Nil {
		return found, err
	}
	found.Task = Task{UID: task, ApplicationUID: uid}
	err = tx.QueryRowContext(ctx, `
		SELECT title, status FROM tasks WHERE task_uid = $1 AND application_uid = $2`,
		task, uid).Scan(&found.Task.Title, &found.Task.Status)
	return found, postgres.RowError(err, errNoTask(task), "loading task %s", task)
}

// ActiveProducts returns the products that may be requested, by code.
func (s *Service) ActiveProducts(ctx context.Context) ([]lending.Product, error) {
	var products []lending.Product
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
		products, err = s.Products.ListActive(ctx, tx)
		return err
	})
	return products, err
}
