package operator

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// AuditLog reads the audit log.
type AuditLog struct{ DB *postgres.DB }

// Record is a line of the audit log as stored.
type Record struct {
	ID          int64     `db:"entry_id"`
	At          time.Time `db:"at"`
	Actor       string    `db:"actor"`
	Address     string    `db:"address"`
	Action      string    `db:"action"`
	SubjectKind string    `db:"subject_kind"`
	Subject     string    `db:"subject"`
	Reason      string    `db:"reason"`
	// Before and After are JSON, nil if there is none.
	Before []byte `db:"before"`
	After  []byte `db:"after"`
	// OfLender means that the subject is the client of one of the lender's systems.
	OfLender bool `db:"of_lender"`
}

// AuditFilter selects lines of the audit log. The zero value selects all.
type AuditFilter struct {
	Actor string
	// Action is a verb, or a prefix of verbs if it ends with a dot.
	Action      string
	SubjectKind string
	Subject     string
	// Since (inclusive) and Until (exclusive) bound the time.
	Since, Until time.Time
	// Before is the id of the last line of the previous page.
	Before int64
	// Limit is the maximum number of lines.
	Limit int
}

const recordColumns = `
	entry_id, at, actor, address, action, subject_kind, subject, reason, before, after,
	subject_kind = 'client' AND EXISTS (
		SELECT FROM clients WHERE client_id = subject AND partner_uid IS NULL) AS of_lender`

// List returns a page of the audit log, newest first, and whether there is more.
func (l AuditLog) List(ctx context.Context, filter AuditFilter) ([]Record, bool, error) {
	c := filter.conditions()
	c.When(filter.Before > 0, `entry_id < ?`, filter.Before)
	var records []Record
	err := l.DB.SelectContext(ctx, &records, `SELECT `+recordColumns+`
		  FROM audit_log`+c.Where()+`
		 ORDER BY entry_id DESC LIMIT `+strconv.Itoa(filter.Limit+1), c.Args...)
	if err != nil {
		return nil, false, fmt.Errorf("listing the audit log: %w", err)
	}
	if len(records) > filter.Limit {
		return records[:filter.Limit], true, nil
	}
	return records, false, nil
}

// Count counts the lines that a filter selects on all pages, at most limit of them.
func (l AuditLog) Count(ctx context.Context, filter AuditFilter, limit int) (int, error) {
	c := filter.conditions()
	return l.DB.CountUpTo(ctx, limit, "the audit log",
		`FROM audit_log`+c.Where()+` ORDER BY entry_id DESC`, c.Args)
}

// Get returns one line of the audit log. Error: NOT_FOUND.
func (l AuditLog) Get(ctx context.Context, id int64) (Record, error) {
	var record Record
	err := l.DB.GetContext(ctx, &record,
		`SELECT `+recordColumns+` FROM audit_log WHERE entry_id = $1`, id)
	return record, postgres.RowError(err,
		lending.NewError(lending.CodeNotFound, "the audit log has no entry %d", id),
		"loading entry %d of the audit log", id)
}

// auditSkew is how far the times of entries may deviate from the order of their ids; it covers
// the length of transactions and the clocks of processes.
const auditSkew = time.Hour

// A time range also narrows the ids, which order the log: otherwise the search for a page of
// long ago would start at the newest entry.
const (
	firstEntry = `(SELECT entry_id FROM audit_log WHERE at >= ? ORDER BY at, entry_id LIMIT 1)`
	lastEntry  = `(SELECT entry_id FROM audit_log WHERE at < ?
		ORDER BY at DESC, entry_id DESC LIMIT 1)`
)

// conditions returns the filter as SQL, without the position in the list. It contains only the
// fields that are set, so that each filter can use its index.
func (f AuditFilter) conditions() postgres.Conditions {
	var c postgres.Conditions
	c.When(f.Actor != "", `actor = ?`, f.Actor)
	switch {
	case strings.HasSuffix(f.Action, "."):
		c.Add(`action LIKE ?`, postgres.LikePrefix(f.Action))
	case f.Action != "":
		c.Add(`action = ?`, f.Action)
	}
	c.When(f.SubjectKind != "", `subject_kind = ?`, f.SubjectKind)
	c.When(f.Subject != "", `subject = ?`, f.Subject)
	if !f.Since.IsZero() {
		c.Add(`at >= ?`, f.Since)
		c.Add(`entry_id >= `+firstEntry, f.Since.Add(-auditSkew))
	}
	if !f.Until.IsZero() {
		c.Add(`at < ?`, f.Until)
		c.Add(`entry_id <= `+lastEntry, f.Until.Add(auditSkew))
	}
	return c
}
