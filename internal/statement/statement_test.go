package statement_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/calendar"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/statement"
)

// pay moves the money of a disbursement on, with a reference.
func (w *world) pay(id int64, to lending.FundingStatus, reference string) {
	w.t.Helper()
	w.Do(w.t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := w.Loans.MoveFunding(ctx, tx, apptest.Operator(), id,
			lending.FundingChange{
				Status: to, Evidence: lending.Evidence{Reference: &reference},
			})
		return err
	})
}

func TestWhatADayHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reference := "=PO-7"
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"), func(d *apptest.Draft) {
		d.ExternalReference = &reference
	})
	first := w.Draw(t, app.UID, loan.DrawInput{})
	w.pay(first.ID, lending.FundingProcessing, "ACH-1")
	w.clock.Move(24 * time.Hour)
	w.pay(first.ID, lending.FundingSettled, "ACH-2")
	w.due(1)
	w.freeze()

	_, tuesday := w.read(0, 0)
	data := tuesday.Result.Data
	if data.Date != w.date(0).String() || data.MerchantUID != w.Merchant || data.State != "frozen" ||
		*data.Version != 1 || data.Replaces != nil || *data.FrozenAt != tuesday.Timestamp ||
		!data.Until.Equal(w.tuesday.Add(12*time.Hour)) || data.Until.Sub(data.From) != 24*time.Hour {
		t.Errorf("the statement is of %+v", data)
	}
	if len(data.Disbursements) != 1 {
		t.Fatalf("disbursements %+v", data.Disbursements)
	}
	draw := data.Disbursements[0]
	if draw.ID != first.ID || draw.Status != "FUNDING_PROCESSING" || *draw.Reference != "ACH-1" ||
		*draw.ExternalReference != reference || draw.Gross != "4000.00" || draw.Net != "3850.00" ||
		len(draw.Changes) != 2 || draw.Changes[0].Status != "FUNDING_REQUESTED" ||
		draw.Changes[0].Reference != nil || *draw.Changes[1].Reference != "ACH-1" {
		t.Errorf("on its first day the disbursement is %+v", draw)
	}
	if want := (sums{1, "4000.00", "150.00", "3850.00"}); data.Totals.sums != want ||
		data.Totals.ByStatus["FUNDING_PROCESSING"] != want ||
		data.Totals.ByStatus["FUNDING_SETTLED"] != (sums{0, "0.00", "0.00", "0.00"}) {
		t.Errorf("totals %+v", data.Totals)
	}
	events := w.Count(t, `SELECT count(*) FROM events WHERE occurred_at < $1`, data.Until)
	if events != len(data.Events) || events < 4 {
		t.Errorf("%d events of %d", len(data.Events), events)
	}
	_, wednesday := w.read(1, 0)
	draw = wednesday.Result.Data.Disbursements[0]
	if draw.Status != "FUNDING_SETTLED" || *draw.Reference != "ACH-2" || len(draw.Changes) != 1 ||
		!wednesday.Result.Data.From.Equal(data.Until) {
		t.Errorf("on its second day the disbursement is %+v", draw)
	}
}

func TestCSVSaysWhatJSONSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reference := "=PO-7"
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"), func(d *apptest.Draft) {
		d.ExternalReference = &reference
	})
	w.Subscribe(t, nil)
	w.Settle(t, w.Draw(t, app.UID, loan.DrawInput{}).ID)
	w.due(0)
	w.freeze()
	_, read := w.read(0, 0)
	file, err := w.get(statement.Query{
		MerchantUID: w.Merchant, Date: w.date(0), Format: statement.CSV,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.verify(file)
	rows, err := csv.NewReader(bytes.NewReader(file.Content)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) int { return slices.Index(rows[0], name) }
	count := map[string]int{}
	for _, row := range rows[1:] {
		count[row[0]]++
		if row[0] == "disbursement" && (row[column("net")] != "3850.00" ||
			row[column("external_reference")] != "'=PO-7") {
			t.Errorf("disbursement %q", row)
		}
		if row[0] == "total" && row[column("status")] == "" && row[column("net")] != "3850.00" {
			t.Errorf("total %q", row)
		}
	}
	deliveries := 0
	for _, event := range read.Result.Data.Events {
		deliveries += len(event.Deliveries)
	}
	want := map[string]int{
		"statement": 1, "disbursement": 1, "change": 3, "event": len(read.Result.Data.Events),
		"delivery": deliveries, "total": 1 + len(lending.AllFundingStatuses()),
	}
	if diff := cmp.Diff(want, count); diff != "" || deliveries == 0 {
		t.Errorf("rows of each kind (-JSON +CSV):\n%s", diff)
	}
}

// What happens on a weekend or a holiday is in the next business day's statement.
func TestWeekendsAndHolidays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Statements.Calendar.Holidays = []calendar.Date{w.date(6)} // Monday
	w.due(0)
	w.freeze()
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	for _, days := range []int{3, 4, 5, 6, 7} { // Friday to Tuesday
		w.clock.Set(w.tuesday.AddDate(0, 0, days))
		w.Draw(t, w.Loan(t, product).UID, loan.DrawInput{})
	}
	w.due(7)
	if report := w.freeze(); len(report.Days) != 4 {
		t.Errorf("statements of %v", report.Days)
	}
	for days, want := range map[int]int{1: 0, 2: 0, 3: 1, 7: 4} {
		if _, read := w.read(days, 0); len(read.Result.Data.Disbursements) != want {
			t.Errorf("%d days on: %d disbursements, want %d", days,
				len(read.Result.Data.Disbursements), want)
		}
	}
	for _, days := range []int{4, 5, 6, 9, 300} {
		_, err := w.get(statement.Query{MerchantUID: w.Merchant, Date: w.date(days)})
		if lending.ErrorCode(err) != lending.CodeNotFound {
			t.Errorf("%d days on there is a statement (%v)", days, err)
		}
	}
	_, err := w.get(statement.Query{MerchantUID: w.Merchant, Date: w.date(4)})
	if err == nil || !strings.Contains(err.Error(), w.date(7).String()) {
		t.Errorf("Saturday's does not say where to look: %v", err)
	}
}

// Any number of workers, each with a clock that steps back and forth, make every merchant's
// statement of every day once, over consecutive days, and lose none that became due while no
// worker ran.
func TestOnceUnderManyWorkersAndClocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 45 { // more than one batch
		w.NewMerchant(t, w.Partner, "M")
	}
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	w.Draw(t, app.UID, loan.DrawInput{})
	w.due(9) // Thursday of the next week: eight days are due at once
	var workers sync.WaitGroup
	for n := range 4 {
		db, err := postgres.Open(t.Context(), w.DB.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		clock := apptest.NewClock()
		clock.Set(w.clock.Now())
		db.Now = clock.Now
		service := *w.Statements
		service.DB = db
		workers.Go(func() {
			for _, step := range []int{-72, 48, -24, 24, 24 * n, -96, 0} {
				clock.Set(w.clock.Now().Add(time.Duration(step) * time.Hour))
				if _, err := service.Freeze(t.Context()); err != nil {
					t.Errorf("worker %d: %v", n, err)
				}
			}
		})
	}
	workers.Wait()
	days := w.Count(t, `SELECT count(*) FROM statement_days`)
	if days < 8 || w.Count(t, `SELECT count(*) FROM statement_days WHERE finished_at IS NULL`) != 0 {
		t.Errorf("%d days, of which some are unfinished", days)
	}
	if gaps := w.Count(t, `
		SELECT count(*) FROM (SELECT begins, lag(ends) OVER (ORDER BY day) AS before
		                        FROM statement_days) AS d WHERE begins <> before`); gaps != 0 {
		t.Errorf("%d days do not begin where the one before ended", gaps)
	}
	if made := w.Count(t, `SELECT count(*) FROM statements`); made != days*46 {
		t.Errorf("%d statements of 46 merchants over %d days", made, days)
	}
	if again := w.freeze(); again.Statements+again.Corrections+len(again.Days) != 0 {
		t.Errorf("a further round made %+v", again)
	}
}

// A run that fails for a day leaves it to the next run, and does not hold up the others.
func TestARoundThatFailsIsTakenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec(t, `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.day = TG_ARGV[0]::date THEN RAISE EXCEPTION 'not today'; END IF;
			RETURN NEW;
		END $$`)
	w.Exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON statements
		FOR EACH ROW EXECUTE FUNCTION refuse('`+w.date(0).String()+`')`)
	w.due(1)
	if _, err := w.Statements.Freeze(t.Context()); err == nil {
		t.Error("the failure is kept quiet")
	}
	w.read(1, 1)
	if _, read := w.read(0, 0); read.Result.Data.State != "open" {
		t.Errorf("the day that failed is %s", read.Result.Data.State)
	}
	w.Exec(t, `DROP TRIGGER refuse ON statements`)
	if report := w.freeze(); report.Statements != 1 {
		t.Errorf("the next round made %+v", report)
	}
	w.read(0, 1)
}

func TestOpenStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	w.Draw(t, app.UID, loan.DrawInput{})
	file, read := w.read(0, 0)
	if data := read.Result.Data; file.Version != 0 || data.State != "open" || data.Version != nil ||
		data.FrozenAt != nil || data.KeyID != file.KeyID || len(data.Disbursements) != 1 {
		t.Errorf("the open statement is %+v", data)
	}
	if n := w.Count(t, `SELECT count(*) FROM statements`); n != 0 {
		t.Errorf("reading stored %d statements", n)
	}
	// The day is over, but not its grace period.
	w.due(0)
	w.clock.Move(-time.Minute)
	if report := w.freeze(); report.Statements != 0 {
		t.Errorf("frozen before its time: %+v", report)
	}
	if _, read := w.read(0, 0); read.Result.Data.State != "open" {
		t.Error("not open in the grace")
	}
	later := w.NewMerchant(t, w.Partner, "Later")
	for name, wanted := range map[string]statement.Query{
		"not begun":           {MerchantUID: w.Merchant, Date: w.date(2)},
		"before the service":  {MerchantUID: w.Merchant, Date: w.date(-1)},
		"before the merchant": {MerchantUID: later, Date: w.date(0)},
		"no such version":     {MerchantUID: w.Merchant, Date: w.date(0), Version: 1},
		"nobody":              {MerchantUID: uuid.New(), Date: w.date(0)},
	} {
		if _, err := w.get(wanted); lending.ErrorCode(err) != lending.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenStatementBesideAMigration: the database refuses a statement that it prepared before a
// column changed, and the transaction is tried again.
func TestOpenStatementBesideAMigration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := statement.Query{MerchantUID: w.Merchant, Date: w.date(0)}
	now := w.DB.Now()
	w.Exec(t, `INSERT INTO statement_days (day, begins, ends) VALUES ($1, $2, $3)`,
		open.Date.String(), now.Add(-time.Hour), now.Add(time.Hour))
	if _, err := w.get(open); err != nil {
		t.Fatal(err)
	}
	w.Exec(t, `ALTER TABLE statement_days ALTER COLUMN begins TYPE timestamptz(3)`)
	if _, err := w.get(open); err != nil {
		t.Errorf("beside the migration: %v", err)
	}
}

func TestStatementsNeverChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.due(0)
	w.freeze()
	for _, statement := range []string{
		`UPDATE statements SET json = ''`, `DELETE FROM statements`, `TRUNCATE statements`,
	} {
		if _, err := w.DB.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s is allowed", statement)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	product := w.NewProduct(t, "SOLAR", "40,40,20")
	var ids []int64
	for range 3 {
		ids = append(ids, w.Draw(t, w.Loan(t, product).UID, loan.DrawInput{}).ID)
	}
	wanted := statement.Query{MerchantUID: w.Merchant, Date: w.date(0), Format: statement.CSV}
	compare := func(books ...statement.Line) (found statement.Comparison) {
		w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
			found, err = w.Statements.Compare(ctx, tx, wanted, books)
			return err
		})
		return found
	}
	net := apptest.Money("3850")
	for _, frozen := range []bool{false, true} {
		if frozen {
			w.due(0)
			w.freeze()
		}
		found := compare(statement.Line{ID: ids[0], Net: net}, statement.Line{ID: 7, Net: net},
			statement.Line{ID: ids[2], Net: apptest.Money("3849.99")})
		if (found.Version != nil) != frozen {
			t.Errorf("frozen %t: compared with version %v", frozen, found.Version)
		}
		found.State, found.Version = "", nil
		want := statement.Comparison{
			Date:    w.date(0).String(),
			Missing: []statement.Line{{ID: ids[1], Net: net}},
			Extra:   []statement.Line{{ID: 7, Net: net}},
			Different: []statement.Difference{
				{Line: statement.Line{ID: ids[2], Net: apptest.Money("3849.99")}, StatementNet: net},
			},
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("frozen %t (-want +got):\n%s", frozen, diff)
		}
	}
	if found := compare(); len(found.Missing) != 3 {
		t.Errorf("empty books lack %v", found.Missing)
	}
}

// A count that takes too long is abandoned, and the list is returned without it.
func TestCountIsGivenUp(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	statements := &statement.Service{DB: w.DB}
	busy, err := w.DB.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Rollback() }() // it only holds a lock
	if _, err := busy.ExecContext(t.Context(), `LOCK TABLE statements`); err != nil {
		t.Fatal(err)
	}
	hasty, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = statements.Count(hasty, statement.Filter{}, 1)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the count ended with %v", err)
	}
}
