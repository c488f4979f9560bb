package apilog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/postgres"
)

const (
	// bufferSize is how many entries can wait in memory, about 4 MB: some seconds at full load.
	bufferSize = 8192
	// batchSize bounds one statement.
	batchSize = 512
	// flushEvery is how long an entry waits for others to join its batch.
	flushEvery = 250 * time.Millisecond
	// samplesBuffer is how many entries of unauthenticated requests can wait. They have their own
	// buffer so that they never displace others.
	samplesBuffer = 512
	// storeTimeout bounds one attempt, storeTries how often a batch that the database refuses is
	// attempted. While the database is away a batch waits, at most storePause between two attempts,
	// and the buffer fills.
	storeTimeout = 5 * time.Second
	storeTries   = 3
	storePause   = 5 * time.Second
)

// Writer stores entries in the background.
type Writer struct {
	db      *postgres.DB
	entries chan Entry
	// samples holds some of the requests without valid credentials.
	samples chan Entry
	sample  sample
	dropped atomic.Int64
	stored  atomic.Int64
	// passed counts the unauthenticated requests that were not kept.
	passed atomic.Int64
	// timeout bounds one attempt.
	timeout time.Duration
	// covered is the time up to which this process knows that partitions exist.
	covered time.Time
}

// NewWriter returns a writer; nothing is stored until Run.
func NewWriter(db *postgres.DB) *Writer {
	return &Writer{
		db: db, entries: make(chan Entry, bufferSize), samples: make(chan Entry, samplesBuffer),
		timeout: storeTimeout,
	}
}

// Record keeps an entry; of unauthenticated requests only a few per address and minute. It never
// blocks: if the buffer is full, the entry is dropped and counted.
func (w *Writer) Record(entry Entry) {
	queue, lost := w.entries, &w.dropped
	if !entry.Authenticated {
		queue, lost = w.samples, &w.passed
		if !w.sample.takes(entry.Address, entry.At) {
			lost.Add(1)
			return
		}
	}
	select {
	case queue <- entry.clean():
	default:
		lost.Add(1)
	}
}

// Passed counts the unauthenticated requests that were not kept, for the metrics.
func (w *Writer) Passed() int64 { return w.passed.Load() }

// Dropped counts the entries that were lost, for the metrics.
func (w *Writer) Dropped() int64 { return w.dropped.Load() }

// Stored counts the entries that were written, for the metrics.
func (w *Writer) Stored() int64 { return w.stored.Load() }

// Run stores entries until ctx ends, and then those left in the buffer. End ctx only after the
// server has answered its last request.
func (w *Writer) Run(ctx context.Context) {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	batch := make([]Entry, 0, batchSize)
	for {
		var full bool
		select {
		case entry := <-w.entries:
			batch = append(batch, entry)
			full = len(batch) == batchSize
		case entry := <-w.samples:
			batch = append(batch, entry)
			full = len(batch) == batchSize
		case <-ticker.C:
			full = len(batch) > 0
		case <-ctx.Done():
			w.drain(context.WithoutCancel(ctx), batch)
			return
		}
		if full {
			w.flush(ctx, batch)
			batch = batch[:0]
		}
	}
}

// drain stores the remaining entries within the time of one batch. Nothing is recorded any more.
func (w *Writer) drain(ctx context.Context, batch []Entry) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	for _, left := range []chan Entry{w.entries, w.samples} {
		for len(left) > 0 {
			if batch = append(batch, <-left); len(batch) == batchSize {
				w.flush(ctx, batch)
				batch = batch[:0]
			}
		}
	}
	w.flush(ctx, batch)
}

// flush stores a batch, or gives up after some attempts and logs that. While the database is
// away it keeps trying until ctx ends.
func (w *Writer) flush(ctx context.Context, batch []Entry) {
	if len(batch) == 0 {
		return
	}
	var err error
	ending, pause := ctx.Done(), flushEvery
	for tries := 1; ; tries++ {
		if err = w.try(ctx, batch); err == nil {
			w.stored.Add(int64(len(batch)))
			return
		}
		// An attempt that timed out may not even have got a connection of the pool.
		isAway := postgres.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded)
		if tries >= storeTries && (!isAway || ending == nil) ||
			errors.Is(ctx.Err(), context.DeadlineExceeded) {
			break
		}
		if isAway {
			select {
			case <-ending:
				ending = nil // from here on storeTries bounds the attempts
			case <-time.After(pause):
				pause = min(2*pause, storePause)
			}
		}
	}
	w.dropped.Add(int64(len(batch)))
	slog.ErrorContext(ctx, "storing API requests", "lost", len(batch), "error", err)
}

func (w *Writer) try(ctx context.Context, batch []Entry) error {
	// The end of the process does not cancel a batch; the deadline does.
	limit := w.timeout
	if until, ends := ctx.Deadline(); ends {
		limit = min(limit, time.Until(until))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	last := batch[len(batch)-1].At.UTC()
	for day := batch[0].At.UTC(); !last.Before(w.covered); { // once a day
		if _, err := w.db.MakeAhead(ctx, days, day); err != nil {
			return errors.Join(err, ctx.Err())
		}
		w.covered = day.Truncate(24*time.Hour).AddDate(0, 0, 1)
		day = w.covered
	}
	if err := store(ctx, w.db, batch); err != nil {
		// For a statement that timed out, the database reports only that it was cancelled.
		return errors.Join(err, ctx.Err())
	}
	return nil
}

// days partitions the log by day.
var days = postgres.Partitioning{
	Tables: []string{"api_requests"}, Unit: "day", Format: `"_y"YYYY"m"MM"d"DD`,
	Make: `SELECT drawbridge_make_request_partitions($1, $2)`, Ahead: 3,
}

// MakePartitions makes the daily partitions from today on and returns how many it made.
func (s *Service) MakePartitions(ctx context.Context) (int, error) {
	return s.DB.MakeAhead(ctx, days, s.DB.Now())
}

// store writes a batch and adds it to the traffic of its hours, in one statement. Entries that
// are already in the log are not counted again. Hours are updated in a fixed order, so that
// processes cannot deadlock.
func store(ctx context.Context, db *postgres.DB, batch []Entry) error {
	entries, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("writing API requests down: %w", err)
	}
	_, err = db.ExecContext(ctx, `
		WITH entry AS (
			INSERT INTO api_requests (request_uid, at, request_id, method, route, path, client_id,
			                          authenticated, partner_uid, merchant_uid, application_uid,
			                          status, error_code, error_fields, idempotency_key, replayed,
			                          duration_us, bytes_in, bytes_out, address, user_agent)
			SELECT "UID", "At", "RequestID", "Method", "Route", "Path", nullif("ClientID", ''),
			       "Authenticated", nullif("PartnerUID", $2), nullif("MerchantUID", $2),
			       nullif("ApplicationUID", $2), "Status", nullif("ErrorCode", ''),
			       coalesce("ErrorFields", '{}'), nullif("IdempotencyKey", ''), "Replayed",
			       "Duration" / 1000, "BytesIn", "BytesOut", "Address", "UserAgent"
			  FROM json_to_recordset($1) AS entry (
			       "UID" uuid, "At" timestamptz, "RequestID" text, "Method" text, "Route" text,
			       "Path" text, "ClientID" text, "Authenticated" boolean, "PartnerUID" uuid,
			       "MerchantUID" uuid, "ApplicationUID" uuid, "Status" integer, "ErrorCode" text,
			       "ErrorFields" text[], "IdempotencyKey" text, "Replayed" boolean,
			       "Duration" bigint, "BytesIn" bigint, "BytesOut" bigint, "Address" text,
			       "UserAgent" text)
			ON CONFLICT DO NOTHING
			RETURNING at, client_id, authenticated, merchant_uid, status, duration_us
		)
		INSERT INTO api_traffic AS t (hour, client_id, merchant_uid, requests, refused, failed,
		                              duration_us)
		SELECT date_trunc('hour', at, 'UTC'), client_id, coalesce(merchant_uid, $2), count(*),
		       count(*) FILTER (WHERE status BETWEEN 400 AND 499),
		       count(*) FILTER (WHERE status >= 500), sum(duration_us)
		  FROM entry
		 WHERE authenticated
		 GROUP BY 1, 2, 3
		 ORDER BY 2, 1, 3
		ON CONFLICT (client_id, hour, merchant_uid) DO UPDATE
		   SET requests = t.requests + excluded.requests,
		       refused = t.refused + excluded.refused,
		       failed = t.failed + excluded.failed,
		       duration_us = t.duration_us + excluded.duration_us`, entries, uuid.Nil)
	if err != nil {
		return fmt.Errorf("inserting %d API requests: %w", len(batch), err)
	}
	return nil
}

// dropDay drops a day's partition, and recreates it with the rows that are under a legal hold.
// Whoever places a hold meanwhile waits, and then finds the rows removed or kept.
//
//nolint:unqueryvet // every column, also those of later migrations
const dropDay = `
	SET LOCAL lock_timeout = '1s';
	LOCK TABLE application_holds IN SHARE MODE;
	CREATE TEMP TABLE held_requests ON COMMIT DROP AS
		SELECT r.* FROM {day} r WHERE ` + underLegalHold + `;
	DROP TABLE {day};
	SELECT drawbridge_make_request_partitions(min(at), 0) FROM held_requests HAVING count(*) > 0;
	INSERT INTO api_requests SELECT * FROM held_requests`

// Drop removes the days that lie wholly before a time and returns how many. It waits at most a
// second for a lock: a day in use is left for the next run. A role that does not own the log
// removes nothing.
func (s *Service) Drop(ctx context.Context, before time.Time) (int, error) {
	if owns, err := s.DB.Owns(ctx, "api_requests"); err != nil || !owns {
		return 0, err
	}
	days, err := s.due(ctx, before)
	errs := []error{err}
	dropped := 0
	for _, day := range days {
		switch err := s.DB.InTx(ctx, func(tx *postgres.Tx) error {
			_, err := tx.ExecContext(ctx, strings.ReplaceAll(dropDay, "{day}", pq.QuoteIdentifier(day)))
			return err
		}); {
		case err == nil:
			dropped++
		case postgres.IsLockTimeout(err): // a partition in use is left for the next run
			return dropped, errors.Join(errs...)
		default:
			errs = append(errs, fmt.Errorf("dropping %s: %w", day, err))
		}
	}
	return dropped, errors.Join(errs...)
}

// underLegalHold selects the rows of r, the log or a day of it, that must not be removed.
const underLegalHold = `EXISTS (SELECT
	                     FROM application_holds h
	                    WHERE h.application_uid = r.application_uid
	                      AND h.released_at IS NULL)`

// due returns the partitions of the days that lie wholly before a time, except those in which
// everything is under a legal hold.
func (s *Service) due(ctx context.Context, before time.Time) ([]string, error) {
	var days []string
	err := s.DB.SelectContext(ctx, &days, `
		SELECT c.relname
		  FROM pg_inherits i
		  JOIN pg_class c ON c.oid = i.inhrelid
		 WHERE i.inhparent = 'api_requests'::regclass
		   AND c.relname <= 'api_requests' ||
		       to_char($1::timestamptz AT TIME ZONE 'UTC' - interval '1 day', '"_y"YYYY"m"MM"d"DD')
		 ORDER BY c.relname`, before.UTC())
	if err != nil {
		return nil, fmt.Errorf("listing partitions of API requests: %w", err)
	}
	var errs []error
	days = slices.DeleteFunc(days, func(day string) bool {
		var bare bool // everything in it is under a legal hold
		err := s.DB.GetContext(ctx, &bare, fmt.Sprintf(`
			SELECT EXISTS (SELECT FROM %[1]s)
			       AND NOT EXISTS (SELECT FROM %[1]s r WHERE NOT `+underLegalHold+`)`,
			pq.QuoteIdentifier(day)))
		if err != nil {
			errs = append(errs, fmt.Errorf("looking what of %s is under a legal hold: %w", day, err))
		}
		return err != nil || bare
	})
	return days, errors.Join(errs...)
}

// CountDue returns how many days, and how many requests in them, Drop would remove for the owner
// of the log; requests are counted up to limit.
func (s *Service) CountDue(
	ctx context.Context, before time.Time, limit int,
) (days, requests int, err error) {
	due, err := s.due(ctx, before)
	if err != nil {
		return 0, 0, err
	}
	err = s.DB.GetContext(ctx, &requests, `
		SELECT count(*)
		  FROM (SELECT
		          FROM api_requests r
		         WHERE r.at < date_trunc('day', $1::timestamptz, 'UTC')
		           AND NOT `+underLegalHold+`
		         LIMIT $2) AS counted`, before.UTC(), limit)
	if err != nil {
		return 0, 0, fmt.Errorf("counting API requests that are due: %w", err)
	}
	return len(due), requests, nil
}
