package operator_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// send submits a form and counts how often its work is done.
func send(
	o *office, token uuid.UUID, actor string, done *atomic.Int64, problem error,
) (target string, repeated bool, err error) {
	outcome, err := o.Act(context.Background(), operator.Change{
		Actor: actor, Token: token,
		Do: func(context.Context, *postgres.Tx) (operator.Outcome, error) {
			if problem == nil {
				done.Add(1)
			}
			return operator.Outcome{Target: "/here"}, problem
		},
	})
	if errors.Is(err, operator.ErrRepeated) {
		return outcome.Target, true, nil
	}
	return outcome.Target, false, err
}

func TestAFormDoesItsWorkOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	token, done := uuid.New(), new(atomic.Int64)
	var firsts atomic.Int64
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			target, repeated, err := send(o, token, email, done, nil)
			if err != nil || target != "/here" {
				t.Errorf("led to %q, %v", target, err)
			}
			if !repeated {
				firsts.Add(1)
			}
		})
	}
	senders.Wait()
	if done.Load() != 1 || firsts.Load() != 1 {
		t.Errorf("done %d times, %d said to be first", done.Load(), firsts.Load())
	}
}

func TestAFormThatFailedMayBeSentAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	token, done := uuid.New(), new(atomic.Int64)
	problem := errors.New("no")
	if _, _, err := send(o, token, email, done, problem); !errors.Is(err, problem) {
		t.Errorf("the fault became %v", err)
	}
	if _, repeated, err := send(o, token, email, done, nil); repeated || err != nil {
		t.Errorf("the second try: repeated %t, %v", repeated, err)
	}
	_, _, err := send(o, token, "eve@lender.example", done, nil)
	if lending.ErrorCode(err) != lending.CodeValidation || done.Load() != 1 {
		t.Errorf("somebody else's form: %v, done %d times", err, done.Load())
	}
}

func TestOldFormsAreForgotten(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	done := new(atomic.Int64)
	for range 2 {
		if _, _, err := send(o, uuid.New(), email, done, nil); err != nil {
			t.Fatal(err)
		}
		o.ahead.Add(int64(25 * time.Hour))
	}
	if err := o.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := o.count(`SELECT count(*) FROM console_submissions`); left != 0 {
		t.Errorf("%d forms are left", left)
	}
}
