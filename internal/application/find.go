package application

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Wanted selects the applications that Find returns. A zero Status, Reference or CreatedSince
// does not narrow the selection.
type Wanted struct {
	// MerchantUIDs are the merchants whose applications are returned.
	MerchantUIDs []uuid.UUID
	Status       lending.ApplicationStatus
	// Reference is the external reference, which must match as a whole.
	Reference *string
	// CreatedSince is the earliest time of creation.
	CreatedSince time.Time
}

// Find returns one page of the wanted applications with their offers, newest first and read in
// one snapshot, and the cursor of the next page, zero on the last one. Error: VALIDATION_ERROR
// for the limit.
func (s *Service) Find(
	ctx context.Context, wanted Wanted, page postgres.Paging,
) (found []Application, next postgres.Cursor, err error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	query, args := wanted.query(page)
	err = s.inSnapshot(ctx, func(tx *postgres.Tx) (err error) {
		var uids []uuid.UUID
		if uids, next, err = pageOf(ctx, tx, page.Limit, query, args); err != nil {
			return err
		}
		found, err = loadInOrder(ctx, tx, uids)
		return err
	})
	return found, next, err
}

// pageOf runs a query for uids and times with one row more than the limit, and returns the page
// and the cursor of the next one.
func pageOf(
	ctx context.Context, tx *postgres.Tx, limit int, query string, args []any,
) ([]uuid.UUID, postgres.Cursor, error) {
	var places []postgres.Cursor
	if err := tx.SelectContext(ctx, &places, query, args...); err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("finding applications: %w", err)
	}
	places, next := postgres.Page(places, limit,
		func(place postgres.Cursor) postgres.Cursor { return place })
	uids := make([]uuid.UUID, 0, len(places))
	for _, place := range places {
		uids = append(uids, place.UID)
	}
	return uids, next, nil
}

// loadInOrder loads applications in the order of uids.
func loadInOrder(ctx context.Context, tx *postgres.Tx, uids []uuid.UUID) ([]Application, error) {
	loaded, err := loadAll(ctx, tx, Caller{}, uids, ``)
	if err != nil {
		return nil, err
	}
	byUID := make(map[uuid.UUID]Application, len(loaded))
	for _, app := range loaded {
		byUID[app.UID] = app
	}
	apps := make([]Application, 0, len(uids))
	for _, uid := range uids {
		apps = append(apps, byUID[uid])
	}
	return apps, nil
}

// query renders the statement of a page, with one row more than the limit. It reads each
// merchant's newest applications from the index that orders them, so the cost of a page does not
// depend on how many others there are.
func (w Wanted) query(page postgres.Paging) (string, []any) {
	var c postgres.Conditions
	merchants := c.Bind(pq.Array(w.MerchantUIDs))
	c.Add(`a.merchant_uid = m.merchant_uid`)
	c.When(w.Status != "", `a.status = ?`, string(w.Status))
	c.When(!w.CreatedSince.IsZero(), `a.created_at >= ?`, w.CreatedSince)
	if w.Reference != nil {
		c.Add(`a.external_reference = ?`, *w.Reference)
	}
	c.OlderThan(page.From, `a.created_at`, `a.application_uid`)
	newest := ` ORDER BY created_at DESC, application_uid DESC LIMIT ` + c.Bind(page.Limit+1)
	return `
		SELECT newest.application_uid AS uid, newest.created_at AS at
		  FROM unnest(` + merchants + `::uuid[]) AS m (merchant_uid)
		 CROSS JOIN LATERAL (
		       SELECT a.application_uid, a.created_at
		         FROM applications a` + c.Where() + newest + `) AS newest` + newest, c.Args
}
