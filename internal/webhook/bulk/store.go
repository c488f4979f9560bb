package bulk

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// row is a bulk re-send with the columns needed to advance it.
type row struct {
	Resend
	PartnerUID uuid.UUID  `db:"partner_uid"`
	Kind       Kind       `db:"kind"`
	Run        int        `db:"run"`
	Confirmed  *time.Time `db:"confirmed_at"`
	SettledAt  *time.Time `db:"settled_at"`
	Ended      *time.Time `db:"ended_at"`
}

// selectRows sums the counts over the targets of each bulk re-send.
const selectRows = `
	SELECT b.bulk_uid, b.partner_uid, p.name AS partner_name, b.kind, b.scope, b.state, b.run,
	       b.skip_newer AS "options.skip_newer", b.skip_delivered AS "options.skip_delivered",
	       b.pace AS "options.pace", coalesce(b.reason, '') AS reason, b.created_by, b.created_at,
	       coalesce(b.confirmed_by, '') AS confirmed_by, b.confirmed_at, b.settled_at, b.ended_at,
	       coalesce(c.waiting, 0) AS "counts.waiting",
	       coalesce(c.sent, 0) AS "counts.sent",
	       coalesce(c.delivered, 0) AS "counts.delivered",
	       coalesce(c.failed, 0) AS "counts.failed",
	       coalesce(c.cancelled, 0) AS "counts.cancelled",
	       coalesce(c.skipped, 0) AS "counts.skipped"
	  FROM bulk_resends b
	  JOIN partners p USING (partner_uid)
	  LEFT JOIN LATERAL (
	       SELECT sum(waiting) AS waiting, sum(sent) AS sent, sum(delivered) AS delivered,
	              sum(failed) AS failed, sum(cancelled) AS cancelled, sum(skipped) AS skipped
	         FROM bulk_resend_lanes l
	        WHERE l.bulk_uid = b.bulk_uid) AS c ON true`

// complete fills in the fields that the columns hold in another form.
func (r *row) complete() {
	r.ConfirmedAt, r.EndedAt = postgres.OrZero(r.Confirmed), postgres.OrZero(r.Ended)
	// The columns are checked by the database; the JSON only repeats them.
	r.Scope.PartnerUID, r.Scope.Kind = r.PartnerUID, r.Kind
}

// get loads one bulk re-send, or returns NOT_FOUND.
func get(ctx context.Context, db sqlx.QueryerContext, uid uuid.UUID) (row, error) {
	var found row
	err := sqlx.GetContext(ctx, db, &found, selectRows+` WHERE b.bulk_uid = $1`, uid)
	if err := postgres.RowError(err, errNone(uid), "loading bulk re-send %s", uid); err != nil {
		return row{}, err
	}
	found.complete()
	return found, nil
}

// lock loads one bulk re-send and keeps others from advancing it.
func lock(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (row, error) {
	var found uuid.UUID
	err := tx.GetContext(ctx, &found,
		`SELECT bulk_uid FROM bulk_resends WHERE bulk_uid = $1 FOR NO KEY UPDATE`, uid)
	if err := postgres.RowError(err, errNone(uid), "locking bulk re-send %s", uid); err != nil {
		return row{}, err
	}
	return get(ctx, tx, uid)
}

func errNone(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no bulk re-send has the id %s", uid)
}

// errState refuses an act that the state of a bulk re-send does not allow.
func errState(row row, done, act string) error {
	return lending.NewError(lending.CodeInvalidState,
		"the bulk re-send is %s and cannot be %s; make a new one to %s", row.State, done, act)
}

// Get returns one bulk re-send, or NOT_FOUND.
func (s *Service) Get(ctx context.Context, uid uuid.UUID) (Resend, error) {
	row, err := get(ctx, s.DB, uid)
	return row.Resend, err
}

// Lock is Get for one that nobody else may advance before the transaction ends.
func (s *Service) Lock(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (Resend, error) {
	row, err := lock(ctx, tx, uid)
	return row.Resend, err
}

// Filter narrows a list of bulk re-sends; zero fields do not.
type Filter struct {
	PartnerUID uuid.UUID
	State      State
}

func (f Filter) conditions() postgres.Conditions {
	var c postgres.Conditions
	c.When(f.PartnerUID != uuid.Nil, `b.partner_uid = ?`, f.PartnerUID)
	c.When(f.State != "", `b.state = ?`, string(f.State))
	return c
}

// List returns one page of the bulk re-sends that match, newest first, and the
// cursor of the next. Error: VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Resend, postgres.Cursor, error) {
	rows, next, err := postgres.List[row]{
		What: "bulk re-sends", Select: selectRows, At: `b.created_at`, UID: `b.bulk_uid`,
		Place: func(r row) postgres.Cursor { return postgres.Cursor{At: r.CreatedAt, UID: r.UID} },
	}.Page(ctx, s.DB, filter.conditions(), page)
	bulks := make([]Resend, 0, len(rows))
	for _, row := range rows {
		row.complete()
		bulks = append(bulks, row.Resend)
	}
	return bulks, next, err
}

// Count counts the bulk re-sends that match, at most limit of them.
func (s *Service) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	c := filter.conditions()
	return s.DB.CountUpTo(ctx, limit, "bulk re-sends", `FROM bulk_resends b`+c.Where()+
		` ORDER BY b.created_at DESC, b.bulk_uid DESC`, c.Args)
}
