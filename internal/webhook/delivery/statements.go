package delivery

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/lending"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// assignment is what one attempt needs.
type assignment struct {
	UID               uuid.UUID           `db:"delivery_uid"`
	CreatedAt         time.Time           `db:"created_at"`
	State             State               `db:"state"`
	AttemptCount      int                 `db:"attempt_count"`
	Due               *time.Time          `db:"next_attempt_at"`
	Event             lending.EventKind   `db:"event"`
	EventUID          uuid.UUID           `db:"event_uid"`
	Merchant          uuid.NullUUID       `db:"merchant_uid"`
	Sequence          *int64              `db:"sequence"`
	Subject           *string             `db:"subject"`
	Reference         *string             `db:"reference"`
	Test              bool                `db:"test"`
	Body              []byte              `db:"body"`
	Traceparent       *string             `db:"traceparent"`
	Application       uuid.NullUUID       `db:"application_uid"`
	Subscription      uuid.UUID           `db:"subscription_uid"`
	SubscriptionState subscription.State  `db:"subscription_state"`
	Stopped           bool                `db:"stopped"`
	URL               string              `db:"url"`
	Auth              sender.Auth         `db:"auth"`
	SecretSealed      *string             `db:"secret_sealed"`
	PreviousSealed    *string             `db:"previous_sealed"`
	PreviousUntil     *time.Time          `db:"previous_until"`
	HeadersSealed     *string             `db:"headers_sealed"`
	Version           int                 `db:"version"`
	Rate              *int                `db:"rate"`
	Retry             subscription.Delays `db:"retry"`
	Standard          bool                `db:"standard"`
	SlotAt            *time.Time          `db:"slot_at"`
	// BegunAt is when another run began the attempt, nil if none is known to have begun it,
	// and InHand whether that run still has its job.
	BegunAt *time.Time `db:"begun_at"`
	InHand  bool       `db:"in_hand"`
	// Faulty means that a fault may have to be injected into deliveries of the subscription,
	// see [Faults].
	Faulty bool `db:"faulty"`
}

// Statements for many rows limit the unnested input to its own length. With that limit the
// planner expects one row and looks each up by its key. Expecting more, it would rather scan
// a whole table or partition that it believes to be small and search the input for each row.

// loadAssignments loads the deliveries of jobs. Each is looked up by its key: a limit of
// one leaves the planner no other way, whatever it believes about the tables. The state
// of the other job is tested in a CASE, or the planner would rather search all running
// jobs, including all that ever ran since the oldest open transaction began.
const loadAssignments = `
	SELECT d.delivery_uid, d.created_at, d.state, d.attempt_count, d.next_attempt_at, d.event,
	       d.test, d.event_uid, e.merchant_uid, e.sequence, e.subject, e.reference, e.body,
	       e.traceparent, d.application_uid, s.subscription_uid,
	       s.state AS subscription_state, s.stopped_at IS NOT NULL AS stopped, s.url, s.auth,
	       s.secret_sealed, s.previous_sealed, s.previous_until, s.headers_sealed, s.version,
	       s.rate, s.retry, s.standard, d.slot_at, b.started_at AS begun_at,
	       other.id IS NOT NULL AS in_hand,
	       EXISTS (SELECT FROM sandbox_faults f
	                WHERE f.subscription_uid = d.subscription_uid AND f.remaining > 0)
	       OR EXISTS (SELECT FROM sandbox_fault_uses u WHERE u.delivery_uid = d.delivery_uid)
	       OR EXISTS (SELECT FROM sandbox_fault_uses u
	                   WHERE u.subscription_uid = d.subscription_uid AND u.fault = 'reorder')
	          AS faulty
	  FROM (SELECT delivery_uid, created_at
	          FROM unnest($1::uuid[], $2::timestamptz[]) AS j (delivery_uid, created_at)
	         LIMIT cardinality($1::uuid[])) AS job
	 CROSS JOIN LATERAL (
	           SELECT delivery_uid, created_at, state, attempt_count, next_attempt_at, event,
	                  test, application_uid, subscription_uid, event_uid, event_at, slot_at
	             FROM deliveries
	            WHERE delivery_uid = job.delivery_uid
	              AND created_at = job.created_at
	            LIMIT 1) AS d
	 CROSS JOIN LATERAL (
	           SELECT merchant_uid, sequence, subject, reference, body, traceparent
	             FROM events
	            WHERE event_uid = d.event_uid
	              AND occurred_at = d.event_at
	            LIMIT 1) AS e
	  JOIN subscriptions s USING (subscription_uid)
	  LEFT JOIN LATERAL (
	           SELECT job_id, claimed_at, started_at
	             FROM begun_attempts
	            WHERE delivery_uid = d.delivery_uid
	              AND number = d.attempt_count + 1
	            LIMIT 1) AS b ON true
	  LEFT JOIN LATERAL (
	           SELECT id
	             FROM river_job
	            WHERE id = b.job_id
	              AND CASE WHEN state = 'running' THEN attempted_at = b.claimed_at ELSE false END
	            LIMIT 1) AS other ON true`

// loadMany returns an assignment for each job, nil where the delivery is gone.
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

// madeAttempt is an attempt and what follows from it, ready to be recorded.
type madeAttempt struct {
	task    assignment
	run     Run
	number  int
	started time.Time
	attempt sender.Attempt
	outcome outcome
	// fault is the injected fault, empty for none.
	fault Fault
	// requestHeaders and responseHeaders are the attempt's headers as JSON.
	requestHeaders, responseHeaders string
	// asked is when the attempt asked to begin, by this process's own clock.
	asked time.Time
}

// noteBegun notes attempts and returns those that may go ahead. An attempt may not if
// another run has its job, because this run was taken for dead. Nor may it if its
// delivery has two jobs by mistake and the run of the other one has noted the attempt
// first, or has made it meanwhile: the lock shows the delivery as it is now.
//
//nolint:unqueryvet // what is unnested has the columns that are named with it
const noteBegun = `
	WITH wanted AS MATERIALIZED (
		SELECT *
		  FROM unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::integer[],
		              $5::timestamptz[], $6::integer[], $7::timestamptz[])
		    AS w (delivery_uid, created_at, job_id, run, claimed_at, number, started_at)
		 LIMIT cardinality($1::uuid[])
	)
	INSERT INTO begun_attempts AS b (
	       delivery_uid, created_at, number, job_id, claimed_at, started_at)
	SELECT w.delivery_uid, w.created_at, w.number, w.job_id, w.claimed_at, w.started_at
	  FROM wanted w
	 CROSS JOIN LATERAL (
	           SELECT 1
	             FROM deliveries
	            WHERE delivery_uid = w.delivery_uid
	              AND created_at = w.created_at
	              AND CASE WHEN state IN ('pending', 'retrying')
	                       THEN attempt_count = w.number - 1 ELSE false END
	            LIMIT 1
	              FOR SHARE) AS d
	  LEFT JOIN LATERAL (
	           SELECT state, attempt, attempted_at
	             FROM river_job
	            WHERE id = w.job_id
	            LIMIT 1) AS j ON true
	 WHERE w.job_id = 0
	    OR j.state = 'running' AND j.attempt = w.run AND j.attempted_at = w.claimed_at
	ON CONFLICT (delivery_uid) DO UPDATE
	   SET created_at = excluded.created_at, number = excluded.number, job_id = excluded.job_id,
	       claimed_at = excluded.claimed_at, started_at = excluded.started_at
	 WHERE b.number < excluded.number
	    OR b.job_id = excluded.job_id AND b.claimed_at = excluded.claimed_at
	RETURNING delivery_uid`

func beginMany(ctx context.Context, on *sqlx.DB, rows []*madeAttempt) ([]bool, error) {
	var uids []uuid.UUID
	if err := on.SelectContext(ctx, &uids, noteBegun, runColumns(rows)...); err != nil {
		return nil, err
	}
	return among(uids, rows), nil
}

// isOpen tests whether delivery d, which is looked up by its key, is open. Without the
// CASE the planner would scan the open deliveries, which it believes to be few, but their
// indexes still contain all that were open since the oldest open transaction began.
const isOpen = `CASE WHEN d.state IN ('pending', 'retrying') THEN true ELSE false END`

// endJobs deletes the jobs of attempts, unless another run has the job: one of the same
// number but claimed later, where a job was handed back for a process that was frozen, or
// one of a different job, where a server that was promoted without the last commits assigned
// its key again. Jobs are looked up first and deleted by ctid: the queue is empty most of
// the time, so the planner would rather read all of it and search the attempts for each job.
const endJobs = `
		DELETE FROM river_job j
		 USING (SELECT m.job_id, m.run, m.claimed_at, at.place
		          FROM made m
		         CROSS JOIN LATERAL (
		                   SELECT ctid AS place
		                     FROM river_job
		                    WHERE id = m.job_id
		                    LIMIT 1) AS at) AS found
		 WHERE j.ctid = found.place
		   AND j.id = found.job_id
		   AND j.attempt = found.run
		   AND j.attempted_at = found.claimed_at`

// backpressureDeliveries holds deliveries back and deletes their jobs. A delivery whose
// job another run has stays queued.
const backpressureDeliveries = `
	WITH made AS MATERIALIZED (
		SELECT delivery_uid, created_at, job_id, run, claimed_at
		  FROM unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::integer[], $5::timestamptz[])
		    AS m (delivery_uid, created_at, job_id, run, claimed_at)
		 LIMIT cardinality($1::uuid[])
	), done AS (` + endJobs + `
		RETURNING j.id
	)
	UPDATE deliveries d
	   SET held = true,
	       queued = false
	  FROM made m
	 WHERE d.delivery_uid = m.delivery_uid
	   AND d.created_at = m.created_at
	   AND ` + isOpen + `
	   AND d.queued
	   AND (m.job_id = 0 OR m.job_id IN (SELECT id FROM done))`

func backpressureMany(ctx context.Context, on *sqlx.DB, rows []*madeAttempt) ([]struct{}, error) {
	_, err := on.ExecContext(ctx, backpressureDeliveries, runColumns(rows)[:5]...)
	return make([]struct{}, len(rows)), err
}

// Attempts and the new states of their deliveries are written by one statement.
//
// A delivery moves only if this is its next attempt, so that a worker that was frozen,
// taken for dead and woken again can neither undo nor repeat what another one decided;
// only its late success still counts, since the partner has the event. The same holds for
// a success after the subscription was deleted. Every attempt that was made is counted.
// No delivery may appear twice in one statement.
//
// The job of the run is deleted: the attempt holds everything the job was for, and
// changing the job's state would cost half of what the attempt costs.
//
// Rows come in the order of their keys, so that two processes that update the same rows
// wait for each other and do not deadlock. The state is tested in a CASE, which the
// planner does not check against every partial index of every partition: that took most
// of the planning time. Partitions are not pruned by bounds on the creation times of all
// deliveries: the planner would rather read everything between the bounds from a small
// partition and search the attempts for each row.
//
//nolint:unqueryvet // what is unnested has the columns that are named with it
const (
	// recordNew is for attempts that are not in the log yet: it fails on others.
	recordNew = insertAttempts + moveDeliveries
	// recordAny is for any attempt. A late outcome replaces the unknown one in the log only
	// if the endpoint answered: any other outcome of a worker that was frozen, such as a
	// timeout or a broken connection, was caused by its being frozen and shows nothing about
	// the endpoint.
	recordAny = insertAttempts + replaceUnknown + moveDeliveries

	insertAttempts = `
	WITH made AS MATERIALIZED (
		SELECT *
		  FROM unnest($1::uuid[], $2::timestamptz[], $3::integer[], $4::timestamptz[],
		              $5::integer[], $6::text[], $7::integer[], $8::text[], $9::text[],
		              $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[],
		              $15::bigint[], $16::bigint[], $17::jsonb[], $18::jsonb[], $19::bytea[],
		              $20::text[], $21::timestamptz[], $22::timestamptz[], $23::text[],
		              $24::boolean[], $25::text[], $26::timestamptz[], $27::bigint[],
		              $28::integer[], $29::text[], $30::timestamptz[])
		    AS m (delivery_uid, created_at, number, started_at, version, url, http_status,
		          error_class, error, note, address, dns_us, connect_us, tls_us, first_byte_us,
		          duration_us, request_headers, response_headers, response_body, state,
		          next_attempt_at, finished_at, protocol, reused, tls_version,
		          certificate_expires, job_id, run, cause, claimed_at)
		 LIMIT cardinality($1::uuid[])
	), attempt AS (
		INSERT INTO attempts AS a (
		       delivery_uid, delivery_created_at, number, started_at, subscription_version, url,
		       http_status, error_class, error, note, address, dns_us, connect_us, tls_us,
		       first_byte_us, duration_us, request_headers, response_headers, response_body,
		       protocol, reused, tls_version, certificate_expires, cause)
		SELECT delivery_uid, created_at, number, started_at, version, url, http_status,
		       error_class, error, note, address, dns_us, connect_us, tls_us, first_byte_us,
		       duration_us, request_headers, response_headers, response_body, protocol, reused,
		       tls_version, certificate_expires, cause
		  FROM made
`
	replaceUnknown = `
		ON CONFLICT (delivery_uid, delivery_created_at, number) DO UPDATE
		   SET started_at = excluded.started_at,
		       subscription_version = excluded.subscription_version, url = excluded.url,
		       http_status = excluded.http_status, error_class = excluded.error_class,
		       cause = excluded.cause, error = excluded.error, note = excluded.note,
		       address = excluded.address, dns_us = excluded.dns_us,
		       connect_us = excluded.connect_us, tls_us = excluded.tls_us,
		       first_byte_us = excluded.first_byte_us, duration_us = excluded.duration_us,
		       request_headers = excluded.request_headers,
		       response_headers = excluded.response_headers,
		       response_body = excluded.response_body, protocol = excluded.protocol,
		       reused = excluded.reused, tls_version = excluded.tls_version,
		       certificate_expires = excluded.certificate_expires
		 WHERE a.error_class = 'unknown' AND excluded.http_status IS NOT NULL
`
	moveDeliveries = `
	), moved AS (
		UPDATE deliveries d
		   SET state = m.state,
		       attempt_count = greatest(d.attempt_count, m.number),
		       next_attempt_at = m.next_attempt_at, finished_at = m.finished_at, queued = false,
		       parked = false, held = false, slot_at = NULL, last_http_status = m.http_status,
		       last_error_class = m.error_class, last_duration_us = m.duration_us
		  FROM made m
		 WHERE d.delivery_uid = m.delivery_uid
		   AND d.created_at = m.created_at
		   AND CASE
		           WHEN d.state IN ('pending', 'retrying') AND d.attempt_count = m.number - 1
		               THEN true
		           ELSE m.state = 'delivered' AND d.state <> 'delivered'
		       END
		RETURNING d.delivery_uid
	), done AS (` + endJobs + `
	), ended AS (
		DELETE FROM begun_attempts b
		 USING (SELECT m.delivery_uid, m.number, at.place
		          FROM made m
		         CROSS JOIN LATERAL (
		                   SELECT ctid AS place
		                     FROM begun_attempts
		                    WHERE delivery_uid = m.delivery_uid
		                    LIMIT 1) AS at) AS found
		 WHERE b.ctid = found.place
		   AND b.delivery_uid = found.delivery_uid
		   AND b.number = found.number
	)
	SELECT delivery_uid FROM moved`
)

// countAttempts counts attempts that moved no delivery. It is a separate statement
// because it hardly ever has anything to do.
const countAttempts = `
	UPDATE deliveries d
	   SET attempt_count = m.number
	  FROM unnest($1::uuid[], $2::timestamptz[], $3::integer[])
	    AS m (delivery_uid, created_at, number)
	 WHERE d.delivery_uid = m.delivery_uid
	   AND d.created_at = m.created_at
	   AND d.attempt_count < m.number`

// recordMany writes attempts of different deliveries and reports for each whether its
// delivery moved. If there are several, all must be new, as nearly all are; an attempt
// that is not new must be written alone.
func recordMany(ctx context.Context, on *sqlx.DB, rows []*madeAttempt) ([]bool, error) {
	statement := recordNew
	if len(rows) == 1 {
		statement = recordAny
	}
	args := attemptColumns(inOrder(rows))
	var uids []uuid.UUID
	err := inTx(ctx, on, func(tx *sqlx.Tx) error {
		uids = nil
		err := tx.SelectContext(ctx, &uids, statement, args...)
		if err != nil || len(uids) == len(rows) {
			return err
		}
		_, err = tx.ExecContext(ctx, countAttempts, args[:3]...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return among(uids, rows), nil
}

// among reports for each attempt whether its delivery is one of uids.
func among(uids []uuid.UUID, rows []*madeAttempt) []bool {
	found := make(map[uuid.UUID]bool, len(uids))
	for _, uid := range uids {
		found[uid] = true
	}
	are := make([]bool, len(rows))
	for i, row := range rows {
		are[i] = found[row.task.UID]
	}
	return are
}

// inOrder sorts attempts by delivery, the order in which the deliveries are locked.
func inOrder(rows []*madeAttempt) []*madeAttempt {
	return slices.SortedFunc(slices.Values(rows), func(a, b *madeAttempt) int {
		return bytes.Compare(a.task.UID[:], b.task.UID[:])
	})
}

func inTx(ctx context.Context, on *sqlx.DB, use func(tx *sqlx.Tx) error) error {
	tx, err := on.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := use(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Attempts at the same step with the same key never share a statement.
func (a Args) key() string         { return string(a.DeliveryUID[:]) }
func (a assignment) key() string   { return string(a.UID[:]) }
func (m *madeAttempt) key() string { return string(m.task.UID[:]) }
