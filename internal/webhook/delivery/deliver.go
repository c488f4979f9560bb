package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// The path of an attempt, from its job to its recorded outcome, from the top down:
// Deliver takes the delivery, builds the request, waits for its slot in the rate and at
// the endpoint, notes that the attempt begins, sends, and records. Each step that queries
// the database shares its statement with other attempts at the same step; those
// statements are in statements.go.

// ErrNotSent marks an error that occurred before the request: nothing was sent, and the
// attempt does not count.
var ErrNotSent = errors.New("not sent")

// Run is one run of a job by the queue. The zero value stands for no job.
type Run struct {
	// JobID is the job's key in the queue.
	JobID int64
	// Number counts the runs of the job, from 1.
	Number int
	// ClaimedAt is when the queue gave the job to the run. No other run of the job
	// has the same.
	ClaimedAt time.Time
}

// Deliver makes the attempt that a job asks for, and records its outcome and what
// follows; the job is deleted in the same transaction. If a run died, whether the partner
// got its request cannot be known, so that attempt counts, with the class unknown, and is
// not repeated under the same number.
//
// An error that is ErrNotSent means that the job should run again as if it had not begun.
// After any other error the outcome of a request could not be written, and the next run
// must record that this one died. A partner's refusal is an outcome, not an error.
//
// When ctx ends during the request, whatever is known by then is still written.
func (s *Service) Deliver(ctx context.Context, job Args, run Run) error {
	task, due, err := s.take(ctx, job, run)
	if err != nil || !due {
		return notSent(err)
	}
	ctx = inTraceOf(ctx, task)
	made := &madeAttempt{task: task, run: run, number: job.Number}
	if task.died(run) {
		made.started = cmp.Or(postgres.OrZero(task.BegunAt), s.DB.Now())
		made.attempt = sender.Attempt{
			Class: sender.ClassUnknown,
			Cause: sender.CauseProcessDied,
			Error: sender.CauseProcessDied.Text(),
		}
		return s.record(ctx, made)
	}
	request, may, err := s.prepare(ctx, made)
	if err != nil || !may {
		return notSent(err)
	}
	to := s.limiter.of(task.Subscription)
	slot := to.enter(ctx)
	if slot == nil {
		return notSent(s.applyBackpressure(ctx, made, to))
	}
	if may, err := s.begin(ctx, slot, made); err != nil || !may {
		return notSent(err)
	}
	endSend := s.Gate.beforeSend(ctx, time.Duration(to.mean.Load()))
	made.started = s.DB.Now()
	ctx, span := startSpan(ctx, task, job.Number)
	if s.SendTraceparent && span.IsRecording() {
		request.Traceparent = traceparent(ctx)
	}
	made.attempt = s.send(ctx, slot, made, request, endSend)
	endSpan(span, made.attempt)
	if count := to.free(); count > 0 {
		var refilling sync.WaitGroup
		refilling.Go(func() { s.refill(ctx, task.Subscription, to, count) })
		defer refilling.Wait()
	}
	if why := notMade(ctx, made.attempt); why != nil {
		err := fmt.Errorf("delivering %s: %w", task.UID, why)
		return notSent(errors.Join(err, unbegin(ctx, s.DB, made)))
	}
	err = s.record(ctx, made)
	s.releaseOvertaken(ctx, task)
	return err
}

// prepare builds the request of an attempt and reports whether it may start now. If not,
// the delivery has been postponed.
//
// A subscription with a rate gives its requests slots, 1/rate seconds apart. They are
// booked in one database row per subscription, so the rate holds over all processes
// together. An attempt whose slot has come is sent. For any other attempt, the slot
// becomes its next attempt time, stored in its row without a job, and EnqueueDue picks it
// up like any other that falls due. So nothing waits in a process, nothing polls, slots
// are used in the order in which they were booked, and a postponement does not count as
// an attempt.
func (s *Service) prepare(ctx context.Context, made *madeAttempt) (sender.Request, bool, error) {
	request, err := s.request(made.task, made.number)
	if err != nil {
		return request, false, stop(ctx, s.DB, made.task, err)
	}
	fault, may, err := s.takeFault(ctx, made.task, made.number)
	if err != nil || !may {
		return request, false, err
	}
	made.fault = fault
	if fault == FaultBadSignature {
		request.Secret = secret.NewToken("wrong_")
		if !request.Previous.IsZero() {
			request.Previous = secret.NewToken("wrong_")
		}
	}
	task := made.task
	if task.Rate == nil || task.SlotAt != nil && s.DB.Now().Sub(*task.SlotAt).Abs() <= slotGrace {
		return request, true, nil
	}
	may, err = share(ctx, s, &s.slots, s.bookMany, task)
	if err != nil {
		err = fmt.Errorf("booking a slot for delivery %s: %w", task.UID, err)
	}
	return request, may, err
}

const (
	// slotGrace is how far from its slot an attempt may start. It must exceed maxScanRest:
	// otherwise our own rest between scans would send postponed deliveries to the end of the
	// line. A slot that was missed by more is booked again, so that of the deliveries that fell due
	// while no process ran only as many go out at once as the rate gives in that time.
	slotGrace = maxScanRest + pickUp
	// pickUp is how long, on top of that rest, a due attempt may take to start.
	pickUp = 2 * time.Second
)

// notSent marks an error as ErrNotSent; nil stays nil.
func notSent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotSent, err)
}

// take loads what the attempt needs. The attempt is not due when it was made already,
// when another run is making it, when the delivery has ended, or when the subscription is
// paused, stopped or deleted; in these last cases the delivery is parked or cancelled.
func (s *Service) take(ctx context.Context, job Args, run Run) (assignment, bool, error) {
	for {
		found, err := share(ctx, s, &s.loads, loadMany, job)
		if err != nil {
			return assignment{}, false, fmt.Errorf("loading delivery %s: %w", job.DeliveryUID, err)
		}
		if found == nil { // removed with an old partition
			return assignment{}, false, nil
		}
		switch task := *found; {
		case task.AttemptCount != job.Number-1, task.InHand:
			return assignment{}, false, nil
		case task.State.IsFinal():
			// Cancelled after a process began the attempt and before it died: the attempt counts.
			return task, task.State == StateCancelled && task.BegunAt != nil, nil
		case task.died(run):
			return task, true, nil
		case task.SubscriptionState == subscription.StateDeleted, len(task.Body) == 0:
			// Retention keeps the body of an event that is still to be sent; if the body is
			// missing all the same, nothing is sent in its place.
			return assignment{}, false, cancelTask(ctx, s.DB, task)
		case task.SubscriptionState != subscription.StatePaused && !task.Stopped:
			return task, true, nil
		}
		parked, err := park(ctx, s.DB, *found)
		if err != nil || parked {
			return assignment{}, false, err
		}
		// The subscription was resumed or deleted meanwhile: load again.
	}
}

// died reports whether another run began the attempt and died before recording it. The
// queue counts a run before it starts it; for a run that died before it began the
// attempt, that count is taken back.
func (a assignment) died(run Run) bool { return run.Number > 1 || a.BegunAt != nil }

// request builds the request from the subscription as it is now. All its errors are of
// type *unopenedError.
func (s *Service) request(task assignment, number int) (sender.Request, error) {
	event := sender.Identity{
		Kind: string(task.Event), UID: task.EventUID.String(), Merchant: task.Merchant.UUID.String(),
		Sequence: postgres.OrZero(task.Sequence), Reference: postgres.OrZero(task.Reference),
		Subject: postgres.OrZero(task.Subject),
	}
	if task.Test {
		event = sender.TestIdentity(task.Event, task.EventUID.String())
	}
	request := sender.Request{
		URL:         task.URL,
		Event:       event,
		Delivery:    task.UID.String(),
		Number:      number,
		RetriesLeft: MaxAttempts - number,
		Test:        task.Test,
		Auth:        task.Auth,
		Body:        task.Body,
		Standard:    task.Standard,
		At:          s.DB.Now(),
	}
	var err error
	keys, uid := s.Subscriptions, task.Subscription
	if request.Headers, err = keys.OpenHeaders(uid, task.HeadersSealed); err != nil {
		return sender.Request{}, err
	}
	if request.Secret, err = keys.OpenSecret(uid, task.SecretSealed); err != nil {
		return sender.Request{}, err
	}
	if task.PreviousUntil != nil && s.DB.Now().Before(*task.PreviousUntil) {
		request.Previous, err = keys.OpenSecret(uid, task.PreviousSealed)
	}
	return request, err
}

// stop stops sending to a subscription whose secret or headers cannot be decrypted, logs
// that once, and parks the delivery. Deliveries that fall due wait until the values are
// set again or the key is back, see [subscription.Service.Reopen]. If the configuration has changed
// since the task was loaded, nothing is stopped and why is returned.
func stop(ctx context.Context, db *postgres.DB, task assignment, why error) error {
	count, err := postgres.Affected(db.ExecContext(ctx, `
		UPDATE subscriptions
		   SET stopped_at = $3
		 WHERE subscription_uid = $1
		   AND version = $2
		   AND stopped_at IS NULL`, task.Subscription, task.Version, db.Now().UTC()))
	if err != nil {
		return fmt.Errorf("stopping subscription %s: %w", task.Subscription, err)
	}
	if count > 0 {
		slog.ErrorContext(ctx, "a subscription cannot be sent to",
			"subscription", task.Subscription, "error", why)
	}
	if parked, err := park(ctx, db, task); err != nil || parked {
		return err
	}
	return why
}

// park sets a delivery of a paused or stopped subscription aside until that is resumed. The
// share lock on the subscription orders it against a simultaneous resumption: either the
// resumption comes first and nothing is parked, or it waits and finds the delivery parked.
func park(ctx context.Context, db *postgres.DB, task assignment) (bool, error) {
	count, err := postgres.Affected(db.ExecContext(ctx, `
		WITH paused AS (
			SELECT subscription_uid
			  FROM subscriptions
			 WHERE subscription_uid = $3
			   AND (state = 'paused' OR stopped_at IS NOT NULL)
			   FOR SHARE
		)
		UPDATE deliveries d
		   SET parked = true,
		       queued = false
		 WHERE delivery_uid = $1
		   AND created_at = $2
		   AND `+isOpen+`
		   AND EXISTS (SELECT 1 FROM paused)`, task.UID, task.CreatedAt, task.Subscription))
	if err != nil {
		return false, fmt.Errorf("parking delivery %s: %w", task.UID, err)
	}
	return count > 0, nil
}

// cancelTask ends a delivery that was added while its subscription was deleted.
func cancelTask(ctx context.Context, db *postgres.DB, task assignment) error {
	_, err := db.ExecContext(ctx, `
		UPDATE deliveries d
		   SET `+subscription.Cancelled+`
		 WHERE delivery_uid = $1
		   AND created_at = $3
		   AND `+isOpen, task.UID, db.Now(), task.CreatedAt)
	if err != nil {
		return fmt.Errorf("cancelling delivery %s: %w", task.UID, err)
	}
	return nil
}

// applyBackpressure holds a delivery back whose endpoint has no slot for it now. Its job
// is deleted in the same statement.
func (s *Service) applyBackpressure(ctx context.Context, row *madeAttempt, to *endpoint) error {
	_, err := share(ctx, s, &s.backpressure, backpressureMany, row)
	if err != nil {
		return fmt.Errorf("holding delivery %s back: %w", row.task.UID, err)
	}
	to.backpressured.Add(1)
	return nil
}

// An attempt is noted as begun right before its request may leave, and the note is
// deleted when its outcome is recorded. So the notes of a dead process show which attempt
// numbers may be used up: a job without a note is handed back as if it had not run (see
// internal/processes), and an attempt with one has been unknown since it began.

// begin notes that the request of an attempt may leave from now on, in a statement shared
// with others, and reports whether it may: not when another run has the job. The end of
// ctx does not interrupt it, so that no note is written after begin has returned.
func (s *Service) begin(ctx context.Context, taken *slot, row *madeAttempt) (bool, error) {
	row.started, row.asked = s.DB.Now(), time.Now()
	may, err := share(context.WithoutCancel(ctx), s, &s.begins, beginMany, row)
	if err == nil && may {
		return true, nil
	}
	taken.freeUnused()
	if err == nil {
		return false, nil
	}
	return false, errors.Join(fmt.Errorf("beginning attempt %d of delivery %s: %w",
		row.number, row.task.UID, err), unbegin(ctx, s.DB, row))
}

// unbegin deletes the note of an attempt, if there is one, whose request has not left and
// will not.
func unbegin(ctx context.Context, db *postgres.DB, row *madeAttempt) error {
	return postgres.Persist(ctx, "an attempt that was not begun", func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, `
			DELETE FROM begun_attempts
			 WHERE delivery_uid = $1
			   AND number = $2
			   AND job_id = $3
			   AND claimed_at = $4`, row.task.UID, row.number, row.run.JobID, row.run.ClaimedAt)
		if err != nil {
			return fmt.Errorf("taking back the begin of attempt %d of delivery %s: %w",
				row.number, row.task.UID, err)
		}
		return nil
	})
}

// beginLife is how long after asking to begin an attempt may still send. It is well below
// the time after which a process that is frozen is taken for dead (see
// internal/processes) and another one records its attempts as unknown.
const beginLife = 30 * time.Second

// errLate ends an attempt that its process resumed too late.
var errLate = errors.New("the process was not running for a while")

// send makes the request in the slot that was taken, unless it is too late for it, and
// always gives back both the endpoint slot and the send slot.
func (s *Service) send(
	ctx context.Context, taken *slot, made *madeAttempt, request sender.Request, endSend func(),
) (attempt sender.Attempt) {
	defer endSend()
	began := time.Now()
	if began.Sub(made.asked) > beginLife {
		taken.freeUnused()
		return sender.Attempt{Class: sender.ClassUnknown}
	}
	defer func() { taken.leave(time.Since(began), attempt.Class == sender.ClassTimeout) }()
	if made.fault == FaultTruncate {
		return s.Sender.SendCut(ctx, request)
	}
	attempt = s.Sender.Send(ctx, request)
	if made.fault == FaultDuplicate {
		s.Sender.Send(ctx, request) // its outcome is not recorded
	}
	return attempt
}

// notMade is what kept an attempt from being one, nil if nothing did. Its number is not used up.
func notMade(ctx context.Context, attempt sender.Attempt) error {
	switch {
	case attempt.Local:
		return errors.New(attempt.Error)
	case attempt.Class == sender.ClassUnknown && !attempt.Sent:
		return cmp.Or(context.Cause(ctx), errLate)
	}
	return nil
}

// refill releases deliveries that were held back, while this attempt is recorded. What it
// fails to release, ReleaseIdle releases later.
func (s *Service) refill(ctx context.Context, uid uuid.UUID, to *endpoint, count int) {
	if !to.refilling.CompareAndSwap(false, true) {
		return
	}
	defer to.refilling.Store(false)
	if err := s.release(ctx, uid, to, count); err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "refilling the slots of an endpoint", "subscription", uid, "error", err)
	}
}

// record writes an attempt and what follows from it, in a statement shared with others,
// even when ctx has ended. It returns once that has committed, which may take as long as
// the database is unreachable: until then the worker stays occupied and keeps the job.
func (s *Service) record(ctx context.Context, row *madeAttempt) error {
	ctx = context.WithoutCancel(ctx)
	task, attempt := row.task, row.attempt
	row.requestHeaders = headersJSON(attempt.RequestHeaders)
	row.responseHeaders = headersJSON(attempt.ResponseHeaders)
	row.outcome = s.Retries.Of(task.Retry).outcome(row.number, attempt, s.DB.Now().UTC())
	var moved bool
	err := postgres.Persist(ctx, "the outcome of an attempt", func(ctx context.Context) (err error) {
		moved, err = share(ctx, s, &s.records, recordMany, row)
		return err
	})
	if err != nil {
		return fmt.Errorf("recording attempt %d of delivery %s: %w", row.number, task.UID, err)
	}
	if s.Observe != nil {
		observation := Observation{
			Class: attempt.Class, State: row.outcome.state, Took: attempt.Timings.Total, Test: task.Test,
		}
		if task.Due != nil {
			observation.Lag = max(row.started.Sub(*task.Due), 0)
		}
		s.Observe(observation)
	}
	traceID := ""
	if found := trace.SpanContextFromContext(ctx); found.IsValid() {
		traceID = found.TraceID().String()
	}
	slog.InfoContext(ctx, "webhook attempt",
		"delivery", task.UID,
		"subscription", task.Subscription,
		"event", task.Event,
		"application", task.Application.UUID,
		"trace_id", traceID,
		"attempt", row.number,
		"status", attempt.Status,
		"error_class", attempt.Class,
		"duration_ms", attempt.Timings.Total.Milliseconds(),
		"state", row.outcome.state,
		"late", !moved,
		"test", task.Test,
		"lag_ms", s.DB.Now().Sub(task.CreatedAt).Milliseconds())
	return nil
}

func (s Schedule) outcome(number int, attempt sender.Attempt, now time.Time) outcome {
	if attempt.Delivered() {
		return outcome{state: StateDelivered, finished: &now}
	}
	due, more := s.Next(number, now, attempt)
	if !more {
		return outcome{state: StateFailed, finished: &now}
	}
	if attempt.Class == sender.ClassUnknown {
		// The time lost until the attempt was found dead has been delay enough.
		due = now
	}
	return outcome{state: StateRetrying, next: &due}
}

// outcome is the effect of an attempt on its delivery.
type outcome struct {
	state State
	// next is when the next attempt is due, nil without one.
	next *time.Time
	// finished is when the delivery ended, nil while it is open.
	finished *time.Time
}
