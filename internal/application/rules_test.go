package application_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
)

// TestDatabaseKeepsTheRulesOfApplications bypasses the services and tries to write each value
// that an application must not have, into a new row and into an existing one.
func TestDatabaseKeepsTheRulesOfApplications(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Application(t)
	tests := []struct {
		column, value, constraint string
	}{
		{"source", `"mail"`, "applications_source_check"},
		{"status", `"approved"`, "applications_status_check"},
		{"communications", `"off"`, "applications_communications_check"},
		{
			"external_reference", `"` + strings.Repeat("x", 201) + `"`,
			"applications_external_reference_check",
		},
		{"requested_amount", `0`, "applications_requested_amount_check"},
		{"borrower_annual_income", `-0.01`, "applications_borrower_annual_income_check"},
		{"document_status", `"DOCUMENT_LOST"`, "applications_document_status_check"},
		{"offer_selected", `true`, "applications_check"},
		{
			"selected_product_uid", `"` + uuid.NewString() + `"`,
			"applications_check",
		},
	}
	for _, test := range tests {
		t.Run(test.column, func(t *testing.T) {
			t.Parallel()
			change := fmt.Sprintf(`{%q: %s}`, test.column, test.value)
			for kind, statement := range map[string]string{
				"update": fmt.Sprintf(`
					UPDATE applications a
					   SET %[1]s = (jsonb_populate_record(a, $2::jsonb)).%[1]s
					 WHERE application_uid = $1`, test.column),
				"insert": `
					INSERT INTO applications
					SELECT (jsonb_populate_record(a, $2::jsonb || jsonb_build_object(
					           'application_uid', gen_random_uuid()))).*
					  FROM applications a
					 WHERE application_uid = $1`,
			} {
				_, err := w.DB.ExecContext(t.Context(), statement, app.UID, change)
				pqErr, ok := errors.AsType[*pq.Error](err)
				if !ok || pqErr.Constraint != test.constraint || pqErr.Code != "23514" {
					t.Errorf("%s: the database answered %v, want a violation of %s", kind, err,
						test.constraint)
				}
			}
		})
	}
}

// TestDatabaseTakesWhatApplicationsMayBe writes values at the bounds of the rules, and rows
// without the optional values.
func TestDatabaseTakesWhatApplicationsMayBe(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Application(t)
	for _, change := range []string{
		`source = 'console'`,
		`source = 'partner'`,
		`communications = 'paused'`,
		`communications = 'enabled'`,
		`external_reference = repeat('x', 200)`,
		`external_reference = NULL`,
		`requested_amount = 0.01`,
		`borrower_annual_income = 0`,
		`borrower_annual_income = NULL`,
		`document_status = 'DOCUMENT_SENT'`,
		`document_status = 'DOCUMENT_SIGNED'`,
		`document_status = NULL`,
	} {
		if _, err := w.DB.ExecContext(t.Context(),
			`UPDATE applications SET `+change+` WHERE application_uid = $1`, app.UID); err != nil {
			t.Errorf("%s: %v", change, err)
		}
	}
	for _, status := range lending.AllApplicationStatuses() {
		if _, err := w.DB.ExecContext(t.Context(),
			`UPDATE applications SET status = $2 WHERE application_uid = $1`, app.UID,
			string(status)); err != nil {
			t.Errorf("%s: %v", status, err)
		}
	}
}
