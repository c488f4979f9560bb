package application

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Read returns an application as the transaction sees it. With lock it holds the
// application from then on, so that what was read stays true until the end.
// Error: NOT_FOUND.
func (s *Service) Read(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, lock bool,
) (Application, error) {
	if lock {
		return load(ctx, tx, Caller{}, uid, lockRows)
	}
	return load(ctx, tx, Caller{}, uid, ``)
}

// ReadTask returns a task of an application as the transaction sees it. Error:
// NOT_FOUND, also for a task of another application.
func (s *Service) ReadTask(
	ctx context.Context, tx *postgres.Tx, uid, taskUID uuid.UUID,
) (Task, error) {
	task := Task{UID: taskUID, ApplicationUID: uid}
	err := tx.QueryRowContext(ctx, `
		SELECT title, status FROM tasks WHERE task_uid = $1 AND application_uid = $2`,
		taskUID, uid).Scan(&task.Title, &task.Status)
	if postgres.IsNoRows(err) {
		return Task{}, errNoTask(taskUID)
	}
	if err != nil {
		return Task{}, fmt.Errorf("loading task %s: %w", taskUID, err)
	}
	return task, nil
}

// ActiveProducts returns the products that may be asked for, by code.
func (s *Service) ActiveProducts(ctx context.Context) ([]lending.Product, error) {
	var products []lending.Product
	err := s.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
		products, err = s.Products.ListActive(ctx, tx)
		return err
	})
	return products, err
}
