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

// Wanted says which applications Find returns. Status, Reference and CreatedSince
// narrow nothing while they are zero.
type Wanted struct {
	// MerchantUIDs are the merchants whose applications they are.
	MerchantUIDs []uuid.UUID
	Status       lending.ApplicationStatus
	// Reference is the external reference as a whole.
	Reference *string
	// CreatedSince is the earliest time of creation.
	CreatedSince time.Time
	// Cursor is where the page begins, Limit how many it holds, 1 to postgres.MaxPage.
	Cursor postgres.Cursor
	Limit  int
}

// Find returns one page of the applications that are wanted, whole and newest first,
// and where the next page begins, zero on the last one. Error: VALIDATION_ERROR for
// the limit.
func (s *Service) Find(
	ctx context.Context, wanted Wanted,
) ([]Application, postgres.Cursor, error) {
	if err := postgres.CheckLimit(wanted.Limit); err != nil {
		return nil, postgres.Cursor{}, err
	}
	query, args := wanted.query()
	var rows []struct {
		UID       uuid.UUID `db:"application_uid"`
		CreatedAt time.Time `db:"created_at"`
	}
	if err := s.DB.SelectContext(ctx, &rows, query, args...); err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("finding applications: %w", err)
	}
	places := make([]postgres.Cursor, 0, len(rows))
	for _, row := range rows {
		places = append(places, postgres.Cursor{At: row.CreatedAt, UID: row.UID})
	}
	places, next := postgres.Page(places, wanted.Limit,
		func(place postgres.Cursor) postgres.Cursor { return place })
	uids := make([]uuid.UUID, 0, len(places))
	for _, place := range places {
		uids = append(uids, place.UID)
	}
	loaded, err := loadAll(ctx, s.DB, Caller{}, uids, ``)
	if err != nil {
		return nil, postgres.Cursor{}, err
	}
	byUID := make(map[uuid.UUID]Application, len(loaded))
	for _, app := range loaded {
		byUID[app.UID] = app
	}
	apps := make([]Application, 0, len(uids))
	for _, uid := range uids {
		apps = append(apps, byUID[uid])
	}
	return apps, next, nil
}

// query renders the statement of a page, with one row more than the limit. Each
// merchant's newest are read by the index that holds them in order, so that a page
// costs the same however many others there are.
func (w Wanted) query() (string, []any) {
	var c postgres.Conditions
	merchants := c.Bind(pq.Array(w.MerchantUIDs))
	c.Add(`a.merchant_uid = m.merchant_uid`)
	c.When(w.Status != "", `a.status = ?`, string(w.Status))
	c.When(!w.CreatedSince.IsZero(), `a.created_at >= ?`, w.CreatedSince)
	if w.Reference != nil {
		c.Add(`a.external_reference = ?`, *w.Reference)
	}
	if !w.Cursor.IsZero() {
		c.Add(`(a.created_at, a.application_uid) < (?, ?)`, w.Cursor.At, w.Cursor.UID)
	}
	newest := ` ORDER BY created_at DESC, application_uid DESC LIMIT ` + c.Bind(w.Limit+1)
	return `
		SELECT newest.application_uid, newest.created_at
		  FROM unnest(` + merchants + `::uuid[]) AS m (merchant_uid)
		 CROSS JOIN LATERAL (
		       SELECT a.application_uid, a.created_at
		         FROM applications a` + c.Where() + newest + `) AS newest` + newest, c.Args
}
