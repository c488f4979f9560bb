package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Fault is what goes wrong on purpose with a first attempt, in a sandbox (decisions section
// 11); empty for nothing.
type Fault string

// The faults.
const (
	// FaultDuplicate sends the request twice.
	FaultDuplicate Fault = "duplicate"
	// FaultReorder lets the next delivery of the subscription go first.
	FaultReorder Fault = "reorder"
	// FaultDelay sends later.
	FaultDelay Fault = "delay"
	// FaultBadSignature signs with a wrong secret, or sends a wrong token.
	FaultBadSignature Fault = "bad_signature"
	// FaultTruncate cuts the connection before the body's end.
	FaultTruncate Fault = "truncate"
)

// Suffered is what a delivery's first attempt suffers.
type Suffered struct {
	Fault Fault
	// Until is when the attempt may begin, zero for at once.
	Until time.Time
}

// Faults make first attempts go wrong.
type Faults interface {
	// Take returns what the first attempt of a delivery suffers, always the same.
	Take(ctx context.Context, delivery, subscription uuid.UUID, createdAt time.Time) (Suffered, error)
	// Passed is told of each delivery that has been attempted.
	Passed(ctx context.Context, delivery, subscription uuid.UUID, createdAt time.Time) error
}

// suffer tells what goes wrong with an attempt, and whether it may begin. One that may not
// has been put off, which is no attempt.
func (s *Service) suffer(ctx context.Context, task assignment, number int) (Fault, bool, error) {
	if s.Faults == nil || !task.Faulty || number != 1 || task.Test {
		return "", true, nil
	}
	suffered, err := s.Faults.Take(ctx, task.UID, task.Subscription, task.CreatedAt)
	if err != nil || !suffered.Until.After(s.DB.Now()) {
		return suffered.Fault, err == nil, err
	}
	// The lock makes the one that ends the wait come before, and then nothing is put off, or
	// after, and then it finds the delivery put off.
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
	return suffered.Fault, count == 0, nil
}

// passed lets deliveries go that wait to be overtaken. What fails here comes when their time
// has run out.
func (s *Service) passed(ctx context.Context, task assignment) {
	if s.Faults == nil || !task.Faulty || task.Test {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.Faults.Passed(ctx, task.UID, task.Subscription, task.CreatedAt); err != nil {
		slog.ErrorContext(ctx, "letting an overtaken delivery go", "delivery", task.UID, "error", err)
	}
}
