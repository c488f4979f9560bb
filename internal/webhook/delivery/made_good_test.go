package delivery_test

import (
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/webhook/webhooktest"
)

// TestArrivalIsLookedUpByEvent: a re-send that arrives reads the deliveries of its event, not
// all that its subscription got, on a database without statistics, too.
func TestArrivalIsLookedUpByEvent(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 5000)
	var failed uuid.UUID
	err := h.DB.GetContext(t.Context(), &failed, `SELECT delivery_uid FROM deliveries LIMIT 1`)
	if err != nil {
		t.Fatal(err)
	}
	resent := h.Resend(t, failed)[0]
	tx, err := h.DB.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, change := range []string{
		`UPDATE deliveries SET state = 'failed'`, `UPDATE deliveries SET state = 'delivered'`,
	} {
		_, err := tx.ExecContext(t.Context(), change+`, finished_at = now(), attempt_count = 3,
			next_attempt_at = NULL, queued = false WHERE delivery_uid = $1`, resent)
		if err != nil {
			t.Fatal(err)
		}
		var read int
		err = tx.GetContext(t.Context(), &read, `
			SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(i.indexrelid)), 0)
			  FROM pg_index i
			  JOIN pg_inherits p ON p.inhrelid = i.indrelid
			 WHERE p.inhparent = 'deliveries'::regclass`)
		if err != nil {
			t.Fatal(err)
		}
		if read > 100 {
			t.Errorf("%s: read %d entries of indexes", change, read)
		}
	}
	var state string
	err = tx.GetContext(t.Context(), &state, `
		SELECT state FROM deliveries WHERE delivery_uid = $1 AND made_good_by = $2`, failed, resent)
	if err != nil || state != "failed" {
		t.Errorf("what was re-sent is %q (%v), want it to be made good", state, err)
	}
}
