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
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// ErrNotSent marks an error that came before the request: nothing was sent, and
// the attempt does not count.
var ErrNotSent = errors.New("not sent")

// Run is a run of a job by the queue. The zero value is that of no job.
type Run struct {
	// JobID is the job's key in the queue.
	JobID int64
	// Number counts the runs of the job, from 1.
	Number int
	// ClaimedAt is when the queue gave the job to the run. No other run of the job
	// has the same.
	ClaimedAt time.Time
}

// died tells that an earlier run of the same job began and never wrote an outcome:
// the queue counts a run before it starts it, and one that died before it began
// the attempt is taken off again.
func (r Run) died() bool { return r.Number > 1 }

// Deliver makes the attempt that a job asks for, and writes down how it ended
// and what follows; the job ends with that, in the same transaction. Whether the
// partner got the request of a run that died cannot be known, so it counts, as
// unknown, and is not repeated under the same number.
//
// An error that is ErrNotSent means that the job should run again as if it had
// not begun. After any other error the outcome of a request could not be
// written, and the next run must say that this one died. A partner's refusal is
// an outcome, not an error.
//
// When ctx ends during the request, what is known by then is still written.
func (s *Service) Deliver(ctx context.Context, job Args, run Run) error {
	task, due, err := s.take(ctx, job, run)
	if err != nil || !due {
		return notSent(err)
	}
	ctx = inTraceOf(ctx, task)
	made := &madeAttempt{task: task, run: run, number: job.Number}
	if task.died(run) {
		made.started, made.attempt = orElse(task.BegunAt, s.DB.Now()), unknownAttempt()
		return s.record(ctx, made)
	}
	request, err := s.request(task, job.Number)
	if err != nil {
		return notSent(s.stop(ctx, task, err))
	}
	if may, err := s.pace(ctx, task); err != nil || !may {
		return notSent(err)
	}
	lane := s.limiter.of(task.Subscription)
	place := lane.enter(ctx)
	if place == nil {
		return notSent(s.hold(ctx, task, lane))
	}
	if may, err := s.begin(ctx, place, made); err != nil || !may {
		return notSent(err)
	}
	endTurn := s.limiter.turn(ctx, lane, s.Gate)
	made.started = s.DB.Now()
	ctx, span := startSpan(ctx, task, job.Number)
	if s.SendTraceparent && span.IsRecording() {
		request.Traceparent = traceparent(ctx)
	}
	made.attempt = s.send(ctx, place, made.asked, request, endTurn)
	endSpan(span, made.attempt)
	if room := lane.room(); room > 0 {
		var refilling sync.WaitGroup
		refilling.Go(func() { s.refill(ctx, task.Subscription, lane, room) })
		defer refilling.Wait()
	}
	if made.attempt.Class == sender.ClassUnknown && !made.attempt.Sent {
		err := fmt.Errorf("delivering %s: %w", task.UID, cmp.Or(context.Cause(ctx), errLate))
		return notSent(errors.Join(err, s.unbegin(ctx, made)))
	}
	return s.record(ctx, made)
}

// orElse is what value points to, or other without it.
func orElse[T any](value *T, other T) T {
	if value == nil {
		return other
	}
	return *value
}

// send makes the request in a place of the lane that was entered, unless it is too late
// for it, and gives the place and the turn back whatever happens.
func (s *Service) send(
	ctx context.Context, place *slot, asked time.Time, request sender.Request, endTurn func(),
) (attempt sender.Attempt) {
	defer endTurn()
	began := time.Now()
	if began.Sub(asked) > beginLife {
		place.cede()
		return sender.Attempt{Class: sender.ClassUnknown}
	}
	defer func() { place.leave(time.Since(began), attempt.Class == sender.ClassTimeout) }()
	return s.Sender.Send(ctx, request)
}

// refill releases held deliveries while this attempt is written. What fails here
// is made good by ReleaseIdle.
func (s *Service) refill(ctx context.Context, uid uuid.UUID, lane *endpoint, room int) {
	if !lane.refilling.CompareAndSwap(false, true) {
		return
	}
	defer lane.refilling.Store(false)
	if err := s.release(ctx, uid, lane, room); err != nil && ctx.Err() == nil {
		slog.ErrorContext(ctx, "refilling a lane", "subscription", uid, "error", err)
	}
}

// notSent marks an error as ErrNotSent; nil stays nil.
func notSent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNotSent, err)
}

// take loads what the attempt needs. It is not due when it was made already, or
// another run is at it, when the delivery has ended, or when the subscription is
// paused, stopped or deleted; then the delivery is parked or cancelled.
func (s *Service) take(ctx context.Context, job Args, run Run) (assignment, bool, error) {
	for {
		task, found, err := s.load(ctx, job)
		if err != nil {
			return assignment{}, false, fmt.Errorf("loading delivery %s: %w", job.DeliveryUID, err)
		}
		switch {
		case !found: // gone with an old partition
			return assignment{}, false, nil
		case task.State.IsFinal(), task.AttemptCount != job.Number-1, task.InHand:
			return assignment{}, false, nil
		case task.died(run):
			return task, true, nil
		case task.SubscriptionState == subscription.StateDeleted, len(task.Body) == 0:
			// Retention keeps the body of an event that is still to be sent; should it
			// ever be gone, nothing is sent in its place.
			return assignment{}, false, s.cancel(ctx, task)
		case task.SubscriptionState != subscription.StatePaused && !task.Stopped:
			return task, true, nil
		}
		parked, err := s.park(ctx, task)
		if err != nil || parked {
			return assignment{}, false, err
		}
		// The subscription was resumed or deleted meanwhile: look again.
	}
}

// assignment is what one attempt needs to know.
type assignment struct {
	UID               uuid.UUID          `db:"delivery_uid"`
	CreatedAt         time.Time          `db:"created_at"`
	State             State              `db:"state"`
	AttemptCount      int                `db:"attempt_count"`
	Due               *time.Time         `db:"next_attempt_at"`
	Event             lending.EventKind  `db:"event"`
	Test              bool               `db:"test"`
	Body              []byte             `db:"body"`
	Traceparent       *string            `db:"traceparent"`
	Application       uuid.NullUUID      `db:"application_uid"`
	Subscription      uuid.UUID          `db:"subscription_uid"`
	SubscriptionState subscription.State `db:"subscription_state"`
	Stopped           bool               `db:"stopped"`
	URL               string             `db:"url"`
	Auth              sender.Auth        `db:"auth"`
	SecretSealed      *string            `db:"secret_sealed"`
	PreviousSealed    *string            `db:"previous_sealed"`
	PreviousUntil     *time.Time         `db:"previous_until"`
	HeadersSealed     *string            `db:"headers_sealed"`
	Version           int                `db:"version"`
	Rate              *int               `db:"rate"`
	SlotAt            *time.Time         `db:"slot_at"`
	// BegunAt is when another run began the attempt, nil if none is known to have, and
	// InHand whether that still has its job.
	BegunAt *time.Time `db:"begun_at"`
	InHand  bool       `db:"in_hand"`
}

// died tells that another run began the attempt and does not live to record it.
func (a assignment) died(run Run) bool { return run.died() || a.BegunAt != nil }

// loadAssignments are the deliveries of jobs. Each is looked up by its key: a limit
// of one leaves the planner no other way, whatever it believes of the tables.
const loadAssignments = `
	SELECT d.delivery_uid,
	       d.created_at,
	       d.state,
	       d.attempt_count,
	       d.next_attempt_at,
	       d.event,
	       d.test,
	       e.body,
	       e.traceparent,
	       d.application_uid,
	       s.subscription_uid,
	       s.state AS subscription_state,
	       s.stopped_at IS NOT NULL AS stopped,
	       s.url,
	       s.auth,
	       s.secret_sealed,
	       s.previous_sealed,
	       s.previous_until,
	       s.headers_sealed,
	       s.version,
	       s.rate,
	       d.slot_at,
	       b.started_at AS begun_at,
	       other.id IS NOT NULL AS in_hand
	  FROM unnest($1::uuid[], $2::timestamptz[]) AS job (delivery_uid, created_at)
	 CROSS JOIN LATERAL (
	           SELECT delivery_uid, created_at, state, attempt_count, next_attempt_at, event,
	                  test, application_uid, subscription_uid, event_uid, event_at, slot_at
	             FROM deliveries
	            WHERE delivery_uid = job.delivery_uid
	              AND created_at = job.created_at
	            LIMIT 1) AS d
	 CROSS JOIN LATERAL (
	           SELECT body, traceparent
	             FROM events
	            WHERE event_uid = d.event_uid
	              AND occurred_at = d.event_at
	            LIMIT 1) AS e
	  JOIN subscriptions s USING (subscription_uid)
	  LEFT JOIN begun_attempts b
	    ON b.delivery_uid = d.delivery_uid
	   AND b.number = d.attempt_count + 1
	  LEFT JOIN river_job other
	    ON other.id = b.job_id
	   AND other.attempted_at = b.claimed_at
	   AND other.state = 'running'`

// load returns the assignment of a job as it is now, and false without one.
func (s *Service) load(ctx context.Context, job Args) (assignment, bool, error) {
	found, err := s.loads.do(ctx, batch[Args, *assignment]{
		db:    s.DB,
		calls: s.Gate,
		key:   func(job Args) string { return string(job.DeliveryUID[:]) },
		run:   loadMany,
	}, job)
	if err != nil || found == nil {
		return assignment{}, false, err
	}
	return *found, true, nil
}

// loadMany returns an assignment for each job, nil where there is none.
func loadMany(ctx context.Context, on *sqlx.DB, jobs []Args) ([]*assignment, error) {
	var uids, times arrayLiteral
	for _, job := range jobs {
		uids.addUID(job.DeliveryUID)
		times.addTime(job.CreatedAt)
	}
	var tasks []assignment
	err := on.SelectContext(ctx, &tasks, loadAssignments, uids.String(), times.String())
	if err != nil {
		return nil, err
	}
	byUID := make(map[uuid.UUID]*assignment, len(tasks))
	for i := range tasks {
		byUID[tasks[i].UID] = &tasks[i]
	}
	found := make([]*assignment, len(jobs))
	for i, job := range jobs {
		found[i] = byUID[job.DeliveryUID]
	}
	return found, nil
}

// request builds the attempt from the subscription as it is now. Its errors are all
// of *unopenedError.
func (s *Service) request(task assignment, number int) (sender.Request, error) {
	request := sender.Request{
		URL:      task.URL,
		Event:    string(task.Event),
		Delivery: task.UID.String(),
		Number:   number,
		Test:     task.Test,
		Auth:     task.Auth,
		Body:     task.Body,
	}
	var err error
	if request.Headers, err = s.Subscriptions.OpenHeaders(task.Subscription, task.HeadersSealed); err != nil {
		return sender.Request{}, err
	}
	if request.Secret, err = s.Subscriptions.OpenSecret(task.Subscription, task.SecretSealed); err != nil {
		return sender.Request{}, err
	}
	if task.PreviousUntil != nil && s.DB.Now().Before(*task.PreviousUntil) {
		request.Previous, err = s.Subscriptions.OpenSecret(task.Subscription, task.PreviousSealed)
	}
	return request, err
}

// park sets a delivery of a paused or stopped subscription aside until that goes on.
// The share lock on the subscription makes a simultaneous resumption either come
// first, and then nothing is parked, or wait and find the delivery parked.
func (s *Service) park(ctx context.Context, task assignment) (bool, error) {
	result, err := s.DB.ExecContext(ctx, `
		WITH paused AS (
			SELECT subscription_uid
			  FROM subscriptions
			 WHERE subscription_uid = $3
			   AND (state = 'paused' OR stopped_at IS NOT NULL)
			   FOR SHARE
		)
		UPDATE deliveries
		   SET parked = true,
		       queued = false
		 WHERE delivery_uid = $1
		   AND created_at = $2
		   AND state IN ('pending', 'retrying')
		   AND EXISTS (SELECT 1 FROM paused)`, task.UID, task.CreatedAt, task.Subscription)
	if err != nil {
		return false, fmt.Errorf("parking delivery %s: %w", task.UID, err)
	}
	count, err := result.RowsAffected()
	return count > 0, err
}

// cancel ends a delivery that was added while its subscription was deleted.
func (s *Service) cancel(ctx context.Context, task assignment) error {
	_, err := s.DB.ExecContext(ctx, `
		UPDATE deliveries
		   SET `+subscription.Cancelled+`
		 WHERE delivery_uid = $1
		   AND created_at = $3
		   AND state IN ('pending', 'retrying')`, task.UID, s.DB.Now(), task.CreatedAt)
	if err != nil {
		return fmt.Errorf("cancelling delivery %s: %w", task.UID, err)
	}
	return nil
}

// unknownAttempt stands for an attempt whose process died before it could say
// how the request ended.
func unknownAttempt() sender.Attempt {
	return sender.Attempt{
		Class: sender.ClassUnknown,
		Error: "the process stopped during the attempt; whether the request arrived is not known",
	}
}

// stop keeps a subscription from being sent to because its secret or its headers do
// not open, says so once, and sets the delivery aside. What falls due waits until
// they are given anew or the key is back, see [Service.Reopen]. The configuration may
// have changed since the task was loaded: then nothing is stopped, and why returned.
func (s *Service) stop(ctx context.Context, task assignment, why error) error {
	result, err := s.DB.ExecContext(ctx, `
		UPDATE subscriptions
		   SET stopped_at = $3
		 WHERE subscription_uid = $1
		   AND version = $2
		   AND stopped_at IS NULL`, task.Subscription, task.Version, s.DB.Now().UTC())
	if err != nil {
		return fmt.Errorf("stopping subscription %s: %w", task.Subscription, err)
	}
	count, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if count > 0 {
		slog.ErrorContext(ctx, "a subscription cannot be sent to",
			"subscription", task.Subscription, "error", why)
	}
	if parked, err := s.park(ctx, task); err != nil || parked {
		return err
	}
	return why
}
