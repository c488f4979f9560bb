package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"drawbridge/internal/postgres"
)

// Entry is one line of the audit log. The log is append-only: the database
// refuses to change or delete a line.
type Entry struct {
	// Actor is the user's e-mail address, or the name of another actor.
	Actor string `json:"actor"`
	// Address is the network address that the request came from.
	Address string `json:"address"`
	// Action is a verb, such as "delivery.resend".
	Action string `json:"action"`
	// SubjectKind and Subject name the object of the action.
	SubjectKind string `json:"subject_kind"`
	Subject     string `json:"subject"`
	Reason      string `json:"reason"`
	// Before and After are states as JSON values, secrets masked; nil if there is none.
	Before any `json:"before"`
	After  any `json:"after"`
	// Limit, if not zero, is how many entries of this action one actor may have within any Window;
	// a further entry is refused, and its change with it.
	Limit  int           `json:"-"`
	Window time.Duration `json:"-"`
	// Together lists the actions that are counted together, including this one; if empty, this
	// action is counted alone.
	Together []string `json:"-"`
	// PerSubject counts only the entries of the same subject.
	PerSubject bool `json:"-"`
}

// NewEntry returns the entry of an action, such as "delivery.resend", on a subject of the kind
// that the action begins with; before and after are nil if there is no state.
func NewEntry(action, subject string, before, after any) Entry {
	kind, _, _ := strings.Cut(action, ".")
	return Entry{Action: action, SubjectKind: kind, Subject: subject, Before: before, After: after}
}

// Audit writes entries in the transaction of the changes that they record.
func Audit(ctx context.Context, tx *postgres.Tx, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	rows, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("writing a state for the audit log: %w", err)
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO audit_log (at, actor, address, action, subject_kind, subject, reason,
		                       before, after)
		SELECT $1, actor, address, action, subject_kind, subject, reason, before, after
		  FROM ROWS FROM (jsonb_to_recordset($2)
		                  AS (actor text, address text, action text, subject_kind text,
		                      subject text, reason text, before jsonb, after jsonb))
		       WITH ORDINALITY
		 ORDER BY ordinality`, tx.Now, rows)
	if err != nil {
		return fmt.Errorf("writing the audit log for %s: %w", entries[0].Action, err)
	}
	return nil
}
