package operator_test

import (
	"context"
	"errors"
	"testing"

	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.do(func(ctx context.Context, tx *postgres.Tx) error {
		return operator.Audit(ctx, tx, operator.Entry{
			Actor: email, Address: address, Action: "subscription.pause",
			SubjectKind: "subscription", Subject: "17", Reason: "maintenance",
			Before: map[string]string{"state": "active"}, After: map[string]string{"state": "paused"},
		})
	})
	if o.count(`SELECT count(*) FROM audit_log
		WHERE before ->> 'state' = 'active' AND after ->> 'state' = 'paused'`) != 1 {
		t.Error("the entry does not tell the states")
	}
	for _, statement := range []string{
		`UPDATE audit_log SET actor = 'nobody'`, `DELETE FROM audit_log`, `TRUNCATE audit_log`,
	} {
		if _, err := o.DB.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s was allowed", statement)
		}
	}
}

func TestAuditCommitsWithItsCause(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	failed := errors.New("the change failed")
	err := o.try(func(ctx context.Context, tx *postgres.Tx) error {
		if err := operator.Audit(ctx, tx, operator.Entry{
			Actor: email, Action: "user.create", SubjectKind: "user", Subject: "bo",
		}); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) || o.count(`SELECT count(*) FROM audit_log`) != 0 {
		t.Errorf("%v left %d entries", err, o.count(`SELECT count(*) FROM audit_log`))
	}
}

func TestAuditRefusesWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	err := o.try(func(ctx context.Context, tx *postgres.Tx) error {
		return operator.Audit(ctx, tx, operator.Entry{Actor: email, Action: "x", After: make(chan int)})
	})
	if err == nil {
		t.Error("a channel was written to the log")
	}
}
