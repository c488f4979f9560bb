package loan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"drawbridge/internal/lending"
)

// Change is a status change of a disbursement's money that was made, with its evidence.
type Change struct {
	lending.FundingChange
	At time.Time
	// By names who made it, empty if that was not recorded.
	By string
}

// Evidence returns the most recent value given for each field of the changes.
func (d Disbursement) Evidence() (newest lending.Evidence) {
	for _, change := range d.Changes {
		newest.Reference = cmp.Or(change.Reference, newest.Reference)
		newest.Method = cmp.Or(change.Method, newest.Method)
		newest.EffectiveDate = cmp.Or(change.EffectiveDate, newest.EffectiveDate)
		newest.Reason = cmp.Or(change.Reason, newest.Reason)
	}
	return newest
}

// Former returns the status before the current one.
func (d Disbursement) Former() lending.FundingStatus {
	if len(d.Changes) < 2 {
		return lending.FundingRequested
	}
	return d.Changes[len(d.Changes)-2].Status
}

// Newest returns the change that led to the current status, without evidence if none was kept.
func (d Disbursement) Newest() Change {
	made := Change{FundingChange: lending.FundingChange{Status: d.Status}}
	for _, earlier := range d.Changes {
		if earlier.Status == d.Status {
			made = earlier
		}
	}
	return made
}

// checkRepeat refuses a change to the current status whose evidence differs from that of the
// change that led there. Error: INVALID_STATE.
func (d Disbursement) checkRepeat(change lending.FundingChange) error {
	if !change.Repeats(d.Newest().FundingChange) {
		return lending.NewError(lending.CodeInvalidState,
			"disbursement %d is already %s, and the values recorded with that differ from those of this "+
				"request; read the disbursement before you act on it",
			d.ID, string(d.Status))
	}
	return nil
}

// notBefore returns at, or the time of the disbursement's newest change if that is later.
func (d Disbursement) notBefore(at time.Time) time.Time {
	newest := d.RequestedAt
	if len(d.Changes) > 0 {
		newest = d.Changes[len(d.Changes)-1].At
	}
	if newest.After(at) {
		return newest
	}
	return at
}

// at records when a status was reached.
func (d *Disbursement) at(status lending.FundingStatus, when time.Time) {
	switch status {
	case lending.FundingSettled:
		d.SettledAt = &when
	case lending.FundingCancelled:
		d.CancelledAt = &when
	case lending.FundingReturned:
		d.ReturnedAt = &when
	case lending.FundingRequested, lending.FundingProcessing:
	}
}

// changeList scans the changes of a disbursement, aggregated as JSON.
type changeList []Change

// selectChanges selects the changeList of a disbursement d.
const selectChanges = `(
	SELECT json_agg(json_build_object(
	           'Status', c.status, 'reference', c.reference, 'method', c.method,
	           'effectiveDate', c.effective_date, 'reason', c.reason, 'At', c.changed_at,
	           'By', c.changed_by) ORDER BY c.change_id)
	  FROM disbursement_changes c
	 WHERE c.merchant_disbursement_id = d.merchant_disbursement_id)`

// Scan implements sql.Scanner.
func (l *changeList) Scan(value any) error {
	switch raw := value.(type) {
	case nil:
		return nil
	case []byte:
		return json.Unmarshal(raw, l)
	}
	return fmt.Errorf("the changes of a disbursement are a %T", value)
}

// with adds a change that a release without evidence made, unless the list has it.
func (l changeList) with(status lending.FundingStatus, at *time.Time) changeList {
	known := slices.ContainsFunc(l, func(c Change) bool { return c.Status == status })
	if at == nil || known {
		return l
	}
	l = append(l, Change{FundingChange: lending.FundingChange{Status: status}, At: *at})
	slices.SortStableFunc(l, func(a, b Change) int { return a.At.Compare(b.At) })
	return l
}
