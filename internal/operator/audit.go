package operator

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

// Entry is one line of the audit log. The log is append-only: the database
// refuses to change or delete a line.
type Entry struct {
	// Actor is the user's e-mail address, or what else acted.
	Actor string
	// Address is the network address that the request came from.
	Address string
	// Action is a verb, such as "delivery.resend".
	Action string
	// SubjectKind and Subject name what was acted on.
	SubjectKind string
	Subject     string
	Reason      string
	// Before and After are states as JSON values, secrets masked; nil for none.
	Before, After any
	// Limit, where it is not zero, is how many entries of this action one actor may have
	// in any Window; another one is refused, and the change with it.
	Limit  int
	Window time.Duration
	// PerSubject counts the entries of the same subject alone.
	PerSubject bool
}

// limitedSubject is the subject whose entries count, empty for all.
func (e Entry) limitedSubject() string {
	if e.PerSubject {
		return e.Subject
	}
	return ""
}

// Audit writes an entry in the transaction of what it tells about.
func Audit(ctx context.Context, tx *postgres.Tx, entry Entry) error {
	before, err := stateJSON(entry.Before)
	if err != nil {
		return err
	}
	after, err := stateJSON(entry.After)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO audit_log (at, actor, address, action, subject_kind, subject, reason,
		                       before, after)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		tx.Now, entry.Actor, entry.Address, entry.Action, entry.SubjectKind, entry.Subject,
		entry.Reason, before, after)
	if err != nil {
		return fmt.Errorf("writing the audit log for %s: %w", entry.Action, err)
	}
	return nil
}

// stateJSON writes a state for the log; nil is none.
func stateJSON(state any) (sql.Null[string], error) {
	if state == nil {
		return sql.Null[string]{}, nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		return sql.Null[string]{}, fmt.Errorf("writing a state for the audit log: %w", err)
	}
	return sql.Null[string]{V: string(text), Valid: true}, nil
}
