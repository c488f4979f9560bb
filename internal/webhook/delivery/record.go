package delivery

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/sender"
)

// outcome is what an attempt means for its delivery.
type outcome struct {
	state State
	// next is when the next attempt is due, nil without one.
	next *time.Time
	// finished is when the delivery ended, nil while it goes on.
	finished *time.Time
}

func (s *Service) outcome(number int, attempt sender.Attempt, now time.Time) outcome {
	if attempt.Delivered() {
		return outcome{state: StateDelivered, finished: &now}
	}
	due, more := s.Retries.Next(number, now, attempt)
	if !more {
		return outcome{state: StateFailed, finished: &now}
	}
	if attempt.Class == sender.ClassUnknown {
		// The time that the attempt was lost for has been delay enough.
		due = now
	}
	return outcome{state: StateRetrying, next: &due}
}

// Attempts and the new states of their deliveries are written by one statement.
//
// A delivery moves only if this is its next attempt, so that a worker that
// was frozen, taken for dead and woken again can neither undo nor repeat what
// another one decided; only its late success still counts, since the partner
// has the event. The same holds for a success after the subscription was
// deleted. Every attempt that was made is counted. No delivery may be in it
// twice.
//
// The job of the run goes: all that it was for is in the attempt, and to change
// its state would cost half of what the attempt costs.
//
// Rows come in the order of their keys, so that two processes which meet in the
// same rows wait for each other and do not lock each other out. The last two
// parameters bound the times of the deliveries, which spares partitions. The state
// is asked for in a CASE, which the planner does not hold against every partial
// index of every partition: that took most of the planning.
//
//nolint:unqueryvet // what is unnested has the columns that are named with it
const (
	// recordNew is for attempts that nobody has written: it fails on others.
	recordNew = insertAttempts + moveDeliveries
	// recordAny is for any. A late outcome replaces the unknown one in the log only
	// if the endpoint answered: whatever else a woken worker believes, that its time
	// ran out or its connection broke, came of its sleep and tells nothing of the
	// endpoint.
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
		              $28::integer[])
		    AS m (delivery_uid, created_at, number, started_at, version, url, http_status,
		          error_class, error, note, address, dns_us, connect_us, tls_us, first_byte_us,
		          duration_us, request_headers, response_headers, response_body, state,
		          next_attempt_at, finished_at, protocol, reused, tls_version,
		          certificate_expires, job_id, run)
	), attempt AS (
		INSERT INTO attempts AS a (
		       delivery_uid, delivery_created_at, number, started_at, subscription_version, url,
		       http_status, error_class, error, note, address, dns_us, connect_us, tls_us,
		       first_byte_us, duration_us, request_headers, response_headers, response_body,
		       protocol, reused, tls_version, certificate_expires)
		SELECT delivery_uid, created_at, number, started_at, version, url, http_status,
		       error_class, error, note, address, dns_us, connect_us, tls_us, first_byte_us,
		       duration_us, request_headers, response_headers, response_body, protocol, reused,
		       tls_version, certificate_expires
		  FROM made
`
	replaceUnknown = `
		ON CONFLICT (delivery_uid, delivery_created_at, number) DO UPDATE
		   SET started_at = excluded.started_at,
		       subscription_version = excluded.subscription_version,
		       url = excluded.url,
		       http_status = excluded.http_status,
		       error_class = excluded.error_class,
		       error = excluded.error,
		       note = excluded.note,
		       address = excluded.address,
		       dns_us = excluded.dns_us,
		       connect_us = excluded.connect_us,
		       tls_us = excluded.tls_us,
		       first_byte_us = excluded.first_byte_us,
		       duration_us = excluded.duration_us,
		       request_headers = excluded.request_headers,
		       response_headers = excluded.response_headers,
		       response_body = excluded.response_body,
		       protocol = excluded.protocol,
		       reused = excluded.reused,
		       tls_version = excluded.tls_version,
		       certificate_expires = excluded.certificate_expires
		 WHERE a.error_class = 'unknown' AND excluded.http_status IS NOT NULL
`
	moveDeliveries = `
	), moved AS (
		UPDATE deliveries d
		   SET state = m.state,
		       attempt_count = greatest(d.attempt_count, m.number),
		       next_attempt_at = m.next_attempt_at,
		       finished_at = m.finished_at,
		       queued = false,
		       parked = false,
		       held = false,
		       slot_at = NULL,
		       last_http_status = m.http_status,
		       last_error_class = m.error_class,
		       last_duration_us = m.duration_us
		  FROM made m
		 WHERE d.delivery_uid = m.delivery_uid
		   AND d.created_at = m.created_at
		   AND d.created_at BETWEEN $29 AND $30
		   AND CASE
		           WHEN d.state IN ('pending', 'retrying') AND d.attempt_count = m.number - 1
		               THEN true
		           ELSE m.state = 'delivered' AND d.state <> 'delivered'
		       END
		RETURNING d.delivery_uid
	), done AS (
		DELETE FROM river_job j
		 USING made m
		 WHERE j.id = m.job_id
		   AND j.attempt = m.run
	), ended AS (
		DELETE FROM begun_attempts b
		 USING made m
		 WHERE b.delivery_uid = m.delivery_uid
		   AND b.number = m.number
	)
	SELECT delivery_uid FROM moved`
)

// countAttempts counts attempts that moved nothing. It is a statement of its own,
// because it hardly ever has anything to do.
const countAttempts = `
	UPDATE deliveries d
	   SET attempt_count = m.number
	  FROM unnest($1::uuid[], $2::timestamptz[], $3::integer[])
	    AS m (delivery_uid, created_at, number)
	 WHERE d.delivery_uid = m.delivery_uid
	   AND d.created_at = m.created_at
	   AND d.attempt_count < m.number`

// madeAttempt is an attempt and what follows from it, ready to be written.
type madeAttempt struct {
	task    assignment
	run     Run
	number  int
	started time.Time
	attempt sender.Attempt
	params  attemptParams
	outcome outcome
	// asked is when it was asked whether it may begin, by this process's own clock.
	asked time.Time
}

// recordMany writes attempts of different deliveries and tells of each whether its
// delivery moved. Several must be new ones, which nearly all are; where one is not,
// each has to come alone.
func recordMany(ctx context.Context, on *sqlx.DB, rows []*madeAttempt) ([]bool, error) {
	statement := recordNew
	if len(rows) == 1 {
		statement = recordAny
	}
	columns := newAttemptColumns(inOrder(rows))
	var uids []uuid.UUID
	err := inTx(ctx, on, func(tx *sqlx.Tx) error {
		uids = nil
		err := tx.SelectContext(ctx, &uids, statement, append(columns.args(), span(rows)...)...)
		if err != nil || len(uids) == len(rows) {
			return err
		}
		_, err = tx.ExecContext(ctx, countAttempts, columns.args()[:3]...)
		return err
	})
	if err != nil {
		return nil, err
	}
	found := make(map[uuid.UUID]bool, len(uids))
	for _, uid := range uids {
		found[uid] = true
	}
	moved := make([]bool, len(rows))
	for i, row := range rows {
		moved[i] = found[row.task.UID]
	}
	return moved, nil
}

// inOrder sorts attempts by their deliveries, the order in which these are locked.
func inOrder(rows []*madeAttempt) []*madeAttempt {
	return slices.SortedFunc(slices.Values(rows), func(a, b *madeAttempt) int {
		return bytes.Compare(a.task.UID[:], b.task.UID[:])
	})
}

// span is when the first and the last of the deliveries were made.
func span(rows []*madeAttempt) []any {
	first, last := rows[0].task.CreatedAt, rows[0].task.CreatedAt
	for _, row := range rows[1:] {
		if at := row.task.CreatedAt; at.Before(first) {
			first = at
		} else if at.After(last) {
			last = at
		}
	}
	return []any{first, last}
}

// inTx runs use in a transaction of its own.
func inTx(ctx context.Context, on *sqlx.DB, use func(tx *sqlx.Tx) error) error {
	tx, err := on.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := use(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// record writes an attempt and what follows from it, in company if there is any
// and also when ctx has ended. It returns when that is committed, which may take as
// long as the database is away: the worker keeps its place, and with it the job.
func (s *Service) record(ctx context.Context, row *madeAttempt) error {
	ctx = context.WithoutCancel(ctx)
	task, attempt := row.task, row.attempt
	row.params = newAttemptParams(attempt)
	row.outcome = s.outcome(row.number, attempt, s.DB.Now().UTC())
	var moved bool
	err := postgres.Persist(ctx, "the outcome of an attempt", func(ctx context.Context) (err error) {
		moved, err = s.records.do(ctx, batch[*madeAttempt, bool]{
			db:    s.DB,
			calls: s.Gate,
			key:   func(row *madeAttempt) string { return string(row.task.UID[:]) },
			run:   recordMany,
		}, row)
		return err
	})
	if err != nil {
		return fmt.Errorf("recording attempt %d of delivery %s: %w", row.number, task.UID, err)
	}
	s.observe(row)
	slog.InfoContext(ctx, "webhook attempt",
		"delivery", task.UID,
		"subscription", task.Subscription,
		"event", task.Event,
		"application", task.Application.UUID,
		"trace_id", traceID(ctx),
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

// observe tells whoever counts attempts of one.
func (s *Service) observe(row *madeAttempt) {
	if s.Observe == nil {
		return
	}
	observation := Observation{
		Class: row.attempt.Class, State: row.outcome.state, Took: row.attempt.Timings.Total,
		Test: row.task.Test,
	}
	if row.task.Due != nil {
		observation.Lag = max(row.started.Sub(*row.task.Due), 0)
	}
	s.Observe(observation)
}
