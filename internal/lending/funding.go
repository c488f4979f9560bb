package lending

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The fields of a funding change besides its status, as requests and forms name them.
const (
	FieldReference     = "reference"
	FieldMethod        = "method"
	FieldEffectiveDate = "effective_date"
	FieldReason        = "reason"
)

// The maximum lengths of a reference and of a reason, in characters.
const (
	MaxReference = 100
	MaxReason    = 500
)

// firstEffectiveDate is the earliest day on which money may have moved.
const firstEffectiveDate = "2000-01-01"

// FundingFields lists the fields of a funding change besides its status.
func FundingFields() []string {
	return []string{FieldReference, FieldMethod, FieldEffectiveDate, FieldReason}
}

// FundingMethods lists the ways in which money moves.
func FundingMethods() []string { return []string{"ach", "rtp", "wire", "check", "card"} }

// FundingChange is a reported change of the money of a disbursement.
type FundingChange struct {
	Status FundingStatus
	Evidence
	// NeedsReason makes a cancellation or a return without a reason an error.
	NeedsReason bool
}

// Evidence is what was reported about the money of a disbursement; a nil field was not reported.
type Evidence struct {
	// Reference is the bank's or the ledger's reference for the payment.
	Reference *string `json:"reference"`
	// Method is one of FundingMethods.
	Method *string `json:"method"`
	// EffectiveDate is the day on which the money moved, YYYY-MM-DD.
	EffectiveDate *string `json:"effectiveDate"`
	Reason        *string `json:"reason"`
}

// ParseFundingChange reads a change of the status from the given fields, by name. The effective
// date may be up to a year after now. Error: VALIDATION_ERROR naming every field that is wrong.
func ParseFundingChange(
	to FundingStatus, fields map[string]string, now time.Time,
) (FundingChange, error) {
	change := FundingChange{Status: to}
	var errs FieldErrors
	if text, given := fields[FieldReference]; given {
		change.Reference = errs.evidence(FieldReference, text, MaxReference)
	}
	if text, given := fields[FieldMethod]; given {
		if !slices.Contains(FundingMethods(), text) {
			errs.Add(FieldMethod, "%q must be one of: %s", FieldMethod, JoinNames(FundingMethods()))
		}
		change.Method = &text
	}
	if text, given := fields[FieldEffectiveDate]; given {
		last := now.UTC().AddDate(1, 0, 0).Format(time.DateOnly)
		_, err := time.Parse(time.DateOnly, text)
		if err != nil || text < firstEffectiveDate || text > last {
			errs.Add(FieldEffectiveDate, "%q must be a date as YYYY-MM-DD, from %s to %s",
				FieldEffectiveDate, firstEffectiveDate, last)
		}
		change.EffectiveDate = &text
	}
	if text, given := fields[FieldReason]; given {
		change.Reason = errs.evidence(FieldReason, text, MaxReason)
	}
	return change, errs.Err()
}

// evidence checks a text and returns it unchanged.
func (f *FieldErrors) evidence(field, text string, limit int) *string {
	switch {
	case strings.TrimSpace(text) == "":
		f.Add(field, "%q must not be blank", field)
	case !readable(text):
		f.Readable(field, text)
	case field == FieldReference && strings.ContainsFunc(text, unicode.IsControl):
		f.Add(field, "%q must be one line without control characters", field)
	case utf8.RuneCountInString(text) > limit:
		f.Add(field, "%q must have at most %d characters", field, limit)
	}
	return &text
}

// Repeats reports whether every field that the change sets has the same value in made, an
// earlier change.
func (c FundingChange) Repeats(made FundingChange) bool {
	same := func(sent, kept *string) bool {
		return sent == nil || kept != nil && *sent == *kept
	}
	return c.Status == made.Status && same(c.Reference, made.Reference) &&
		same(c.Method, made.Method) && same(c.EffectiveDate, made.EffectiveDate) &&
		same(c.Reason, made.Reason)
}

// LacksReason reports whether the change needs a reason and has none.
func (c FundingChange) LacksReason() bool {
	return c.NeedsReason && c.Reason == nil && !c.Status.InForce()
}
