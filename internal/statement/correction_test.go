package statement_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/statement"
)

// end ends every delivery in progress.
func (w *world) end(state string) {
	w.t.Helper()
	w.Exec(w.t, `
		UPDATE deliveries
		   SET state = $1, attempt_count = 3, next_attempt_at = NULL, queued = false,
		       finished_at = $2, last_error_class = CASE $1 WHEN 'failed' THEN 'http_5xx' END
		 WHERE state <> 'delivered'`, state, w.clock.Now())
}

// A delivery that arrived after its day was frozen makes a new version that names the previous
// one, which stays as it was.
func TestDeliveriesThatArriveLaterCorrect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Subscribe(t, nil)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	w.Draw(t, app.UID, loan.DrawInput{})
	w.end("failed")
	w.due(0)
	w.freeze()
	first, read := w.read(0, 1)
	for _, event := range read.Result.Data.Events {
		if len(event.Deliveries) != 1 || event.Deliveries[0].Outcome != "failed" ||
			event.Deliveries[0].DeliveredAt != nil {
			t.Fatalf("event %+v", event)
		}
	}
	w.due(1) // nothing changed: no correction
	if report := w.freeze(); report.Corrections != 0 {
		t.Errorf("made %+v of nothing", report)
	}
	w.end("delivered")
	w.due(2)
	if report := w.freeze(); report.Corrections != 1 {
		t.Errorf("made %+v", report)
	}
	second, read := w.read(0, 0)
	data := read.Result.Data
	if second.Version != 2 || data.Replaces == nil || data.Replaces.Version != 1 ||
		data.Replaces.SHA256 != digest(first.Content) {
		t.Errorf("version %d replaces %+v", second.Version, data.Replaces)
	}
	if got := data.Events[0].Deliveries[0]; got.Outcome != "delivered" || got.DeliveredAt == nil {
		t.Errorf("the correction says %+v", got)
	}
	if again, _ := w.read(0, 1); !bytes.Equal(again.Content, first.Content) {
		t.Error("the first version changed")
	}
	w.due(3) // all arrived: nothing is checked again
	if report := w.freeze(); report.Corrections != 0 {
		t.Errorf("made %+v afterwards", report)
	}
	listed, _, err := w.Statements.List(t.Context(), statement.Filter{
		Date: w.date(0).String(),
	}, postgres.Paging{Limit: 10})
	if err != nil || len(listed) != 1 || listed[0].Version != 2 {
		t.Errorf("listed %+v, %v", listed, err)
	}
}

// Corrections that outlast a run do not delay any day, and the next run continues them.
func TestSlowCorrectionsHoldNoDayUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Subscribe(t, nil)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	w.Draw(t, app.UID, loan.DrawInput{})
	w.end("failed")
	w.due(0)
	w.freeze()
	w.end("delivered")
	w.Exec(t, `
		CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF NEW.version > 1 THEN LOCK TABLE slow; END IF;
			RETURN NEW;
		END $$;
		CREATE TABLE slow ();
		CREATE TRIGGER wait BEFORE INSERT ON statements FOR EACH ROW EXECUTE FUNCTION wait()`)
	w.due(2)
	round, end := context.WithCancel(t.Context())
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `LOCK TABLE slow`); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() {
			_, err := w.Statements.Freeze(round)
			ended <- err
		}()
		pgtest.WaitForLock(t, w.DB)
		end()
		if err := <-ended; err == nil {
			t.Error("the round that was cut short says nothing of it")
		}
		return nil
	})
	for days := range 3 {
		if _, read := w.read(days, 1); read.Result.Data.State != "frozen" {
			t.Errorf("%d days on the statement is %s", days, read.Result.Data.State)
		}
	}
	if report := w.freeze(); report.Corrections != 1 || len(report.Days) != 0 {
		t.Errorf("the next round made %+v", report)
	}
	w.read(0, 2)
	if report := w.freeze(); report.Corrections != 0 {
		t.Errorf("a further round made %+v", report)
	}
}

// A clock that ran ahead froze a day too early; what happened later that day is corrected.
func TestADayFrozenTooEarlyIsCorrected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "40,40,20"))
	w.due(0)
	w.freeze()
	w.clock.Set(w.tuesday.Add(time.Hour))
	w.Draw(t, app.UID, loan.DrawInput{})
	w.due(1)
	if report := w.freeze(); report.Corrections != 1 {
		t.Errorf("made %+v", report)
	}
	_, read := w.read(0, 2)
	if len(read.Result.Data.Disbursements) != 1 {
		t.Errorf("the correction has %+v", read.Result.Data.Disbursements)
	}
}

// A new key signs from now on; signatures of the old key stay verifiable, and nobody can sign
// with it any more.
func TestRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.due(0)
	w.freeze()
	before, _ := w.read(0, 1)
	var old string
	_, err := w.Operators.Act(t.Context(), operator.Change{
		Actor: "test",
		Do: func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			_, replaced, err := w.Statements.RotateKey(ctx, tx)
			old = replaced
			return operator.Outcome{}, err
		},
	})
	if err != nil || old != before.KeyID {
		t.Fatalf("replaced %q: %v", old, err)
	}
	w.due(1)
	w.freeze()
	after, _ := w.read(1, 1)
	again, _ := w.read(0, 1)
	keys, err := w.Statements.PublicKeys(t.Context())
	if err != nil || len(keys) != 2 || keys[0].ID != after.KeyID || keys[0].Until != nil ||
		keys[1].ID != before.KeyID || keys[1].Until == nil || again.KeyID != before.KeyID ||
		after.KeyID == before.KeyID {
		t.Errorf("keys %+v, %v", keys, err)
	}
	if n := w.Count(t, `SELECT count(private_sealed) FROM statement_keys`); n != 1 {
		t.Errorf("%d private keys are kept", n)
	}
}

// Without the secrets key that encrypted the signing key, nothing is signed, but everything is
// still published, and a rotation helps.
func TestAKeyThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if keys, err := w.Statements.PublicKeys(t.Context()); err != nil || len(keys) != 1 {
		t.Fatalf("the first keys are %+v, %v", keys, err)
	}
	other, err := secret.ParseKeyring(secret.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	w.Statements.Keys = other
	w.due(0)
	if _, err := w.Statements.Freeze(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "rotate-key") {
		t.Errorf("the round ended with %v", err)
	}
	if keys, err := w.Statements.PublicKeys(t.Context()); err != nil || len(keys) != 1 {
		t.Errorf("the keys are %+v, %v", keys, err)
	}
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := w.Statements.RotateKey(ctx, tx)
		return err
	})
	if report := w.freeze(); report.Statements == 0 {
		t.Error("a new key did not help")
	}
	w.read(0, 1)
}

func TestOutcomesBySubscription(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Subscribe(t, nil)
	w.Loan(t, w.NewProduct(t, "SOLAR", "100"))
	expect := func(want string) {
		t.Helper()
		_, read := w.read(0, 0)
		for _, event := range read.Result.Data.Events {
			if len(event.Deliveries) != 1 || event.Deliveries[0].Outcome != want {
				t.Errorf("want %s, got %+v", want, event.Deliveries)
			}
		}
	}
	expect("waiting")
	for _, state := range []string{"failed", "cancelled", "delivered"} {
		w.end(state)
		expect(state)
	}
}
