package loan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// A busy merchant's disbursements of a day are found by what changed since then, without reading
// all that the merchant ever had.
func TestChangesOfABusyMerchantAreReadByTime(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "50,50"))
	draw := w.Draw(t, app.UID, loan.DrawInput{})
	// A history of other merchants, so that any one merchant has little.
	for _, statement := range []string{
		`INSERT INTO merchants
		 SELECT (jsonb_populate_record(m, jsonb_build_object('merchant_uid', md5('m' || n)))).*
		   FROM merchants m, generate_series(1, 3000) AS n`,
		`INSERT INTO applications
		 SELECT (jsonb_populate_record(a, jsonb_build_object(
		            'application_uid', md5('a' || n), 'merchant_uid', md5('m' || 1 + n % 3000)))).*
		   FROM applications a, generate_series(1, 6000) AS n
		  WHERE application_uid = $1`,
		`INSERT INTO loans
		 SELECT (jsonb_populate_record(l, jsonb_build_object('application_uid', md5('a' || n)))).*
		   FROM loans l, generate_series(1, 6000) AS n
		  WHERE application_uid = $1`,
		`INSERT INTO loan_stages
		 SELECT (jsonb_populate_record(s, jsonb_build_object('application_uid', md5('a' || n)))).*
		   FROM loan_stages s, generate_series(1, 6000) AS n
		  WHERE application_uid = $1`,
		`INSERT INTO disbursements OVERRIDING SYSTEM VALUE
		 SELECT (jsonb_populate_record(d, jsonb_build_object(
		            'merchant_disbursement_id', 1000000 + n, 'application_uid', md5('a' || n),
		            'status', 'CANCELLED', 'requested_at', now() - interval '1 year',
		            'cancelled_at', now() - interval '1 year'))).*
		   FROM disbursements d, generate_series(1, 6000) AS n
		  WHERE application_uid = $1`,
	} {
		var args []any
		if strings.Contains(statement, "$1") {
			args = []any{app.UID}
		}
		if _, err := w.DB.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.DB.ExecContext(t.Context(), `ANALYZE`); err != nil {
		t.Fatal(err)
	}
	began := w.DB.Now().Add(-time.Hour)
	record := pgtest.Record(t, w.DB)
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
	queries := record.Take()
	plan := planForAny(t, w.DB, queries[len(queries)-1])
	if !slices.ContainsFunc(plan, func(line string) bool {
		return strings.Contains(line, "disbursements_last_change")
	}) {
		t.Errorf("the plan is\n%s", strings.Join(plan, "\n"))
	}
}

// planForAny returns the generic plan of a query, as a cached statement gets it.
func planForAny(t *testing.T, db *postgres.DB, query pgtest.Query) (plan []string) {
	t.Helper()
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{
		`SET plan_cache_mode = force_generic_plan`, `PREPARE kept AS ` + query.Text,
	} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	for _, arg := range query.Args {
		if at, ok := arg.(time.Time); ok {
			arg = at.Format(time.RFC3339)
		}
		args = append(args, pq.QuoteLiteral(fmt.Sprint(arg)))
	}
	err = conn.SelectContext(t.Context(), &plan,
		`EXPLAIN EXECUTE kept (`+strings.Join(args, `, `)+`)`)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
