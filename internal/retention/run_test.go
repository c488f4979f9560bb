package retention_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/retention"
)

var (
	whole   = wholeness{1, 1, 1, 1, 1}
	bare    = wholeness{1, 0, 1, 1, 0}
	removed = wholeness{}
)

// The life of rows: bodies are removed after 90 days, months after 13, and rows that must stay do
// so for as long as they must.
func TestRunRemovesWhatIsDue(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	old, middle, fresh := today.AddDate(0, -16, 0), today.AddDate(0, -6, 0), today.AddDate(0, -1, 0)
	plain, held, waiting := a.application(), a.application(), a.application()
	a.hold(held)
	gone := a.record(plain, old, "failed")
	kept := a.record(held, old, "delivered")
	open := a.record(waiting, old, "retrying")
	replayed := a.record(plain, old.Add(time.Hour), "failed")
	a.deliver(replayed, plain, old.Add(time.Hour), fresh, "delivered")
	bodyless := a.record(plain, middle, "delivered")
	legallyHeldBody := a.record(held, middle, "delivered")
	recent := a.record(plain, fresh, "delivered")

	a.publishFeed()

	settings, err := a.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plan, err := a.Plan(t.Context(), settings)
	if err != nil || plan.Events != 4 || plan.Deliveries != 4 || plan.LegalHolds != 1 {
		t.Errorf("plan %+v, %v", plan, err)
	}
	first := a.run()
	if first.Events != 3 || first.Attempts != 4 || fmt.Sprint(first.Months) == "[]" {
		t.Errorf("first run: %+v", first)
	}
	a.want("an old event", gone, removed)
	a.wantFeedLikeEvents()
	a.want("an old event under a legal hold", kept, whole)
	a.want("an old event that is still to be sent", open, wholeness{1, 1, 1, 1, 0})
	a.want("an old event that was replayed since", replayed, wholeness{1, 0, 1, 1, 1})
	a.want("an event whose body is due", bodyless, bare)
	a.want("the body of one under a legal hold", legallyHeldBody, whole)
	a.want("a recent event", recent, whole)

	if second := a.run(); second.Events+second.Attempts+len(second.Months) != 0 {
		t.Errorf("a second run found more to do: %+v", second)
	}
	a.exec(`
		UPDATE deliveries
		   SET state = 'delivered', next_attempt_at = NULL
		 WHERE event_uid = $1`, open)
	third := a.run()
	if third.Events != 1 || len(third.Months) != 1 {
		t.Errorf("after it was sent: %+v", third)
	}
	a.want("an old event that was sent at last", open, removed)
	a.want("an old event under a legal hold", kept, whole)

	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := a.Release(ctx, tx, held, "legal@lender.example", "case closed")
		return err
	})
	if fourth := a.run(); fourth.Swept != 1 {
		t.Errorf("after the release: %+v", fourth)
	}
	a.want("an old event after the release", kept, removed)
	a.wantFeedLikeEvents()
	a.want("a body after the release", legallyHeldBody, bare)
	a.want("a recent event", recent, whole)
}

// TestARunThatDiesLeavesNoTables: no later run looks at a removed month again.
func TestARunThatDiesLeavesNoTables(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.record(a.application(), today.AddDate(0, -16, 0), "delivered")
	a.exec(`
		CREATE FUNCTION die() RETURNS event_trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF current_query() LIKE 'DROP TABLE%_kept, %'
			   AND to_regclass(substring(current_query(), 'events_y....m..')) IS NULL THEN
				RAISE EXCEPTION 'the process died';
			END IF;
		END $$`)
	a.exec(`CREATE EVENT TRIGGER die ON ddl_command_start WHEN TAG IN ('DROP TABLE')
		EXECUTE FUNCTION die()`)
	if report, err := a.Run(t.Context()); err == nil || len(report.Months) == 0 {
		t.Errorf("it did not die after a month: %+v, %v", report, err)
	}
	a.exec(`DROP EVENT TRIGGER die`)
	a.run()
	if left := a.count(`SELECT count(*) FROM pg_class WHERE relname LIKE '%kept'`); left > 0 {
		t.Errorf("%d tables are left", left)
	}
}

// Events that could not be published for months, as while no worker ran, are still sent whole.
func TestWhatWaitsInTheOutboxStays(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	freed := a.application()
	a.hold(freed)
	waiting := map[string]uuid.UUID{
		"an event whose body is due": a.leaveInOutbox(a.application(), today.AddDate(0, -6, 0)),
		"one whose month is due":     a.leaveInOutbox(a.application(), today.AddDate(0, -16, 0)),
		"one that was held":          a.leaveInOutbox(freed, today.AddDate(0, -16, 0)),
	}
	beside := a.record(a.application(), today.AddDate(0, -16, 0), "delivered")
	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := a.Release(ctx, tx, freed, "legal@lender.example", "case closed")
		return err
	})
	a.run()
	a.want("an event beside them", beside, bare)
	a.publishFeed()
	for name, event := range waiting {
		a.want(name, event, wholeness{row: 1, body: 1, deliveries: 1})
	}
	a.run()
	for name, event := range waiting {
		a.want(name+", which is being sent", event, wholeness{row: 1, body: 1, deliveries: 1})
	}
	a.want("an event beside them", beside, removed)
	a.exec(`UPDATE deliveries SET state = 'delivered', next_attempt_at = NULL, queued = false`)
	a.run()
	a.want("what was sent at last", waiting["an event whose body is due"],
		wholeness{row: 1, deliveries: 1})
	a.want("what was sent at last", waiting["one whose month is due"], removed)
	a.want("what was sent at last", waiting["one that was held"], removed)
}

// A month's new partition is as good as the old one: it accepts updates and enforces the table's
// constraints.
func TestAnExchangedMonthIsAPartitionLikeAnyOther(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	old := today.AddDate(0, -16, 0)
	indexes := func() int {
		return a.count(`SELECT count(*) FROM pg_indexes WHERE tablename = $1`,
			old.Format("deliveries_y2006m01"))
	}
	before := indexes()
	a.record(a.application(), old, "failed")
	open := a.record(a.application(), old, "retrying")
	a.run()
	if after := indexes(); after != before {
		t.Errorf("%d indexes, before %d", after, before)
	}
	if foreign := a.count(`
		SELECT count(*)
		  FROM pg_constraint
		 WHERE conrelid = $1::regclass
		   AND contype = 'f'`, old.Format("events_y2006m01")); foreign != a.count(`
		SELECT count(*) FROM pg_constraint WHERE conrelid = 'events'::regclass AND contype = 'f'`) {
		t.Errorf("%d foreign keys, unlike the other months", foreign)
	}
	if triggers := a.count(`
		SELECT count(*) FROM pg_trigger
		 WHERE tgrelid = $1::regclass AND tgtype & 1 = 1 AND NOT tgisinternal`,
		old.Format("attempts_y2006m01")); triggers != a.count(`
		SELECT count(*) FROM pg_trigger
		 WHERE tgrelid = 'attempts'::regclass AND tgtype & 1 = 1 AND NOT tgisinternal`) {
		t.Errorf("%d triggers of rows, unlike the other months", triggers)
	}
	a.exec(`UPDATE deliveries SET attempt_count = 2 WHERE event_uid = $1`, open)
	if _, err := a.DB.ExecContext(t.Context(),
		`UPDATE deliveries SET state = 'lost' WHERE event_uid = $1`, open); err == nil {
		t.Error("a state that does not exist was taken")
	}
	if names := a.count(`SELECT count(*) FROM pg_class WHERE relname LIKE '%\_kept'`); names != 0 {
		t.Errorf("%d tables were left behind", names)
	}
}

func TestSettingsHaveBounds(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	good, err := a.Settings(t.Context())
	if err != nil || good.Months != 13 || good.BodyDays != 90 || good.EmailBodyDays != 90 {
		t.Fatalf("defaults %+v, %v", good, err)
	}
	for name, change := range map[string]func(*retention.Settings){
		"months low": func(s *retention.Settings) { s.Months = 1 },
		"months":     func(s *retention.Settings) { s.Months = 121 },
		"body":       func(s *retention.Settings) { s.BodyDays = 6 },
		"mail":       func(s *retention.Settings) { s.EmailBodyDays = 4000 },
		"requests":   func(s *retention.Settings) { s.APIRequestDays = 0 },
		"body after": func(s *retention.Settings) { s.Months, s.BodyDays = 3, 90 },
	} {
		bad := good
		change(&bad)
		err := a.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := a.SaveSettings(ctx, tx, bad, "root@lender.example")
			return err
		})
		if lending.ErrorCode(err) != lending.CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		wanted := good
		wanted.Months, wanted.BodyDays = 24, 30
		before, after, err := a.SaveSettings(ctx, tx, wanted, "root@lender.example")
		if before.Months != 13 || after.Months != 24 || *after.UpdatedBy != "root@lender.example" {
			t.Errorf("from %+v to %+v", before, after)
		}
		return err
	})
}

func TestLegalHolds(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	application := a.application()
	place := func(reason string) error {
		return a.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := a.Place(ctx, tx, application, "legal@lender.example", reason)
			return err
		})
	}
	release := func(reason string) error {
		return a.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := a.Release(ctx, tx, application, "legal@lender.example", reason)
			return err
		})
	}
	wantRefusal(t, release("none"), lending.CodeInvalidState)
	wantRefusal(t, place(""), lending.CodeValidation)
	if err := place("case 7"); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, place("case 8"), lending.CodeInvalidState)
	wantRefusal(t, release(""), lending.CodeValidation)
	if err := release("closed"); err != nil {
		t.Fatal(err)
	}
	if err := place("case 8"); err != nil {
		t.Fatal(err)
	}
	holds, err := a.LegalHolds(t.Context(), application)
	if err != nil || len(holds) != 2 || !holds[0].InForce() || holds[1].InForce() ||
		*holds[1].ReleaseReason != "closed" {
		t.Errorf("holds %+v, %v", holds, err)
	}
	inForce, err := a.LegalHoldsInForce(t.Context())
	if err != nil || len(inForce) != 1 || inForce[0].Reason != "case 8" {
		t.Errorf("in force %+v, %v", inForce, err)
	}
	application = a.merchant
	wantRefusal(t, place("nobody's"), lending.CodeNotFound)
}

// One transaction may record many events at one moment, which batches must not split.
func TestMoreEventsOfOneMomentThanABatchHas(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.exec(`
		INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid, application_uid,
		                    status, body, passed_over)
		SELECT gen_random_uuid(), $4, 'task.created', $1, $2, $3, n::text, '{}', '[]'
		  FROM generate_series(1, 501) AS n`,
		a.partner, a.merchant, a.application(), today.AddDate(0, 0, -100))
	a.run()
	if left := a.count(`SELECT count(*) FROM events WHERE body <> ''`); left != 0 {
		t.Errorf("%d events keep their body", left)
	}
}

func TestTextOfEMailsGoes(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	held := a.application()
	a.hold(held)
	for name, row := range map[string]struct {
		application any
		at          time.Time
	}{
		"old": {a.application(), today.AddDate(0, -4, 0)}, "held": {held, today.AddDate(0, -4, 0)},
		"new": {a.application(), today.AddDate(0, -1, 0)}, "alert": {nil, today.AddDate(0, -4, 0)},
	} {
		a.mail(row.application, name, row.at)
	}
	if report := a.run(); report.Emails != 2 {
		t.Errorf("report %+v", report)
	}
	a.wantTexts("held", "new")
}

// A mail that waits for the mail server needs its text for longer, but not for ever.
func TestTextOfEMailsThatWereLateGoes(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	held := a.application()
	a.hold(held)
	old := today.AddDate(0, -4, 0)
	a.mail(a.application(), "late", old)
	a.mail(nil, "later", old)
	a.mail(held, "held", old)
	a.exec(`
		UPDATE emails
		   SET state = 'queued', finished_at = NULL, next_attempt_at = created_at,
		       waits_for = 'server'`)
	a.run()
	a.wantTexts("held", "late", "later")
	a.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := a.Release(ctx, tx, held, "legal@lender.example", "case closed")
		return err
	})
	a.run()
	a.wantTexts("held", "late", "later")
	a.exec(`
		UPDATE emails
		   SET state = 'sent', finished_at = $1, next_attempt_at = NULL, waits_for = ''
		 WHERE to_name <> 'later'`, today)
	if report := a.run(); report.Emails != 2 {
		t.Errorf("report %+v", report)
	}
	a.wantTexts("later")
}
