package delivery_test

import (
	"errors"
	"testing"

	"github.com/lib/pq"

	"drawbridge/internal/webhook/webhooktest"
)

// TestSoundDeliveries asks the database for every combination of the columns that belong
// together whether it is consistent, and compares with the rules one by one.
func TestSoundDeliveries(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	var all, sound, wrong int
	err := h.DB.QueryRowContext(t.Context(), `
		WITH checked AS (
			SELECT drawbridge_delivery_is_sound(state, attempts, due, queued, parked, held, resend,
			           by) AS is,
			       state IN ('pending', 'retrying', 'delivered', 'failed', 'cancelled')
			           AND attempts BETWEEN 0 AND 3
			           AND (due IS NULL) = (state NOT IN ('pending', 'retrying'))
			           AND queued::integer + parked::integer + held::integer <= 1
			           AND (resend IS NULL) = (by IS NULL) AS should_be
			  FROM unnest(ARRAY['pending', 'retrying', 'delivered', 'failed', 'cancelled', 'sent',
			           '']) AS s (state),
			       generate_series(-1, 4) AS a (attempts),
			       unnest(ARRAY[now(), NULL]) AS d (due),
			       unnest(ARRAY[true, false]) AS q (queued),
			       unnest(ARRAY[true, false]) AS p (parked),
			       unnest(ARRAY[true, false]) AS l (held),
			       unnest(ARRAY[gen_random_uuid(), NULL]) AS r (resend),
			       unnest(ARRAY['somebody', NULL]) AS b (by)
		)
		SELECT count(*),
		       count(*) FILTER (WHERE "is"),
		       count(*) FILTER (WHERE "is" IS DISTINCT FROM should_be)
		  FROM checked`).Scan(&all, &sound, &wrong)
	if err != nil {
		t.Fatal(err)
	}
	// Five states with or without a time, four counts, at most one of three flags, both columns
	// of a re-send or neither.
	if want := 5 * 4 * 4 * 2; all != 7*6*2*8*4 || sound != want || wrong != 0 {
		t.Errorf("of %d combinations %d are sound, want %d; %d are judged otherwise than by the rules",
			all, sound, want, wrong)
	}
}

// TestDatabaseRefusesUnsoundDeliveries: in every month, including those created later.
func TestDatabaseRefusesUnsoundDeliveries(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	for _, change := range []string{
		`state = 'sent'`,
		`state = 'delivered'`,
		`next_attempt_at = NULL`,
		`attempt_count = 4`,
		`attempt_count = -1`,
		`parked = true`,
		`resend_of = gen_random_uuid()`,
		`resent_by = 'somebody'`,
	} {
		_, err := h.DB.ExecContext(t.Context(), `UPDATE deliveries SET `+change)
		fault, ok := errors.AsType[*pq.Error](err)
		if !ok || fault.Constraint != "deliveries_sound" {
			t.Errorf("%s: the database answered %v", change, err)
		}
	}
	h.Exec(t, `SELECT drawbridge_make_partitions(now(), now(), 12)`)
	if without := h.Count(t, `
		SELECT count(*)
		  FROM pg_inherits i
		 WHERE inhparent = 'deliveries'::regclass
		   AND NOT EXISTS (
		           SELECT
		             FROM pg_constraint
		            WHERE conrelid = inhrelid
		              AND conname = 'deliveries_sound'
		              AND convalidated)`); without != 0 {
		t.Errorf("%d months are not held to the rule", without)
	}
}
