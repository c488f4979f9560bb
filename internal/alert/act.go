package alert

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

const (
	// maxSnooze is how long an item may be snoozed.
	maxSnooze = 90 * 24 * time.Hour
	// maxNote bounds a note, in characters.
	maxNote = 2000
)

// Take makes the person, named by their e-mail address, the owner of an open item, whoever owned
// it before. Errors: NOT_FOUND, INVALID_STATE when it is closed.
func (s *Service) Take(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
) (operator.Outcome, error) {
	return s.change(ctx, tx, uid, "attention.take", func(item *Item) error {
		item.Owner = by
		return nil
	})
}

// Release removes the owner of an open item. Errors: as Take.
func (s *Service) Release(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
) (operator.Outcome, error) {
	return s.change(ctx, tx, uid, "attention.release", func(item *Item) error {
		item.Owner = ""
		return nil
	})
}

// Snooze hides an open item until a time, at most 90 days ahead. Errors: as Take, and
// VALIDATION_ERROR for the time.
func (s *Service) Snooze(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, until time.Time,
) (operator.Outcome, error) {
	return s.change(ctx, tx, uid, "attention.snooze", func(item *Item) error {
		if !until.After(tx.Now) || until.Sub(tx.Now) > maxSnooze {
			return lending.Invalid("until", `"until" must be in the future, by at most 90 days`)
		}
		item.SnoozedUntil = &until
		return nil
	})
}

// Wake ends the snooze of an item. Errors: as Take.
func (s *Service) Wake(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID,
) (operator.Outcome, error) {
	return s.change(ctx, tx, uid, "attention.wake", func(item *Item) error {
		item.SnoozedUntil = nil
		return nil
	})
}

// Resolve closes an open item with a note that says why; the note is the reason in the audit
// log. If the cause occurs again, a new item opens. Errors: as Take, and VALIDATION_ERROR for
// the note.
func (s *Service) Resolve(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, note, by string,
) (operator.Outcome, error) {
	note = strings.TrimSpace(note)
	outcome, err := s.change(ctx, tx, uid, "attention.resolve", func(item *Item) error {
		if note == "" || utf8.RuneCountInString(note) > maxNote {
			return lending.Invalid("note", `"note" must have 1 to %d characters`, maxNote)
		}
		item.ClosedAt, item.ClosedBy, item.Note = &tx.Now, by, note
		return nil
	})
	for i := range outcome.Entries {
		outcome.Entries[i].Reason = note
	}
	return outcome, err
}

// change applies an action, under its name in the audit log, to an open item under its lock. The
// outcome has the audit entry, or none if nothing changed.
func (s *Service) change(
	ctx context.Context, tx *postgres.Tx, uid uuid.UUID, action string, apply func(item *Item) error,
) (operator.Outcome, error) {
	item, err := s.Lock(ctx, tx, uid)
	if err != nil {
		return operator.Outcome{}, err
	}
	if item.ClosedAt != nil {
		return operator.Outcome{}, lending.NewError(lending.CodeInvalidState,
			"This alert has already been closed by %s.", item.ClosedBy)
	}
	before := item.state()
	if err := apply(&item); err != nil {
		return operator.Outcome{}, err
	}
	after := item.state()
	if before == after {
		return operator.Outcome{}, nil
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE attention_items
		   SET owner = $2,
		       snoozed_until = $3,
		       closed_at = $4,
		       closed_by = $5,
		       note = $6
		 WHERE item_uid = $1`,
		uid, item.Owner, item.SnoozedUntil, item.ClosedAt, item.ClosedBy, item.Note)
	if err != nil {
		return operator.Outcome{}, fmt.Errorf("changing item %s: %w", uid, err)
	}
	return operator.Did("", operator.Entry{
		Action: action, SubjectKind: "attention_item", Subject: uid.String(),
		Before: before, After: after,
	}), nil
}

// itemState is the part of an item that users change, for the audit log.
type itemState struct {
	Kind         Kind   `json:"kind"`
	Subject      string `json:"subject"`
	Owner        string `json:"owner"`
	SnoozedUntil string `json:"snoozed_until"`
	Closed       bool   `json:"closed"`
}

func (i Item) state() itemState {
	state := itemState{Kind: i.Kind, Subject: i.Subject, Owner: i.Owner, Closed: i.ClosedAt != nil}
	if i.SnoozedUntil != nil {
		state.SnoozedUntil = i.SnoozedUntil.UTC().Format(time.RFC3339)
	}
	return state
}
