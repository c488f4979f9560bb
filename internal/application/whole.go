package application

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// Whole is an application with everything that belongs to it, read in one snapshot.
type Whole struct {
	Application
	loan.Papers

	// Tasks are the oldest first.
	Tasks []TaskEntry
}

// UpdatedFilter narrows the list of applications by last change; zero fields are ignored.
type UpdatedFilter struct {
	Status      lending.ApplicationStatus
	MerchantUID uuid.UUID
	// Since is the earliest time of the last change.
	Since time.Time
}

// maxPageMetadata bounds how many certificates with metadata, of up to 64 KiB each, a page may
// hold. A single application can have that many.
const maxPageMetadata = 500

// Updated returns one page of the matching applications, the longest unchanged first, and the
// cursor of the next page, zero on the last one. The page ends before its limit if its
// certificates would make it too large. Draws, tasks and certificates count as changes. Error:
// VALIDATION_ERROR for the limit.
func (s *Service) Updated(
	ctx context.Context, filter UpdatedFilter, page postgres.Paging,
) (found []Whole, next postgres.Cursor, err error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	var c postgres.Conditions
	c.When(filter.Status != "", `status = ?`, string(filter.Status))
	c.When(filter.MerchantUID != uuid.Nil, `merchant_uid = ?`, filter.MerchantUID)
	c.When(!filter.Since.IsZero(), `updated_at >= ?`, filter.Since)
	c.When(!page.From.IsZero(), `(updated_at, application_uid) > (?, ?)`, page.From.At, page.From.UID)
	query := `SELECT application_uid AS uid, updated_at AS at FROM applications` + c.Where() +
		` ORDER BY updated_at, application_uid LIMIT ` + c.Bind(page.Limit+1)
	err = s.inSnapshot(ctx, func(tx *postgres.Tx) (err error) {
		var fitting int
		if err := tx.GetContext(ctx, &fitting, `
			SELECT count(*)
			  FROM (SELECT sum((SELECT count(metadata) FROM certificates WHERE application_uid = uid))
			               OVER (ORDER BY at, uid) AS stored
			          FROM (`+query+`) AS listed) AS counted
			 WHERE stored <= `+strconv.Itoa(maxPageMetadata), c.Args...); err != nil {
			return fmt.Errorf("counting the certificates of a page: %w", err)
		}
		var uids []uuid.UUID
		limit := max(min(page.Limit, fitting), 1)
		if uids, next, err = pageOf(ctx, tx, limit, query, c.Args); err != nil {
			return err
		}
		found, err = s.wholes(ctx, tx, uids)
		return err
	})
	return found, next, err
}

// Whole returns one application with everything that belongs to it. Error: NOT_FOUND.
func (s *Service) Whole(ctx context.Context, uid uuid.UUID) (found Whole, err error) {
	err = s.inSnapshot(ctx, func(tx *postgres.Tx) (err error) {
		found, err = s.WholeIn(ctx, tx, uid)
		return err
	})
	return found, err
}

// WholeIn is Whole as seen by a transaction.
func (s *Service) WholeIn(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (Whole, error) {
	if _, err := load(ctx, tx, Caller{}, uid, ``); err != nil {
		return Whole{}, err
	}
	wholes, err := s.wholes(ctx, tx, []uuid.UUID{uid})
	if err != nil {
		return Whole{}, err
	}
	return wholes[0], nil
}

// wholes loads applications that exist, in the order of uids.
func (s *Service) wholes(ctx context.Context, tx *postgres.Tx, uids []uuid.UUID) ([]Whole, error) {
	apps, err := loadInOrder(ctx, tx, uids)
	if err != nil {
		return nil, err
	}
	papers, err := s.Loans.Papers(ctx, tx, uids)
	if err != nil {
		return nil, err
	}
	tasks, err := tasksOf(ctx, tx, uids)
	if err != nil {
		return nil, err
	}
	wholes := make([]Whole, 0, len(apps))
	for _, app := range apps {
		wholes = append(wholes, Whole{
			Application: app, Papers: papers[app.UID], Tasks: tasks[app.UID],
		})
	}
	return wholes, nil
}
