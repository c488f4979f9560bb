package loan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// A busy merchant's disbursements of a day are found by what changed since then, not by looking
// at all that it ever had.
func TestChangesOfABusyMerchantAreReadByTime(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "50,50"))
	draw := w.Draw(t, app.UID, loan.DrawInput{})
	_, err := w.DB.ExecContext(t.Context(), `
		INSERT INTO disbursements OVERRIDING SYSTEM VALUE
		SELECT (jsonb_populate_record(d, jsonb_build_object(
		           'merchant_disbursement_id', 1000000 + n, 'disbursement_number', 1 + n,
		           'status', 'CANCELLED', 'requested_at', now() - interval '1 year',
		           'cancelled_at', now() - interval '1 year'))).*
		  FROM disbursements d, generate_series(1, 3000) AS n`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.DB.ExecContext(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	began := w.DB.Now().Add(-time.Hour)
	record := pgtest.Record(t, w.DB)
	for range 7 { // after the fifth a plan may be for any arguments
		err := w.DB.InTx(t.Context(), func(tx *postgres.Tx) error {
			found, err := w.Loans.ChangedWithin(t.Context(), tx, []uuid.UUID{w.Merchant}, began,
				began.Add(2*time.Hour))
			if len(found) != 1 || found[0].ID != draw.ID {
				t.Errorf("finds %+v", found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	queries := record.Take()
	last := queries[len(queries)-1]
	var plan []string
	if err := w.DB.Select(&plan, `EXPLAIN `+last.Text, last.Args...); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(plan, func(line string) bool {
		return strings.Contains(line, "disbursements_last_change")
	}) {
		t.Errorf("the plan is\n%s", strings.Join(plan, "\n"))
	}
}
