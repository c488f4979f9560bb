package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// submissionsKept is how long a submitted form is recognised.
const submissionsKept = 24 * time.Hour

// ErrRepeated is returned for a form that was already acted on.
var ErrRepeated = errors.New("this form was sent before")

// Change is one change by a person or a command.
type Change struct {
	// Actor is the user's e-mail address, or the name of another actor. Address is the network
	// address that the request came from, Reason the reason that the actor gave.
	Actor, Address, Reason string
	// Token identifies the form as it was shown; zero if there is no form.
	Token uuid.UUID
	// Session is the acting user's session, which must last until the change commits. It is zero if
	// there is none, or if the change ends the session and therefore holds it itself.
	Session uuid.UUID
	// Do makes the change.
	Do func(ctx context.Context, tx *postgres.Tx) (Outcome, error)
}

// Outcome is the result of a change.
type Outcome struct {
	// Target is the page that shows the result.
	Target string
	// Entries are the audit entries; actor, address and reason are filled in where they are left
	// out. If there are none, nothing was changed.
	Entries []Entry
}

// Did returns the outcome of a change with one audit entry.
func Did(target string, entry Entry) Outcome {
	return Outcome{Target: target, Entries: []Entry{entry}}
}

// Act makes a change and records it in the audit log, both or neither. All changes of the
// console and the commands go through it.
//
// A change with a token is made at most once: if its form arrives again, even at the same
// moment, the second arrival gets ErrRepeated and the target of the first. A failed change has
// done nothing, and its form may be sent again.
//
// Errors: VALIDATION_ERROR for a token that another person used, UNAUTHORIZED if the session has
// ended meanwhile.
func (s *Service) Act(ctx context.Context, change Change) (outcome Outcome, err error) {
	err = s.DB.InTx(ctx, func(tx *postgres.Tx) error {
		if change.Token != uuid.Nil {
			target, first, err := claim(ctx, tx, change)
			if err != nil {
				return err
			}
			if !first {
				outcome = Outcome{Target: target}
				return ErrRepeated
			}
		}
		if outcome, err = change.Do(ctx, tx); err != nil {
			return err
		}
		if err := record(ctx, tx, change, outcome); err != nil || change.Session == uuid.Nil {
			return err
		}
		// Last, because the change may have waited for long: whatever ends the session takes effect
		// once it returns, and then waits only for this commit.
		return holdSession(ctx, tx, change.Session)
	})
	if err != nil && !errors.Is(err, ErrRepeated) {
		return Outcome{}, err
	}
	return outcome, err
}

// record stores the outcome, in the audit log and for another arrival of the form.
func record(ctx context.Context, tx *postgres.Tx, change Change, outcome Outcome) error {
	for _, entry := range outcome.Entries {
		if entry.Actor == "" {
			entry.Actor, entry.Address = change.Actor, change.Address
		}
		if entry.Reason == "" {
			entry.Reason = change.Reason
		}
		var err error
		if entry.Limit > 0 {
			err = AuditLimited(ctx, tx, entry, entry.Limit, entry.Window)
		} else {
			err = Audit(ctx, tx, entry)
		}
		if err != nil {
			return err
		}
	}
	if change.Token == uuid.Nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE console_submissions SET target = $2 WHERE token = $1`,
		change.Token, outcome.Target)
	if err != nil {
		return fmt.Errorf("recording the result of a form: %w", err)
	}
	return nil
}

// claim takes the token of a form for this transaction. If first is false, it returns the target
// of the earlier arrival.
func claim(
	ctx context.Context, tx *postgres.Tx, change Change,
) (target string, first bool, err error) {
	// A concurrent arrival waits here until the first one ends.
	err = tx.GetContext(ctx, &first, `
		INSERT INTO console_submissions (token, at, actor) VALUES ($1, $2, $3)
		ON CONFLICT (token) DO NOTHING
		RETURNING true`, change.Token, tx.Now, change.Actor)
	if err != nil && !postgres.IsNoRows(err) {
		return "", false, fmt.Errorf("recording a form: %w", err)
	}
	if first {
		return "", true, nil
	}
	var earlier struct{ Actor, Target string }
	err = tx.GetContext(ctx, &earlier,
		`SELECT actor, target FROM console_submissions WHERE token = $1`, change.Token)
	if err != nil {
		return "", false, fmt.Errorf("looking up a form: %w", err)
	}
	if earlier.Actor != change.Actor {
		return "", false,
			lending.Invalid("token", "this form was already sent by another user; open it again")
	}
	return earlier.Target, false, nil
}

// Submitted returns the page with the result of a form, and false for a form that this person
// has not sent or that did nothing.
func (s *Service) Submitted(
	ctx context.Context, token uuid.UUID, actor string,
) (target string, known bool, err error) {
	err = s.DB.GetContext(ctx, &target,
		`SELECT target FROM console_submissions WHERE token = $1 AND actor = $2`, token, actor)
	if postgres.IsNoRows(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("looking up a form: %w", err)
	}
	return target, true, nil
}
