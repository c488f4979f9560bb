package main

import (
	"fmt"
	"strings"
	"testing"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/catalog"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/secret"
)

func TestDrawList(t *testing.T) {
	t.Parallel()
	h := apptest.New(t)
	d := &cli{url: h.DB.URL(), variables: map[string]string{
		"DATABASE_URL": h.DB.URL(), "DRAWBRIDGE_BLOB_URL": "file://" + t.TempDir(),
		"DRAWBRIDGE_SECRETS_KEY": secret.GenerateKey(),
	}}
	solar := h.NewProduct(t, "SOLAR", "40,40,20")
	slow := h.AddProduct(t, catalog.NewProduct{Code: "SLOW", OverdueHours: "400"})
	asked := h.Draw(t, h.Loan(t, solar).UID, loan.DrawInput{}).ID
	sent := h.Draw(t, h.Loan(t, slow).UID, loan.DrawInput{}).ID
	h.Fund(t, sent, lending.FundingProcessing)
	settled := h.Draw(t, h.Loan(t, solar).UID, loan.DrawInput{}).ID
	h.Settle(t, settled)
	h.Exec(t, `
		UPDATE disbursements
		   SET requested_at = requested_at - interval '14 days',
		       processing_at = processing_at - interval '7 days'`)
	list := func(args ...string) (ids []int64, first map[string]any, next string) {
		t.Helper()
		document := d.document(t, append([]string{"draw", "list"}, args...)...)
		for _, row := range list(t, document, "disbursements") {
			id, _ := row["merchantDisbursementId"].(float64)
			if ids = append(ids, int64(id)); first == nil {
				first = row
			}
		}
		next, _ = document["next_cursor"].(string)
		return ids, first, next
	}
	for args, want := range map[string][]int64{
		"":                                       {asked, sent},
		"--status FUNDING_REQUESTED":             {asked},
		"--status FUNDING_PROCESSING":            {sent},
		"--status FUNDING_SETTLED":               {settled},
		"--status FUNDING_SETTLED --overdue":     nil,
		"--hours 41":                             {asked},
		"--hours 1":                              {asked, sent},
		"--overdue":                              {asked},
		"--partner " + h.Partner.String():        {asked, sent},
		"--partner " + h.Merchant.String():       nil,
		"--merchant " + h.Merchant.String():      {asked, sent},
		"--product " + slow.UID:                  {sent},
		"--product " + slow.UID + " --overdue":   nil,
		"--limit 1":                              {asked},
		"--product " + solar.UID + " --hours 16": {asked},
	} {
		if ids, _, _ := list(strings.Fields(args)...); fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("%q lists %d, want %d", args, ids, want)
		}
	}
	_, first, next := list("--limit", "1")
	if first["borrower"] == "" || first["product"] != "SOLAR" || first["overdue"] != true ||
		!strings.HasSuffix(fmt.Sprint(first["overdue_at"]), "Z") {
		t.Errorf("the first is %v", first)
	}
	ids, _, end := list("--limit", "1", "--cursor", next)
	if fmt.Sprint(ids) != fmt.Sprint([]int64{sent}) ||
		end != "" {
		t.Errorf("the second page has %d and goes on at %q", ids, end)
	}
	if text := d.text(t, "draw", "list"); !strings.Contains(text, fmt.Sprint(asked)) ||
		!strings.Contains(text, "Fund it") {
		t.Errorf("as text it is %q", text)
	}
	for args, names := range map[string]string{
		"--status PAID": "--status", "--hours -1": "--hours", "--hours 10001": "--hours",
		"--hours x": "--hours", "--partner x": "--partner", "--merchant x": "--merchant",
		"--product x": "--product", "--limit 0": "--limit", "--cursor x": "cursor", "more": "more",
	} {
		got := d.run(t, append([]string{"draw", "list"}, strings.Fields(args)...)...)
		if got.status != 2 || !strings.Contains(got.stderr, names) {
			t.Errorf("%q ended with %d: %s", args, got.status, got.stderr)
		}
	}
}
