package statement_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/statement"
)

// A draw whose steps have only times, as in made-up data, appears in the statement of each day
// with a step, and delays nothing.
func TestStepsWithoutEvidenceAreStated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	draw := w.Draw(t, w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20")).UID, loan.DrawInput{})
	w.Exec(t, `
		UPDATE disbursements
		   SET status = 'RETURNED',
		       processing_at = requested_at + interval '1 hour',
		       settled_at = requested_at + interval '1 day',
		       returned_at = requested_at + interval '3 days'`)
	w.due(3)
	if report := w.freeze(); report.Statements != len(report.Days) {
		t.Errorf("made %+v", report)
	}
	for days, want := range []string{
		"FUNDING_REQUESTED, FUNDING_PROCESSING", "FUNDING_SETTLED", "", "RETURNED",
	} {
		_, read := w.read(days, 0)
		var steps []string
		for _, draw := range read.Result.Data.Disbursements {
			for _, change := range draw.Changes {
				steps = append(steps, change.Status)
			}
		}
		if got := strings.Join(steps, ", "); got != want {
			t.Errorf("%d days on draw %d has the steps %q, want %q", days, draw.ID, got, want)
		}
	}
}

// A merchant whose statement cannot be written does not keep others from getting theirs.
func TestAMerchantThatFailsIsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchants := []uuid.UUID{w.Merchant}
	for range 30 { // more than one batch
		merchants = append(merchants, w.NewMerchant(t, w.Partner, "M"))
	}
	w.Exec(t, `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.merchant_uid = TG_ARGV[0]::uuid THEN RAISE EXCEPTION 'not this one'; END IF;
			RETURN NEW;
		END $$`)
	w.Exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON statements
		FOR EACH ROW EXECUTE FUNCTION refuse('`+merchants[1].String()+`')`)
	w.due(1)
	report, err := w.Statements.Freeze(t.Context())
	if err == nil || len(report.Days) != 0 {
		t.Errorf("with a merchant that fails: %+v, %v", report, err)
	}
	if made := w.Count(t, `SELECT count(*) FROM statements`); made != 2*30 {
		t.Errorf("30 merchants have %d statements of two days", made)
	}
	w.Exec(t, `DROP TRIGGER refuse ON statements`)
	if report := w.freeze(); report.Statements != 2 || len(report.Days) != 2 {
		t.Errorf("the next round made %+v", report)
	}
}

// A merchant created on a day that was frozen early gets that day's statement with the next one.
func TestMerchantOfADayFrozenEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.due(0)
	w.freeze()
	w.clock.Set(w.tuesday)
	late := w.NewMerchant(t, w.Partner, "Late")
	if _, err := w.get(statement.Query{MerchantUID: late, Date: w.date(0)}); err == nil {
		t.Fatal("there is a statement already")
	}
	w.due(1)
	if report := w.freeze(); report.Statements != 2 || report.Corrections != 1 {
		t.Errorf("the next round made %+v", report)
	}
	for days := range 2 {
		file, err := w.get(statement.Query{MerchantUID: late, Date: w.date(days)})
		if err != nil || file.Version != 1 {
			t.Errorf("%d days on: version %d, %v", days, file.Version, err)
		}
	}
}

// A statement whose day is frozen while it is read is still found, either as it was before or as
// it is afterwards.
func TestFrozenWhileItIsRead(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		ask   func(w *world, wanted statement.Query) (string, error)
		state string
	}{
		"read": {func(w *world, wanted statement.Query) (string, error) {
			file, err := w.get(wanted)
			var read written
			if err == nil {
				err = json.Unmarshal(file.Content, &read)
			}
			return read.Result.Data.State, err
		}, "open"},
		"compare": {func(w *world, wanted statement.Query) (state string, err error) {
			err = w.Try(w.t, func(ctx context.Context, tx *postgres.Tx) error {
				found, err := w.Statements.Compare(ctx, tx, wanted, nil)
				state = string(found.State)
				return err
			})
			return state, err
		}, "frozen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.due(0)
			w.freeze()
			w.due(1)
			freezing := pgtest.Begin(t, w.DB, `LOCK TABLE statement_days`)
			states := make(chan string)
			go func() {
				state, err := way.ask(w, statement.Query{
					MerchantUID: w.Merchant, Date: w.date(1), Format: statement.JSON,
				})
				if err != nil {
					t.Error(err)
				}
				states <- state
			}()
			pgtest.WaitForLock(t, w.DB)
			freezing.MustExecContext(t.Context(), `
				INSERT INTO statement_days (day, begins, ends, finished_at)
				SELECT day + 1, ends, ends + interval '1 day', now()
				  FROM statement_days ORDER BY day DESC LIMIT 1`)
			freezing.MustExecContext(t.Context(), `
				INSERT INTO statements
				SELECT merchant_uid, day + 1, version, frozen_at, key_id, json, json_signature, csv,
				       csv_signature, content, disbursements, changes, events, gross, fee, net, unresolved
				  FROM statements`)
			if err := freezing.Commit(); err != nil {
				t.Fatal(err)
			}
			if state := <-states; state != way.state {
				t.Errorf("found %q, want %q", state, way.state)
			}
		})
	}
}
