package bulk

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// row is a bulk re-send as the table holds it.
type row struct {
	UID           uuid.UUID  `db:"bulk_uid"`
	PartnerUID    uuid.UUID  `db:"partner_uid"`
	PartnerName   string     `db:"partner_name"`
	Kind          Kind       `db:"kind"`
	Scope         []byte     `db:"scope"`
	SkipNewer     bool       `db:"skip_newer"`
	SkipDelivered bool       `db:"skip_delivered"`
	Pace          int        `db:"pace"`
	State         State      `db:"state"`
	Run           int        `db:"run"`
	Reason        *string    `db:"reason"`
	CreatedBy     string     `db:"created_by"`
	CreatedAt     time.Time  `db:"created_at"`
	ConfirmedBy   *string    `db:"confirmed_by"`
	ConfirmedAt   *time.Time `db:"confirmed_at"`
	SettledAt     *time.Time `db:"settled_at"`
	EndedAt       *time.Time `db:"ended_at"`
	Counts
}

const columns = `
	b.bulk_uid, b.partner_uid, p.name AS partner_name, b.kind, b.scope, b.skip_newer,
	b.skip_delivered, b.pace, b.state, b.run, b.reason, b.created_by, b.created_at,
	b.confirmed_by, b.confirmed_at, b.settled_at, b.ended_at`

// counts adds up the lanes of each bulk re-send.
const counts = `,
	coalesce(c.waiting, 0) AS waiting, coalesce(c.sent, 0) AS sent,
	coalesce(c.delivered, 0) AS delivered, coalesce(c.failed, 0) AS failed,
	coalesce(c.cancelled, 0) AS cancelled,
	coalesce(c.skipped, 0) AS skipped
	 FROM bulk_resends b
	 JOIN partners p USING (partner_uid)
	 LEFT JOIN LATERAL (
	      SELECT sum(waiting) AS waiting, sum(sent) AS sent, sum(delivered) AS delivered,
	             sum(failed) AS failed, sum(cancelled) AS cancelled, sum(skipped) AS skipped
	        FROM bulk_resend_lanes l
	       WHERE l.bulk_uid = b.bulk_uid) AS c ON true`

func (r row) resend() (Resend, error) {
	bulk := Resend{
		UID: r.UID, PartnerName: r.PartnerName, State: r.State, Reason: postgres.OrZero(r.Reason),
		Options: Options{
			SkipNewer: r.SkipNewer, SkipDelivered: r.SkipDelivered, Pace: r.Pace,
		},
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, ConfirmedBy: postgres.OrZero(r.ConfirmedBy),
		ConfirmedAt: postgres.OrZero(r.ConfirmedAt), EndedAt: postgres.OrZero(r.EndedAt),
		Counts: r.Counts,
	}
	if err := json.Unmarshal(r.Scope, &bulk.Scope); err != nil {
		return Resend{}, fmt.Errorf("reading the scope of bulk re-send %s: %w", r.UID, err)
	}
	// The columns are what the database checks; the text only repeats them.
	bulk.Scope.PartnerUID, bulk.Scope.Kind = r.PartnerUID, r.Kind
	return bulk, nil
}

// get loads one bulk re-send, or answers NOT_FOUND.
func get(ctx context.Context, db sqlx.QueryerContext, uid uuid.UUID) (row, error) {
	var row row
	err := sqlx.GetContext(ctx, db, &row,
		`SELECT `+columns+counts+` WHERE b.bulk_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return row, errNone(uid)
	}
	if err != nil {
		return row, fmt.Errorf("loading bulk re-send %s: %w", uid, err)
	}
	return row, nil
}

// lock loads one bulk re-send and keeps everybody else from moving it on.
func lock(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) (row, error) {
	var found uuid.UUID
	err := tx.GetContext(ctx, &found,
		`SELECT bulk_uid FROM bulk_resends WHERE bulk_uid = $1 FOR NO KEY UPDATE`, uid)
	if postgres.IsNoRows(err) {
		return row{}, errNone(uid)
	}
	if err != nil {
		return row{}, fmt.Errorf("locking bulk re-send %s: %w", uid, err)
	}
	return get(ctx, tx, uid)
}

func errNone(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no bulk re-send has the id %s", uid)
}

// errState says what a bulk re-send is, and so cannot be any more.
func errState(row row, done, act string) error {
	return lending.NewError(lending.CodeInvalidState,
		"the bulk re-send is %s and cannot be %s; make a new one to %s", row.State, done, act)
}

// Get returns one bulk re-send, or NOT_FOUND.
func (s *Service) Get(ctx context.Context, uid uuid.UUID) (Resend, error) {
	row, err := get(ctx, s.DB, uid)
	if err != nil {
		return Resend{}, err
	}
	return row.resend()
}

// Filter narrows a list of bulk re-sends; a zero field does not.
type Filter struct {
	PartnerUID uuid.UUID
	State      State
	Cursor     postgres.Cursor
	// Limit is from 1 to postgres.MaxPage.
	Limit int
}

func (f Filter) conditions() postgres.Conditions {
	var c postgres.Conditions
	if f.PartnerUID != uuid.Nil {
		c.Add(`b.partner_uid = ?`, f.PartnerUID)
	}
	if f.State != "" {
		c.Add(`b.state = ?`, string(f.State))
	}
	if !f.Cursor.IsZero() {
		c.Add(`(b.created_at, b.bulk_uid) < (?, ?)`, f.Cursor.At, f.Cursor.UID)
	}
	return c
}

// List returns one page of the bulk re-sends that match, newest first, and the
// cursor of the next. Error: VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter Filter,
) ([]Resend, postgres.Cursor, error) {
	if err := postgres.CheckLimit(filter.Limit); err != nil {
		return nil, postgres.Cursor{}, err
	}
	c := filter.conditions()
	text := `SELECT ` + columns + counts + c.Where() +
		` ORDER BY b.created_at DESC, b.bulk_uid DESC LIMIT ` + c.Bind(filter.Limit+1)
	var rows []row
	err := s.DB.SelectContext(ctx, &rows, text, c.Args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing bulk re-sends: %w", err)
	}
	rows, next := postgres.Page(rows, filter.Limit, func(row row) postgres.Cursor {
		return postgres.Cursor{At: row.CreatedAt, UID: row.UID}
	})
	bulks := make([]Resend, 0, len(rows))
	for _, row := range rows {
		bulk, err := row.resend()
		if err != nil {
			return nil, postgres.Cursor{}, err
		}
		bulks = append(bulks, bulk)
	}
	return bulks, next, nil
}

// Count counts the bulk re-sends that match, at most limit of them; the
// filter's cursor and limit do not count.
func (s *Service) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	filter.Cursor = postgres.Cursor{}
	c := filter.conditions()
	text := `SELECT count(*) FROM (SELECT 1 FROM bulk_resends b` + c.Where() +
		` ORDER BY b.created_at DESC, b.bulk_uid DESC LIMIT ` + c.Bind(limit) + `) AS matching`
	count, err := s.DB.Count(ctx, text, c.Args...)
	if err != nil {
		return 0, fmt.Errorf("counting bulk re-sends: %w", err)
	}
	return count, nil
}
