package feed

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

const (
	// fewMerchants is the largest number of merchants whose entries are read through an index
	// each; for more, the feed itself is read, and entries of other merchants are skipped.
	fewMerchants = 16
	// maxScanned is how many entries a page scans for the ones that it wants, however many it
	// finds among them.
	maxScanned = 4000
)

// entry is a row of the feed, without the contents of its event.
type entry struct {
	Position   Cursor    `db:"position"`
	EventUID   uuid.UUID `db:"event_uid"`
	OccurredAt time.Time `db:"occurred_at"`
}

// bounds describes the feed as a whole, as a statement saw it.
type bounds struct {
	// Oldest is the first cursor after which nothing was removed, though older positions may
	// be kept, for events under a legal hold.
	Oldest Cursor `db:"oldest"`
	Head   Cursor `db:"head"`
	// Seen is the position up to which the entries that were read are complete.
	Seen Cursor `db:"seen"`
}

// Latest returns the cursor after which all events come that are published from now on.
func (s *Service) Latest(ctx context.Context) (Cursor, error) {
	var head Cursor
	if err := s.DB.GetContext(ctx, &head, `SELECT position FROM feed_head`); err != nil {
		return 0, fmt.Errorf("reading the head of the feed: %w", err)
	}
	return head, nil
}

// Read returns one page. If ctx allows a replica that lags, events that it does not have
// yet come with a later page: the replica has the positions without gaps, too, and a
// cursor beyond its end is answered by the primary. Errors: VALIDATION_ERROR for the
// limit and for a cursor that the feed cannot have returned; CURSOR_EXPIRED, whose
// details name the oldest cursor that works.
func (s *Service) Read(ctx context.Context, query Query) (Page, error) {
	if err := postgres.CheckLimit(query.Limit); err != nil {
		return Page{}, err
	}
	fromOldest := query.After == nil
	for {
		page, gone, err := s.read(ctx, query)
		switch {
		case err != nil || gone == 0:
			return page, err
		case !fromOldest:
			return Page{}, errExpired(gone)
		}
		query.After = &gone
	}
}

// read returns one page. If retention has removed events of the page but not yet their
// positions, it returns the newest of these positions instead.
func (s *Service) read(ctx context.Context, query Query) (page Page, gone Cursor, err error) {
	entries, seen, err := s.entries(ctx, query)
	if err != nil {
		return Page{}, 0, err
	}
	switch after := query.After; {
	case after == nil:
	case *after < seen.Oldest:
		return Page{}, 0, errExpired(seen.Oldest)
	case *after > seen.Head && postgres.Lagged(ctx):
		return s.read(postgres.Current(ctx), query)
	case *after > seen.Head:
		if err := s.errAhead(ctx, *after); err != nil {
			return Page{}, 0, err
		}
		return s.read(ctx, query)
	}
	page = Page{Next: seen.Seen, More: seen.Seen < seen.Head, head: seen.Head}
	if len(entries) > query.Limit {
		entries = entries[:query.Limit]
		page.Next, page.More = entries[query.Limit-1].Position, true
	}
	page.Events, gone, err = s.load(ctx, entries)
	return page, gone, err
}

// errAhead refuses a cursor that the feed cannot have returned: one of another database,
// or of commits that a restore or a fail-over lost. Until an operator has decided about a
// restored database, or the server that took over has published, the cursor may still
// become valid. It returns nil if it has become valid meanwhile.
func (s *Service) errAhead(ctx context.Context, after Cursor) error {
	var now struct {
		Head     Cursor `db:"head"`
		Held     bool   `db:"held"`
		Promoted bool   `db:"promoted"`
	}
	err := s.DB.GetContext(ctx, &now, `
		SELECT h.position AS head,
		       EXISTS (SELECT FROM installation WHERE held_at IS NOT NULL) AS held,
		       CASE WHEN pg_is_in_recovery() THEN true
		            ELSE coalesce(f.timeline <> drawbridge_timeline(), false) END AS promoted
		  FROM feed_head h
		 CROSS JOIN feed_floor f`)
	switch {
	case err != nil:
		return fmt.Errorf("asking whether a restore is decided: %w", err)
	case after <= now.Head:
		return nil
	case now.Held:
		return lending.NewError(lending.CodeUnavailable, "the lender restored a backup and has "+
			"not yet decided what to send again; keep your cursor and retry later")
	case now.Promoted:
		return lending.NewError(lending.CodeUnavailable,
			"another server is taking over; keep your cursor and retry")
	}
	return errCursor()
}

// entries finds up to one entry more than the limit, oldest first.
func (s *Service) entries(ctx context.Context, query Query) ([]entry, bounds, error) {
	if len(query.MerchantUIDs) <= fewMerchants {
		return s.entriesByMerchant(ctx, query)
	}
	entries, seen, err := s.entriesByScan(ctx, query)
	if err != nil || len(entries) > 0 || seen.Seen >= seen.Head {
		return entries, seen, err
	}
	// The scanned entries have none of theirs: continue right before the next one.
	var next *Cursor
	err = s.DB.GetContext(ctx, &next, `
		SELECT min(f.position)
		  FROM unnest($1::uuid[]) AS m (merchant_uid)
		 CROSS JOIN LATERAL (
		       SELECT position
		         FROM feed
		        WHERE merchant_uid = m.merchant_uid
		          AND position > $2
		        ORDER BY position
		        LIMIT 1) AS f`, pq.Array(query.MerchantUIDs), seen.Seen)
	if err != nil {
		return nil, bounds{}, fmt.Errorf("looking ahead in the feed: %w", err)
	}
	switch {
	case next == nil:
		seen.Seen = seen.Head
		return nil, seen, nil
	case len(query.Kinds) > 0: // the next entry may be of another kind
		seen.Seen = *next - 1
		return nil, seen, nil
	}
	*next--
	query.After = next
	return s.entriesByScan(ctx, query)
}

// The page starts at the reader's cursor or, without one, at the oldest that works.
const readBounds = `
	SELECT position AS head, removed AS oldest, coalesce($3, removed) AS start
	  FROM feed_head`

// entriesByMerchant reads each merchant's entries by its index. If a merchant has more, the result
// is complete only up to the last that was read. The merchant is in the range and in the order
// because the planner would take a busy one for an average one, and sort all its entries.
func (s *Service) entriesByMerchant(ctx context.Context, query Query) ([]entry, bounds, error) {
	most := query.Limit + 1
	if len(query.Kinds) > 0 {
		most = max(most, maxScanned/max(len(query.MerchantUIDs), 1))
	}
	return s.page(ctx, `
		WITH feed_bounds AS MATERIALIZED (`+readBounds+`
		), read AS MATERIALIZED (
			SELECT m.merchant_uid, f.position, f.kind, f.event_uid, f.occurred_at
			  FROM feed_bounds b
			 CROSS JOIN unnest($1::uuid[]) AS m (merchant_uid)
			 CROSS JOIN LATERAL (
			       SELECT position, kind, event_uid, occurred_at
			         FROM feed
			        WHERE (merchant_uid, position) > (m.merchant_uid, b.start)
			          AND (merchant_uid, position) <= (m.merchant_uid, b.head)
			        ORDER BY merchant_uid, position
			        LIMIT $5) AS f
		), complete AS MATERIALIZED (
			SELECT b.head, b.oldest, coalesce((
			           SELECT min(last)
			             FROM (SELECT max(position) AS last
			                     FROM read
			                    GROUP BY merchant_uid
			                   HAVING count(*) = $5) AS cut), b.head) AS seen
			  FROM feed_bounds b
		)
		SELECT c.head, c.oldest, c.seen, f.position, f.event_uid, f.occurred_at
		  FROM complete c
		  LEFT JOIN LATERAL (
		       SELECT position, event_uid, occurred_at
		         FROM read
		        WHERE position <= c.seen
		          AND ($2::text[] IS NULL OR kind = ANY ($2))
		        ORDER BY position
		        LIMIT $4) AS f ON true
		 ORDER BY f.position`, query, most)
}

// entriesByScan reads a stretch of the feed in order and leaves out entries of other merchants.
// "IS TRUE" makes Postgres hash the list of merchants: compared one by one, a long list
// takes longer than all the rest.
func (s *Service) entriesByScan(ctx context.Context, query Query) ([]entry, bounds, error) {
	return s.page(ctx, `
		WITH complete AS MATERIALIZED (
			SELECT b.head, b.oldest, b.start, least(b.start + $5, b.head) AS seen
			  FROM (`+readBounds+`) AS b
		)
		SELECT c.head, c.oldest, c.seen, f.position, f.event_uid, f.occurred_at
		  FROM complete c
		  LEFT JOIN LATERAL (
		       SELECT position, event_uid, occurred_at
		         FROM feed
		        WHERE position > c.start
		          AND position <= c.seen
		          AND ($2::text[] IS NULL OR kind = ANY ($2))
		          AND (merchant_uid IN (SELECT unnest($1::uuid[]))) IS TRUE
		        ORDER BY position
		        LIMIT $4) AS f ON true
		 ORDER BY f.position`, query, maxScanned)
}

func (s *Service) page(
	ctx context.Context, statement string, query Query, most int,
) ([]entry, bounds, error) {
	var kinds any
	if len(query.Kinds) > 0 {
		kinds = pq.Array(query.Kinds)
	}
	var rows []struct { // one row without an entry if there is none
		bounds
		Position   *Cursor    `db:"position"`
		EventUID   *uuid.UUID `db:"event_uid"`
		OccurredAt *time.Time `db:"occurred_at"`
	}
	err := s.DB.SelectContext(ctx, &rows, statement,
		pq.Array(query.MerchantUIDs), kinds, query.After, query.Limit+1, most)
	if err != nil {
		return nil, bounds{}, fmt.Errorf("reading the feed: %w", err)
	}
	var entries []entry
	for _, row := range rows {
		if row.Position != nil {
			entries = append(entries, entry{*row.Position, *row.EventUID, *row.OccurredAt})
		}
	}
	return entries, rows[0].bounds, nil
}

// load reads the events of entries, in their order. If any are gone, it returns the
// newest of their positions.
func (s *Service) load(ctx context.Context, entries []entry) ([]Event, Cursor, error) {
	if len(entries) == 0 {
		return nil, 0, nil
	}
	uids := make([]uuid.UUID, 0, len(entries))
	times := make([]time.Time, 0, len(entries))
	for _, entry := range entries {
		uids, times = append(uids, entry.EventUID), append(times, entry.OccurredAt)
	}
	var events []Event
	err := s.DB.SelectContext(ctx, &events, `
		SELECT `+eventColumns+`
		  FROM unnest($1::uuid[], $2::timestamptz[]) WITH ORDINALITY
		       AS wanted (event_uid, occurred_at, place)
		 CROSS JOIN LATERAL (
		       SELECT event_uid, sequence, kind, subject, merchant_uid, application_uid, reference,
		              occurred_at, body
		         FROM events
		        WHERE event_uid = wanted.event_uid
		          AND occurred_at = wanted.occurred_at
		        LIMIT 1) AS e
		 ORDER BY wanted.place`, pq.Array(uids), pq.Array(times))
	if err != nil {
		return nil, 0, fmt.Errorf("loading %d events: %w", len(entries), err)
	}
	if len(events) == len(entries) {
		return events, 0, nil
	}
	last := len(entries) - 1
	for left := len(events) - 1; left >= 0 && events[left].UID == entries[last].EventUID; left-- {
		last--
	}
	return nil, entries[last].Position, nil
}

const eventColumns = `e.event_uid, e.sequence, e.kind, e.subject, e.merchant_uid,
	e.application_uid, e.reference, e.occurred_at,
	CASE WHEN length(e.body) > 0 THEN convert_from(e.body, 'UTF8') END AS body`

// History is a part of an application's events.
type History struct {
	Events []Event
	// Last is the application's newest sequence number, 0 without events.
	Last int64
	// More means that further events follow.
	More bool
}

// OfApplication returns up to limit events of an application of one of the merchants, by
// sequence number, beginning with from. Errors: NOT_FOUND, VALIDATION_ERROR for the limit.
func (s *Service) OfApplication(
	ctx context.Context, merchants []uuid.UUID, uid uuid.UUID, from int64, limit int,
) (History, error) {
	if err := postgres.CheckLimit(limit); err != nil {
		return History{}, err
	}
	var history History
	err := s.DB.GetContext(ctx, &history.Last, `
		SELECT coalesce(last_sequence, 0)
		  FROM applications
		 WHERE application_uid = $1
		   AND merchant_uid = ANY ($2)`, uid, pq.Array(merchants))
	if postgres.IsNoRows(err) {
		return History{}, lending.NewError(lending.CodeNotFound, "no application has the id %s", uid)
	}
	if err != nil {
		return History{}, fmt.Errorf("loading application %s: %w", uid, err)
	}
	err = s.DB.SelectContext(ctx, &history.Events, `
		SELECT `+eventColumns+`
		  FROM events e
		 WHERE e.application_uid = $1
		   AND e.sequence BETWEEN $2 AND $3
		 ORDER BY e.sequence
		 LIMIT $4`, uid, from, history.Last, limit+1)
	if err != nil {
		return History{}, fmt.Errorf("listing the events of application %s: %w", uid, err)
	}
	if history.More = len(history.Events) > limit; history.More {
		history.Events = history.Events[:limit]
	}
	return history, nil
}
