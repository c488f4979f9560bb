package statement

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/calendar"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// Query selects a statement.
type Query struct {
	MerchantUID uuid.UUID
	Date        calendar.Date
	// Version is zero for the newest, which may be open.
	Version int
	Format  Format
}

// Read is Get in its own transaction, for a caller that changes nothing. The content of an open
// statement is read in one snapshot. Error: NOT_FOUND.
func (s *Service) Read(ctx context.Context, wanted Query) (file File, err error) {
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) (err error) {
		_, err = tx.ExecContext(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`)
		if err != nil {
			return fmt.Errorf("reading at one moment: %w", err)
		}
		file, err = s.Get(ctx, tx, wanted)
		return err
	})
	return file, err
}

// Get returns a statement, byte for byte as it was frozen, or newly composed while it is open.
// Error: NOT_FOUND.
func (s *Service) Get(ctx context.Context, tx *postgres.Tx, wanted Query) (File, error) {
	file, found, err := stored(ctx, tx, wanted)
	switch {
	case err != nil || found:
		return file, err
	case wanted.Version != 0:
		return File{}, lending.NewError(lending.CodeNotFound,
			"there is no version %d of the statement for %s", wanted.Version, wanted.Date)
	}
	on, closed := s.openDay(ctx, tx, wanted)
	if lending.ErrorCode(closed) == lending.CodeNotFound {
		// It may have been frozen meanwhile.
		if file, found, err = stored(ctx, tx, wanted); err != nil || found {
			return file, err
		}
	}
	if closed != nil {
		return File{}, closed
	}
	signer, err := s.signer(ctx, tx)
	if err != nil {
		return File{}, err
	}
	contents, err := s.compose(ctx, tx, on, []uuid.UUID{wanted.MerchantUID})
	if err != nil {
		return File{}, err
	}
	composed, open := contents[wanted.MerchantUID], edition{
		day: on, merchant: wanted.MerchantUID, at: tx.Now,
	}
	file.KeyID = signer.id
	if file.Content = composed.json(open, signer.id); wanted.Format == CSV {
		file.Content = composed.csv(open, signer.id)
	}
	file.Signature = signer.sign(file.Content)
	return file, nil
}

// stored returns a frozen statement.
func stored(ctx context.Context, tx *postgres.Tx, wanted Query) (file File, found bool, err error) {
	var row struct {
		Version   int    `db:"version"`
		KeyID     string `db:"key_id"`
		Content   []byte `db:"content"`
		Signature []byte `db:"signature"`
	}
	err = tx.GetContext(ctx, &row, `
		SELECT version,
		       key_id,
		       CASE WHEN $4 THEN csv ELSE json END AS content,
		       CASE WHEN $4 THEN csv_signature ELSE json_signature END AS signature
		  FROM statements
		 WHERE merchant_uid = $1
		   AND day = $2
		   AND ($3 = 0 OR version = $3)
		 ORDER BY version DESC
		 LIMIT 1`,
		wanted.MerchantUID, wanted.Date.String(), wanted.Version, wanted.Format == CSV)
	if postgres.IsNoRows(err) {
		return File{}, false, nil
	}
	if err != nil {
		return File{}, false, fmt.Errorf("loading the statement of %s: %w", wanted.Date, err)
	}
	return File{row.Content, row.Signature, row.KeyID, row.Version}, true, nil
}

// openDay returns a day whose statement is not frozen yet. Error: NOT_FOUND if the day has not
// begun, is not a business day, or is before the first statements or before the merchant.
func (s *Service) openDay(ctx context.Context, tx *postgres.Tx, wanted Query) (day, error) {
	date := wanted.Date
	none := func(why string, args ...any) error {
		return lending.NewError(lending.CodeNotFound,
			"there is no statement for "+date.String()+": "+why, args...)
	}
	if !s.Calendar.IsBusiness(date) {
		return day{}, none("it is not a business day; its entries are in the statement for %s",
			s.Calendar.Next(date))
	}
	next, found, err := s.next(ctx, tx)
	if err != nil {
		return day{}, err
	}
	on := next
	switch {
	case !found || date.String() < next.date():
		err := tx.GetContext(ctx, &on, `
			SELECT day, begins, ends FROM statement_days WHERE day = $1 AND finished_at IS NULL`,
			date.String())
		if postgres.IsNoRows(err) {
			return day{}, none("it is before the first statement, or before the merchant existed")
		}
		if err != nil {
			return day{}, fmt.Errorf("loading the day %s: %w", date, err)
		}
	case date.String() > next.date():
		on = day{dayOf(date.String()), s.Calendar.Start(date), s.Calendar.End(date)}
	}
	if tx.Now.Before(on.Begins) {
		return day{}, none("the day has not begun yet")
	}
	var exists bool
	err = tx.GetContext(ctx, &exists, `
		SELECT EXISTS (SELECT FROM merchants WHERE merchant_uid = $1 AND created_at < $2)`,
		wanted.MerchantUID, on.Ends)
	if err != nil {
		return day{}, fmt.Errorf("looking up merchant %s: %w", wanted.MerchantUID, err)
	}
	if !exists {
		return day{}, none("the merchant did not exist yet")
	}
	return on, nil
}

// Filter narrows a list of statements; zero fields do not narrow it.
type Filter struct {
	// Merchants are the merchants whose statements are listed, nil for all.
	Merchants []uuid.UUID
	// Date selects one day; Since is inclusive, Until exclusive.
	Date, Since, Until string
	// Versions lists every version instead of only the newest.
	Versions bool
}

// Summary is a frozen statement in a list.
type Summary struct {
	MerchantUID  uuid.UUID `db:"merchant_uid"`
	MerchantName string    `db:"merchant_name"`
	Day          time.Time `db:"day"`
	Begins       time.Time `db:"begins"`
	Ends         time.Time `db:"ends"`
	Version      int       `db:"version"`
	FrozenAt     time.Time `db:"frozen_at"`
	KeyID        string    `db:"key_id"`
	// Disbursements, Changes and Events count the entries of the statement.
	Disbursements int           `db:"disbursements"`
	Changes       int           `db:"changes"`
	Events        int           `db:"events"`
	Gross         lending.Money `db:"gross"`
	Fee           lending.Money `db:"fee"`
	Net           lending.Money `db:"net"`
	// Unresolved means that the delivery of an event had not arrived.
	Unresolved bool `db:"unresolved"`
}

// Date returns the business day.
func (s Summary) Date() string { return s.Day.Format(time.DateOnly) }

// conditions returns the filter's conditions on statements s.
func (f Filter) conditions() postgres.Conditions {
	var c postgres.Conditions
	c.When(f.Merchants != nil, `s.merchant_uid = ANY (?)`, pq.Array(f.Merchants))
	c.When(f.Date != "", `s.day = ?`, f.Date)
	c.When(f.Since != "", `s.day >= ?`, f.Since)
	c.When(f.Until != "", `s.day < ?`, f.Until)
	c.When(!f.Versions, `NOT EXISTS (
		SELECT FROM statements n
		 WHERE n.merchant_uid = s.merchant_uid AND n.day = s.day AND n.version > s.version)`)
	return c
}

// List returns one page of the matching frozen statements, newest first, each in its newest
// version unless all versions are requested, and the cursor of the next page. Error:
// VALIDATION_ERROR for the limit.
func (s *Service) List(
	ctx context.Context, filter Filter, page postgres.Paging,
) ([]Summary, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	c := filter.conditions()
	c.When(!page.From.IsZero(), `(s.day, s.merchant_uid) < (?::date, ?)`,
		page.From.At.Format(time.DateOnly), page.From.UID)
	var found []Summary
	err := s.DB.SelectContext(ctx, &found, `
		SELECT s.merchant_uid, m.name AS merchant_name, s.day, d.begins, d.ends, s.version,
		       s.frozen_at, s.key_id, s.disbursements, s.changes, s.events, s.gross, s.fee, s.net,
		       s.unresolved
		  FROM statements s
		  JOIN statement_days d USING (day)
		  JOIN merchants m USING (merchant_uid)`+c.Where()+`
		 ORDER BY s.day DESC, s.merchant_uid DESC, s.version DESC
		 LIMIT `+c.Bind(page.Limit+1), c.Args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing statements: %w", err)
	}
	found, next := postgres.Page(found, page.Limit, func(s Summary) postgres.Cursor {
		return postgres.Cursor{At: s.Day, UID: s.MerchantUID}
	})
	return found, next, nil
}

// Count counts the matching statements, up to a limit.
func (s *Service) Count(ctx context.Context, filter Filter, limit int) (int, error) {
	c := filter.conditions()
	return s.DB.CountUpTo(ctx, limit, "statements", `FROM statements s`+c.Where(), c.Args)
}

// Line is a disbursement in a partner's books.
type Line struct {
	ID  int64         `json:"merchantDisbursementId"`
	Net lending.Money `json:"net"`
}

// Difference is a disbursement whose amount differs between the partner's books and the
// statement.
type Difference struct {
	Line

	StatementNet lending.Money `json:"statement_net"`
}

// Comparison lists the differences between a partner's books and a statement.
type Comparison struct {
	Date    string `json:"date"`
	State   State  `json:"state"`
	Version *int   `json:"version"`
	// Missing are only in the statement, Extra only in the books.
	Missing   []Line       `json:"missing"`
	Extra     []Line       `json:"extra"`
	Different []Difference `json:"different"`
}

// Compare compares a partner's books with the newest version of a statement: each disbursement
// by its id and net amount. Error: NOT_FOUND.
func (s *Service) Compare(
	ctx context.Context, tx *postgres.Tx, wanted Query, books []Line,
) (Comparison, error) {
	wanted.Version, wanted.Format = 0, JSON
	file, err := s.Get(ctx, tx, wanted)
	if err != nil {
		return Comparison{}, err
	}
	var stored envelope
	if err := json.Unmarshal(file.Content, &stored); err != nil {
		return Comparison{}, fmt.Errorf("reading the statement of %s again: %w", wanted.Date, err)
	}
	data := stored.Result.Data
	found := Comparison{
		Date: data.Date, State: data.State, Version: data.Version,
		Missing: []Line{}, Extra: []Line{}, Different: []Difference{},
	}
	theirs := make(map[int64]bool, len(books))
	ours := make(map[int64]lending.Money, len(data.Disbursements))
	for _, disbursement := range data.Disbursements {
		ours[disbursement.ID] = disbursement.Net
	}
	for _, line := range books {
		theirs[line.ID] = true
		net, listed := ours[line.ID]
		switch {
		case !listed:
			found.Extra = append(found.Extra, line)
		case !net.Equal(line.Net):
			found.Different = append(found.Different, Difference{line, net})
		}
	}
	for _, disbursement := range data.Disbursements {
		if !theirs[disbursement.ID] {
			found.Missing = append(found.Missing, Line{disbursement.ID, disbursement.Net})
		}
	}
	return found, nil
}
