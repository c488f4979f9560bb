package lending_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/lending"
)

// Evidence is kept within its bounds, and kept unchanged.
func TestBoundsOfEvidence(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 23, 30, 0, 0, time.FixedZone("west", -5*60*60)) // the 25th in UTC
	for name, test := range map[string]struct {
		field, text string
		valid       bool
	}{
		"reference of 1":            {"reference", "7", true},
		"reference of 100":          {"reference", strings.Repeat("é", 100), true},
		"reference of 101":          {"reference", strings.Repeat("é", 101), false},
		"empty reference":           {"reference", "", false},
		"blank reference":           {"reference", " \t ", false},
		"reference of two lines":    {"reference", "ACH\n1", false},
		"reference with a NUL":      {"reference", "ACH\x001", false},
		"reference with a C1":       {"reference", "ACH\u00851", false},
		"reference not UTF-8":       {"reference", "ACH\xff", false},
		"method ach":                {"method", "ach", true},
		"method rtp":                {"method", "rtp", true},
		"method wire":               {"method", "wire", true},
		"method check":              {"method", "check", true},
		"method card":               {"method", "card", true},
		"method in capitals":        {"method", "ACH", false},
		"unknown method":            {"method", "cash", false},
		"empty method":              {"method", "", false},
		"day before the first":      {"effective_date", "1999-12-31", false},
		"first day":                 {"effective_date", "2000-01-01", true},
		"a year ahead":              {"effective_date", "2027-11-25", true},
		"a year and a day ahead":    {"effective_date", "2027-11-26", false},
		"29 February":               {"effective_date", "2024-02-29", true},
		"29 February of other year": {"effective_date", "2026-02-29", false},
		"day without zeros":         {"effective_date", "2026-1-2", false},
		"day with a time":           {"effective_date", "2026-11-24T00:00:00Z", false},
		"empty day":                 {"effective_date", "", false},
		"reason of 500":             {"reason", strings.Repeat("é", 500), true},
		"reason of 501":             {"reason", strings.Repeat("é", 501), false},
		"blank reason":              {"reason", "\n", false},
		"reason of two lines":       {"reason", "R01:\nno funds", true},
		"reason with a NUL":         {"reason", "no\x00funds", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change, err := lending.ParseFundingChange(lending.FundingReturned,
				map[string]string{test.field: test.text}, now)
			if !test.valid {
				refusal, _ := errors.AsType[*lending.Error](err)
				if refusal == nil || refusal.Code != lending.CodeValidation || len(refusal.Details) != 1 ||
					refusal.Details[0].Field != test.field {
					t.Errorf("%q: %v", test.text, err)
				}
				return
			}
			said := []*string{change.Reference, change.Method, change.EffectiveDate, change.Reason}
			for i, field := range lending.FundingFields() {
				if kept := said[i]; field == test.field && (kept == nil || *kept != test.text) ||
					field != test.field && kept != nil {
					t.Errorf("%s of %q is kept as %v", field, test.text, kept)
				}
			}
			if err != nil {
				t.Errorf("%q: %v", test.text, err)
			}
		})
	}
}

// All wrong fields are named at once.
func TestEvidenceNamesEveryError(t *testing.T) {
	t.Parallel()
	wrong := make(map[string]string)
	for _, field := range lending.FundingFields() {
		wrong[field] = " "
	}
	_, err := lending.ParseFundingChange(lending.FundingSettled, wrong, time.Now())
	refusal, _ := errors.AsType[*lending.Error](err)
	if refusal == nil {
		t.Fatalf("found no fault: %v", err)
	}
	var named []string
	for _, field := range refusal.Details {
		named = append(named, field.Field)
	}
	if !slices.Equal(named, lending.FundingFields()) {
		t.Errorf("named are %q", named)
	}
}
