package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Fault is what goes wrong on purpose with a first attempt, in a sandbox (decisions
// section 11); empty for none.
type Fault string

// The faults.
const (
	// FaultDuplicate sends the request twice.
	FaultDuplicate Fault = "duplicate"
	// FaultReorder lets the next delivery of the subscription overtake this one.
	FaultReorder Fault = "reorder"
	// FaultDelay sends the request later.
	FaultDelay Fault = "delay"
	// FaultBadSignature signs with a wrong secret or sends a wrong token.
	FaultBadSignature Fault = "bad_signature"
	// FaultTruncate cuts the connection before the body's end.
	FaultTruncate Fault = "truncate"
)

// FaultUse is the fault of a delivery's first attempt.
type FaultUse struct {
	Fault Fault
	// Until is when the attempt may begin, zero for at once.
	Until time.Time
}

// Faults injects faults into first attempts.
type Faults interface {
	// Take returns the fault of a delivery's first attempt; repeated calls return the same.
	Take(ctx context.Context, delivery, subscription uuid.UUID, createdAt time.Time) (FaultUse, error)
	// Passed is called after each delivery that has been attempted.
	Passed(ctx context.Context, delivery, subscription uuid.UUID, createdAt time.Time) error
}

// takeFault returns the fault of an attempt and whether the attempt may begin. If not, it
// has been postponed, which does not count as an attempt.
func (s *Service) takeFault(ctx context.Context, task assignment, number int) (Fault, bool, error) {
	if s.Faults == nil || !task.Faulty || number != 1 || task.Test {
		return "", true, nil
	}
	injected, err := s.Faults.Take(ctx, task.UID, task.Subscription, task.CreatedAt)
	if err != nil || !injected.Until.After(s.DB.Now()) {
		return injected.Fault, err == nil, err
	}
	// The lock orders this against the delivery that ends the wait: either that comes first
	// and nothing is postponed, or it comes after and finds this delivery postponed.
	count, err := postgres.Affected(s.DB.ExecContext(ctx, `
		UPDATE deliveries d
		   SET next_attempt_at = waiting.until,
		       queued = false
		  FROM (SELECT until
		          FROM sandbox_fault_uses
		         WHERE delivery_uid = $1
		           AND until > $3
		           FOR UPDATE) AS waiting
		 WHERE d.delivery_uid = $1
		   AND d.created_at = $2
		   AND d.state = 'pending'
		   AND d.queued`, task.UID, task.CreatedAt, s.DB.Now()))
	if err != nil {
		return "", false, fmt.Errorf("putting delivery %s off: %w", task.UID, err)
	}
	return injected.Fault, count == 0, nil
}

// releaseOvertaken releases deliveries that wait to be overtaken. If that fails, they are sent when
// their wait has run out.
func (s *Service) releaseOvertaken(ctx context.Context, task assignment) {
	if s.Faults == nil || !task.Faulty || task.Test {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.Faults.Passed(ctx, task.UID, task.Subscription, task.CreatedAt); err != nil {
		slog.ErrorContext(ctx, "letting an overtaken delivery go", "delivery", task.UID, "error", err)
	}
}
