package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// FanOut counts the outcomes of an event: first deliveries by state, with those that failed and
// were made good counted separately, the subscriptions that were passed over, and the re-sends.
type FanOut struct {
	Delivered  int `json:"delivered"`
	MadeGood   int `json:"made_good"`
	Failed     int `json:"failed"`
	Open       int `json:"open"`
	Cancelled  int `json:"cancelled"`
	Resends    int `json:"resends"`
	PassedOver int `json:"passed_over"`
}

// EventRecord is an event as stored in the log.
type EventRecord struct {
	UID          uuid.UUID         `db:"event_uid"`
	OccurredAt   time.Time         `db:"occurred_at"`
	Kind         lending.EventKind `db:"kind"`
	PartnerUID   uuid.UUID         `db:"partner_uid"`
	PartnerName  string            `db:"partner_name"`
	MerchantUID  *uuid.UUID        `db:"merchant_uid"`
	MerchantName *string           `db:"merchant_name"`
	// ApplicationUID is the sample application on test events.
	ApplicationUID uuid.UUID `db:"application_uid"`
	Status         string    `db:"status"`
	// Subject names the object whose state the event reports, empty where that was not recorded.
	Subject string `db:"subject"`
	Test    bool   `db:"test"`
	// BodyRemovedAt is when retention removed the body, nil before.
	BodyRemovedAt *time.Time `db:"body_removed_at"`
	PassedOver    int        `db:"passed_over"`
	FanOut        FanOut     `db:"-"`
}

// EventDetail is an event with its body and its outcomes.
type EventDetail struct {
	EventRecord
	// Body is empty once BodyRemovedAt is set.
	Body []byte `db:"body"`
	// Ledger has a line for each subscription of the partner.
	Ledger []LedgerLine `db:"-"`
	// Deliveries are those of the event, oldest first, at most postgres.MaxPage.
	Deliveries []Delivery `db:"-"`
}

const eventColumns = `
	e.event_uid, e.occurred_at, e.kind, e.partner_uid, p.name AS partner_name, e.merchant_uid,
	m.name AS merchant_name,
	coalesce(e.application_uid, '` + lending.SampleApplicationUID + `') AS application_uid,
	e.status, coalesce(e.subject, '') AS subject, e.application_uid IS NULL AS test, e.body_removed_at,
	coalesce(jsonb_array_length(e.passed_over), 0) AS passed_over`

const eventOwners = `
	 JOIN partners p USING (partner_uid)
	 LEFT JOIN merchants m ON m.merchant_uid = e.merchant_uid`

// Events returns one page of the events that match, newest first, with the outcomes of
// each, and the cursor of the next page. Error: VALIDATION_ERROR for the limit.
func (l *Log) Events(
	ctx context.Context, filter EventFilter, page postgres.Paging,
) ([]EventRecord, postgres.Cursor, error) {
	if err := page.Check(); err != nil {
		return nil, postgres.Cursor{}, err
	}
	scope, err := eventScopeOf(ctx, l.DB, filter)
	if err != nil || scope.none {
		return nil, postgres.Cursor{}, err
	}
	newest, args := scope.newest(`e.*`, page.OneMore())
	var rows []EventRecord
	err = l.DB.SelectContext(ctx, &rows, `SELECT `+eventColumns+` FROM (`+newest+`) e`+
		eventOwners+latestEvents, args...)
	if err != nil {
		return nil, postgres.Cursor{}, fmt.Errorf("listing events: %w", err)
	}
	rows, next := postgres.Page(rows, page.Limit, func(e EventRecord) postgres.Cursor {
		return postgres.Cursor{At: e.OccurredAt, UID: e.UID}
	})
	if err := countFanOut(ctx, l.DB, rows); err != nil {
		return nil, postgres.Cursor{}, err
	}
	return rows, next, nil
}

// CountEvents counts the events that match, at most limit of them.
func (l *Log) CountEvents(ctx context.Context, filter EventFilter, limit int) (int, error) {
	scope, err := eventScopeOf(ctx, l.DB, filter)
	if err != nil || scope.none {
		return 0, err
	}
	query, args := scope.countQuery(limit)
	count, err := l.DB.Count(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("counting events: %w", err)
	}
	return count, nil
}

// countFanOut fills in the outcomes of events, which must be newest first.
func countFanOut(ctx context.Context, db *postgres.DB, events []EventRecord) error {
	if len(events) == 0 {
		return nil
	}
	uids := make([]uuid.UUID, 0, len(events))
	for _, event := range events {
		uids = append(uids, event.UID)
	}
	var counts []struct {
		UID      uuid.UUID `db:"event_uid"`
		State    State     `db:"state"`
		Again    bool      `db:"again"`
		MadeGood bool      `db:"made_good"`
		Count    int       `db:"count"`
	}
	// A delivery is created with its event or later, give or take the microseconds by which
	// an event's time may run ahead: older months need not be searched.
	err := db.SelectContext(ctx, &counts, `
		SELECT event_uid, state, resend_of IS NOT NULL AS again,
		       made_good_by IS NOT NULL AS made_good, count(*) AS count
		  FROM deliveries
		 WHERE event_uid = ANY ($1)
		   AND created_at >= $2
		 GROUP BY 1, 2, 3, 4`, pq.Array(uids), events[len(events)-1].OccurredAt.Add(-time.Hour))
	if err != nil {
		return fmt.Errorf("counting the deliveries of %d events: %w", len(events), err)
	}
	fans := make(map[uuid.UUID]FanOut, len(events))
	owed, err := owedBy(ctx, db, uids)
	if err != nil {
		return err
	}
	for uid, count := range owed {
		fans[uid] = FanOut{Open: count}
	}
	for _, row := range counts {
		fan := fans[row.UID]
		switch {
		case row.Again:
			fan.Resends += row.Count
		case row.MadeGood:
			fan.MadeGood += row.Count
		case row.State == StateDelivered:
			fan.Delivered += row.Count
		case row.State == StateFailed:
			fan.Failed += row.Count
		case row.State == StateCancelled:
			fan.Cancelled += row.Count
		default:
			fan.Open += row.Count
		}
		fans[row.UID] = fan
	}
	for i := range events {
		events[i].FanOut = fans[events[i].UID]
		events[i].FanOut.PassedOver = events[i].PassedOver
	}
	return nil
}

// owedBy counts the deliveries of events that the outbox has yet to create; events
// without any are left out.
func owedBy(ctx context.Context, db *postgres.DB, events []uuid.UUID) (map[uuid.UUID]int, error) {
	var rows []struct {
		EventUID uuid.UUID `db:"event_uid"`
		Count    int       `db:"count"`
	}
	err := db.SelectContext(ctx, &rows, `
		SELECT event_uid, cardinality(owed) AS count
		  FROM outbox
		 WHERE event_uid = ANY ($1)
		   AND owed <> '{}'`, pq.Array(events))
	if err != nil {
		return nil, fmt.Errorf("asking what %d events owe: %w", len(events), err)
	}
	owed := make(map[uuid.UUID]int, len(rows))
	for _, row := range rows {
		owed[row.EventUID] = row.Count
	}
	return owed, nil
}

func noEvent(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no event has the id %s", uid)
}

// EventByUID returns an event with its body, its whole ledger and its deliveries.
// Error: NOT_FOUND.
func (l *Log) EventByUID(ctx context.Context, uid uuid.UUID) (EventDetail, error) {
	detail, err := l.EventHead(ctx, uid)
	if err != nil {
		return EventDetail{}, err
	}
	if detail.Ledger, err = l.EventVerdicts(ctx, uid); err != nil {
		return EventDetail{}, err
	}
	err = l.DB.SelectContext(ctx, &detail.Deliveries, `SELECT `+deliveryColumns+deliveryTables+`
		WHERE d.event_uid = $1
		ORDER BY d.created_at, d.delivery_uid
		LIMIT $2`, uid, postgres.MaxPage)
	if err != nil {
		return EventDetail{}, fmt.Errorf("listing the deliveries of event %s: %w", uid, err)
	}
	return detail, nil
}

// EventHead returns an event with its body, without its ledger and its deliveries.
// Error: NOT_FOUND.
func (l *Log) EventHead(ctx context.Context, uid uuid.UUID) (EventDetail, error) {
	var detail EventDetail
	err := l.DB.GetContext(ctx, &detail,
		`SELECT `+eventColumns+`, e.body FROM events e`+eventOwners+` WHERE e.event_uid = $1`, uid)
	if err := postgres.RowError(err, noEvent(uid), "loading event %s", uid); err != nil {
		return EventDetail{}, err
	}
	one := []EventRecord{detail.EventRecord}
	if err := countFanOut(ctx, l.DB, one); err != nil {
		return EventDetail{}, err
	}
	detail.EventRecord = one[0]
	return detail, nil
}

// MaxOutcomeDeliveries is how many deliveries of one event EventOutcomes returns.
const MaxOutcomeDeliveries = 10

// EventOutcome is the outcome of one event: counts of all its deliveries, and the first
// few with their attempts, starting with those that failed and were not made good.
type EventOutcome struct {
	Delivered  int     `db:"delivered"`
	MadeGood   int     `db:"made_good"`
	Failed     int     `db:"failed"`
	Open       int     `db:"open"`
	Cancelled  int     `db:"cancelled"`
	Deliveries []Tried `db:"-"`
}

// Total counts the deliveries.
func (o EventOutcome) Total() int {
	return o.Delivered + o.MadeGood + o.Failed + o.Open + o.Cancelled
}

// Tried is a delivery with the outcomes of its attempts, oldest first; no other columns
// of the attempts are loaded.
type Tried struct {
	Delivery
	Attempts []Attempt
}

// EventOutcomes returns the outcomes of events that occurred at or after a time, by event
// uid; events without a delivery are left out.
func (l *Log) EventOutcomes(
	ctx context.Context, events []uuid.UUID, since time.Time,
) (map[uuid.UUID]EventOutcome, error) {
	if len(events) == 0 {
		return nil, nil //nolint:nilnil // nothing is asked for
	}
	// As in countFanOut: a delivery is created with its event or later.
	since = since.Add(-time.Hour)
	var rows []struct {
		Delivery
		Of EventOutcome `db:"of"`
	}
	err := l.DB.SelectContext(ctx, &rows, `
		SELECT `+deliveryColumns+`, d."of.delivered", d."of.made_good", d."of.failed", d."of.open",
		       d."of.cancelled"
		  FROM (SELECT d.*,
		               count(*) FILTER (WHERE state = 'delivered') OVER e AS "of.delivered",
		               count(*) FILTER (WHERE made_good_by IS NOT NULL) OVER e AS "of.made_good",
		               count(*) FILTER (WHERE state = 'failed' AND made_good_by IS NULL)
		                   OVER e AS "of.failed",
		               count(*) FILTER (WHERE state IN ('pending', 'retrying')) OVER e AS "of.open",
		               count(*) FILTER (WHERE state = 'cancelled') OVER e AS "of.cancelled",
		               row_number() OVER (
		                   PARTITION BY event_uid
		                   ORDER BY state <> 'failed' OR made_good_by IS NOT NULL, created_at,
		                            delivery_uid) AS place
		          FROM deliveries d
		         WHERE event_uid = ANY ($1)
		           AND created_at >= $2
		        WINDOW e AS (PARTITION BY event_uid)) d
		  JOIN subscriptions s USING (subscription_uid)
		  JOIN partners p USING (partner_uid)
		 WHERE d.place <= $3
		 ORDER BY d.event_uid, d.place`, pq.Array(events), since, MaxOutcomeDeliveries)
	if err != nil {
		return nil, fmt.Errorf("reading the deliveries of %d events: %w", len(events), err)
	}
	uids := make([]uuid.UUID, 0, len(rows))
	for _, row := range rows {
		uids = append(uids, row.UID)
	}
	attempts, err := l.briefAttempts(ctx, uids, since)
	if err != nil {
		return nil, err
	}
	owed, err := owedBy(ctx, l.DB, events)
	if err != nil {
		return nil, err
	}
	found := make(map[uuid.UUID]EventOutcome, len(events))
	for uid, count := range owed {
		found[uid] = EventOutcome{Open: count}
	}
	for _, row := range rows {
		row.Of.Deliveries = found[row.EventUID].Deliveries
		row.Of.Deliveries = append(row.Of.Deliveries, Tried{row.Delivery, attempts[row.UID]})
		found[row.EventUID] = row.Of
	}
	return found, nil
}

func (l *Log) briefAttempts(
	ctx context.Context, deliveries []uuid.UUID, since time.Time,
) (map[uuid.UUID][]Attempt, error) {
	var rows []struct {
		Of uuid.UUID `db:"delivery_uid"`
		Attempt
	}
	err := l.DB.SelectContext(ctx, &rows, `
		SELECT delivery_uid, number, started_at, duration_us * 1000 AS duration,
		       coalesce(http_status, 0) AS http_status, coalesce(error_class, '') AS error_class
		  FROM attempts
		 WHERE delivery_uid = ANY ($1)
		   AND delivery_created_at >= $2
		 ORDER BY delivery_uid, number`, pq.Array(deliveries), since)
	if err != nil {
		return nil, fmt.Errorf("reading the attempts of %d deliveries: %w", len(deliveries), err)
	}
	found := make(map[uuid.UUID][]Attempt, len(deliveries))
	for _, row := range rows {
		found[row.Of] = append(found[row.Of], row.Attempt)
	}
	return found, nil
}
