package operator

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"

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
	// Together are the actions that count as one, this one among them; without any it counts
	// alone.
	Together []string
	// PerSubject counts the entries of the same subject alone.
	PerSubject bool
}

// NewEntry is the line of an action on a subject whose kind the action begins with, such as
// "delivery.resend"; before and after are nil for none.
func NewEntry(action, subject string, before, after any) Entry {
	kind, _, _ := strings.Cut(action, ".")
	return Entry{
		Action: action, SubjectKind: kind, Subject: subject, Before: before, After: after,
	}
}

// Audit writes entries in the transaction of what they tell about.
func Audit(ctx context.Context, tx *postgres.Tx, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var (
		actors, addresses, actions, kinds, subjects, reasons pq.StringArray
		befores, afters                                      []sql.Null[string]
	)
	for _, entry := range entries {
		before, err := stateJSON(entry.Before)
		if err != nil {
			return err
		}
		after, err := stateJSON(entry.After)
		if err != nil {
			return err
		}
		actors = append(actors, entry.Actor)
		addresses = append(addresses, entry.Address)
		actions = append(actions, entry.Action)
		kinds = append(kinds, entry.SubjectKind)
		subjects = append(subjects, entry.Subject)
		reasons = append(reasons, entry.Reason)
		befores, afters = append(befores, before), append(afters, after)
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO audit_log (at, actor, address, action, subject_kind, subject, reason,
		                       before, after)
		SELECT $1, actor, address, action, kind, subject, reason, before, after
		  FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
		              $8::jsonb[], $9::jsonb[]) WITH ORDINALITY
		       AS entry (actor, address, action, kind, subject, reason, before, after, place)
		 ORDER BY place`,
		tx.Now, actors, addresses, actions, kinds, subjects, reasons, pq.Array(befores),
		pq.Array(afters))
	if err != nil {
		return fmt.Errorf("writing the audit log for %s: %w", entries[0].Action, err)
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
