package loan

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// DrawFilter narrows the list of disbursements; zero fields do not narrow it.
type DrawFilter struct {
	Status      lending.FundingStatus
	MerchantUID uuid.UUID
	// RequestedBefore is the exclusive upper bound of the time of the request.
	RequestedBefore time.Time
}

const selectDraws = `
	SELECT d.stage,` + drawColumns + `
	  FROM disbursements d
	  JOIN applications a USING (application_uid)`

// Draws returns one page of the matching disbursements, the oldest request first, and the cursor
// of the next page, zero on the last one. Error: VALIDATION_ERROR for the limit.
func (s *Service) Draws(
	ctx context.Context, filter DrawFilter, page postgres.Paging,
) ([]Disbursement, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	var c postgres.Conditions
	c.When(filter.Status != "", `d.status = ?`, string(filter.Status))
	c.When(filter.MerchantUID != uuid.Nil, `a.merchant_uid = ?`, filter.MerchantUID)
	c.When(!filter.RequestedBefore.IsZero(), `d.requested_at < ?`, filter.RequestedBefore)
	requestedAfter(&c, page.From)
	var rows []drawRow
	err := s.DB.SelectContext(ctx, &rows, selectDraws+c.Where()+`
		 ORDER BY d.requested_at, d.merchant_disbursement_id
		 LIMIT `+c.Bind(page.Limit+1), c.Args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing disbursements: %w", err)
	}
	draws, next := postgres.Page(disbursements(rows), page.Limit, Disbursement.place)
	return draws, next, nil
}

// place returns the cursor of the disbursement in a list by age: the UID holds its id.
func (d Disbursement) place() postgres.Cursor {
	place := postgres.Cursor{At: d.RequestedAt}
	binary.BigEndian.PutUint64(place.UID[8:], uint64(d.ID))
	return place
}

// requestedAfter selects the disbursements d that follow a cursor in such a list.
func requestedAfter(c *postgres.Conditions, place postgres.Cursor) {
	c.When(!place.IsZero(), `(d.requested_at, d.merchant_disbursement_id) > (?, ?)`, place.At,
		int64(binary.BigEndian.Uint64(place.UID[8:])))
}

// Draw returns one disbursement. Error: NOT_FOUND.
func (s *Service) Draw(ctx context.Context, id int64) (Disbursement, error) {
	var row drawRow
	err := s.DB.GetContext(ctx, &row, selectDraws+` WHERE d.merchant_disbursement_id = $1`, id)
	return row.disbursement(), postgres.RowError(err, errNoDisbursement(id),
		"loading disbursement %d", id)
}

// Papers are the loan and the completion certificates of an application.
type Papers struct {
	// Loan is nil until it opens.
	Loan         *Loan
	Certificates []StoredCertificate
}

// Papers returns the papers of each of the applications.
func (s *Service) Papers(
	ctx context.Context, tx *postgres.Tx, uids []uuid.UUID,
) (map[uuid.UUID]Papers, error) {
	loans, err := findAll(ctx, tx, uids)
	if err != nil {
		return nil, err
	}
	certificates, err := certificatesOf(ctx, tx, uids)
	if err != nil {
		return nil, err
	}
	papers := make(map[uuid.UUID]Papers, len(uids))
	for _, uid := range uids {
		papers[uid] = Papers{Loan: loans[uid], Certificates: certificates[uid]}
	}
	return papers, nil
}
