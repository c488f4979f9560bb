package operator_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// However many come at once, no more than the limit succeed within the window.
func TestAuditLimited(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var ahead atomic.Int64
	start := time.Now()
	db.Now = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	use := func(actor, action string) error {
		return db.InTx(context.Background(), func(tx *postgres.Tx) error {
			return operator.AuditLimited(t.Context(), tx, operator.Entry{
				Actor: actor, Action: action, SubjectKind: "subscription", Subject: "x",
			}, 3, time.Hour)
		})
	}
	var allowed, refused atomic.Int64
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			switch err := use("ana", "compare"); lending.ErrorCode(err) {
			case "":
				allowed.Add(1)
			case lending.CodeRateLimited:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	running.Wait()
	if allowed.Load() != 3 || refused.Load() != 5 {
		t.Errorf("%d allowed, %d refused", allowed.Load(), refused.Load())
	}
	if err := use("ben", "compare"); err != nil {
		t.Errorf("another person: %v", err)
	}
	if err := use("ana", "other"); err != nil {
		t.Errorf("another action: %v", err)
	}
	ahead.Store(int64(time.Hour + time.Second))
	if err := use("ana", "compare"); err != nil {
		t.Errorf("after the window: %v", err)
	}
}
