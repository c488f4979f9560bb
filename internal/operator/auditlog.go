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

// MaxAuditCount is the highest number that CountAudit counts to.
const MaxAuditCount = 10000

// Record is a line of the audit log as it was written.
type Record struct {
	ID          int64     `db:"entry_id"`
	At          time.Time `db:"at"`
	Actor       string    `db:"actor"`
	Address     string    `db:"address"`
	Action      string    `db:"action"`
	SubjectKind string    `db:"subject_kind"`
	Subject     string    `db:"subject"`
	Reason      string    `db:"reason"`
	// Before and After are JSON, nil for none.
	Before []byte `db:"before"`
	After  []byte `db:"after"`
}

// AuditFilter selects lines of the audit log. The zero value selects all.
type AuditFilter struct {
	Actor string
	// Action is a verb, or the beginning of several when it ends with a dot.
	Action      string
	SubjectKind string
	Subject     string
	// Since and Until bound the time; Until is outside.
	Since, Until time.Time
	// Before is the id of the last line of the page before.
	Before int64
	// Limit is the most lines to return.
	Limit int
}

const recordColumns = `
	entry_id, at, actor, address, action, subject_kind, subject, reason, before, after`

// AuditLog lists the audit log, newest first, and tells whether there is more.
func (s *Service) AuditLog(ctx context.Context, filter AuditFilter) ([]Record, bool, error) {
	where, args := filter.conditions()
	if filter.Before > 0 {
		args = append(args, filter.Before)
		where += ` AND entry_id < $` + strconv.Itoa(len(args))
	}
	var records []Record
	err := s.DB.SelectContext(ctx, &records, `SELECT `+recordColumns+`
		  FROM audit_log WHERE `+where+`
		 ORDER BY entry_id DESC LIMIT `+strconv.Itoa(filter.Limit+1), args...)
	if err != nil {
		return nil, false, fmt.Errorf("listing the audit log: %w", err)
	}
	if len(records) > filter.Limit {
		return records[:filter.Limit], true, nil
	}
	return records, false, nil
}

// CountAudit counts the lines that a filter selects on all pages, up to one more
// than MaxAuditCount.
func (s *Service) CountAudit(ctx context.Context, filter AuditFilter) (int, error) {
	where, args := filter.conditions()
	var count int
	err := s.DB.GetContext(ctx, &count, `SELECT count(*) FROM (
		SELECT 1 FROM audit_log WHERE `+where+` LIMIT `+strconv.Itoa(MaxAuditCount+1)+`) AS found`,
		args...)
	if err != nil {
		return 0, fmt.Errorf("counting the audit log: %w", err)
	}
	return count, nil
}

// AuditRecord returns one line of the audit log. Error: NOT_FOUND.
func (s *Service) AuditRecord(ctx context.Context, id int64) (Record, error) {
	var record Record
	err := s.DB.GetContext(ctx, &record,
		`SELECT `+recordColumns+` FROM audit_log WHERE entry_id = $1`, id)
	if postgres.IsNoRows(err) {
		return Record{}, lending.NewError(lending.CodeNotFound,
			"the audit log has no entry %d", id)
	}
	if err != nil {
		return Record{}, fmt.Errorf("loading entry %d of the audit log: %w", id, err)
	}
	return record, nil
}

// conditions writes the filter as SQL, without its place in the list. Only what
// is given is part of it, so that each filter finds its index.
func (f AuditFilter) conditions() (where string, args []any) {
	parts := []string{"true"}
	add := func(condition string, value any) {
		args = append(args, value)
		parts = append(parts, condition+` $`+strconv.Itoa(len(args)))
	}
	if f.Actor != "" {
		add(`actor =`, f.Actor)
	}
	switch {
	case strings.HasSuffix(f.Action, "."):
		add(`action LIKE`, postgres.LikePrefix(f.Action))
	case f.Action != "":
		add(`action =`, f.Action)
	}
	if f.SubjectKind != "" {
		add(`subject_kind =`, f.SubjectKind)
	}
	if f.Subject != "" {
		add(`subject =`, f.Subject)
	}
	if !f.Since.IsZero() {
		add(`at >=`, f.Since)
	}
	if !f.Until.IsZero() {
		add(`at <`, f.Until)
	}
	return strings.Join(parts, " AND "), args
}
