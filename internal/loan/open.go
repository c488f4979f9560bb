package loan

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Open opens the loan for an accepted offer. The caller holds the application's lock and has
// checked that there is no loan yet.
func (s *Service) Open(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, offer lending.Offer,
	schedule lending.Schedule,
) error {
	loan := lending.OpenLoan(offer, schedule)
	var stages stageColumns
	stages.add(loan.Stages)
	_, err := tx.ExecContext(ctx, `
		WITH loan AS (
			INSERT INTO loans (application_uid, product_uid, original_amount, loan_amount,
			                   opened_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $5)
		)
		INSERT INTO loan_stages (application_uid, stage, percentage, scheduled_amount)
		SELECT $1, unnest($6::integer[]), unnest($7::numeric[]), unnest($8::numeric[])`,
		uid, offer.ProductUID, loan.OriginalAmount, loan.Amount(), tx.Now,
		stages.numbers, stages.percentages, stages.amounts)
	if err != nil {
		return fmt.Errorf("opening loan %s: %w", uid, err)
	}
	return nil
}

// Find returns the loan of an application whose lock the caller holds, nil if there is none.
func (s *Service) Find(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (*lending.Loan, error) {
	loan, err := find(ctx, tx, uid)
	return loan.values(), err
}

// Update writes the amounts and stages that follow from a change of the offer. The caller holds
// the application's lock.
func (s *Service) Update(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, loan lending.Loan,
) error {
	return update(ctx, tx, &Loan{Loan: loan, ApplicationUID: uid})
}
