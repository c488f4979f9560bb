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

// submissionsKept is for how long a form that was sent is recognised.
const submissionsKept = 24 * time.Hour

// ErrRepeated is returned for a form that has acted before.
var ErrRepeated = errors.New("this form was sent before")

// Change is one change by a person or a command.
type Change struct {
	// Actor is the user's e-mail address, or what else acts. Address is the network
	// address that the request came from, Reason what the actor gave for one.
	Actor, Address, Reason string
	// Token identifies the form as it was shown; zero where there is no form.
	Token uuid.UUID
	// Session is that of the person who acts, which must last until the change commits; zero
	// where there is none, or where the change ends it and holds it itself.
	Session uuid.UUID
	// Do makes the change.
	Do func(ctx context.Context, tx *postgres.Tx) (Outcome, error)
}

// Outcome is what a change came to.
type Outcome struct {
	// Target is the page where the result is to be seen.
	Target string
	// Entries are what the audit log is told; who acts, from where and why is filled
	// in where it is left out. Without any, nothing was changed.
	Entries []Entry
}

// Did is the outcome of one change.
func Did(target string, entry Entry) Outcome {
	return Outcome{Target: target, Entries: []Entry{entry}}
}

// Act makes a change and keeps it in the audit log, both or neither. It is the one way
// in for the console and the commands.
//
// A change with a token is made at most once: another arrival of its form, also at the
// same moment, gets ErrRepeated with the target of the first one. A change that
// failed has done nothing, and its form may be sent again.
//
// Errors: VALIDATION_ERROR for a token that another person used, UNAUTHORIZED when the session
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
		// Last, since the change may have waited for long: what ended the session has its effect
		// once it returns, and waits for nothing but this commit.
		return holdSession(ctx, tx, change.Session)
	})
	if err != nil && !errors.Is(err, ErrRepeated) {
		return Outcome{}, err
	}
	return outcome, err
}

// record keeps what a change came to, in the audit log and for another arrival of its form.
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

// claim takes the token of a form for this transaction; without first, it returns the
// target of the arrival that had it before.
func claim(
	ctx context.Context, tx *postgres.Tx, change Change,
) (target string, first bool, err error) {
	// A simultaneous arrival waits here for the first one's end.
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
			lending.Invalid("token", "this form was sent by somebody else; open it again")
	}
	return earlier.Target, false, nil
}

// Submitted tells where the result of a form is to be seen, and false for a form
// that this person has not sent, or that did nothing.
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
