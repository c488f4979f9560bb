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

// FanOut counts what became of an event: the first deliveries by state, the
// subscriptions that were passed over, and the re-sends.
type FanOut struct {
	Delivered, Failed, Open, Cancelled, PassedOver, Resends int
}

// EventRecord is an event as the log keeps it.
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
	Test           bool      `db:"test"`
	// BodyRemovedAt is when retention removed the body, nil before.
	BodyRemovedAt *time.Time `db:"body_removed_at"`
	PassedOver    int        `db:"passed_over"`
	FanOut        FanOut     `db:"-"`
}

// EventPage is one page of events, newest first.
type EventPage struct {
	Events []EventRecord
	// Next is the zero cursor on the last page.
	Next postgres.Cursor
}

// EventDetail is an event with its body and what became of it.
type EventDetail struct {
	EventRecord
	// Body is empty once BodyRemovedAt is set.
	Body []byte
	// Ledger has a line for each subscription of the partner.
	Ledger []LedgerLine
	// Deliveries are all of the event, oldest first, at most postgres.MaxPage.
	Deliveries []Delivery
}

const eventColumns = `
	e.event_uid, e.occurred_at, e.kind, e.partner_uid, p.name AS partner_name, e.merchant_uid,
	m.name AS merchant_name,
	coalesce(e.application_uid, '` + lending.SampleApplicationUID + `') AS application_uid,
	e.status, e.application_uid IS NULL AS test, e.body_removed_at,
	coalesce(jsonb_array_length(e.passed_over), 0) AS passed_over`

const (
	eventOwners = `
	 JOIN partners p USING (partner_uid)
	 LEFT JOIN merchants m ON m.merchant_uid = e.merchant_uid`
	eventTables = ` FROM events e` + eventOwners
)

func (e EventRecord) cursor() postgres.Cursor {
	return postgres.Cursor{At: e.OccurredAt, UID: e.UID}
}

// Events returns one page of the events that match, newest first, with what
// became of each. Error: VALIDATION_ERROR for the limit.
func (s *Service) Events(ctx context.Context, filter EventFilter) (EventPage, error) {
	if err := postgres.CheckLimit(filter.Limit); err != nil {
		return EventPage{}, err
	}
	scope, err := eventScopeOf(ctx, s.DB, filter)
	if err != nil || scope.none {
		return EventPage{}, err
	}
	newest, args := scope.newest(`e.*`, filter.Limit+1)
	var rows []EventRecord
	err = s.DB.SelectContext(ctx, &rows, `SELECT `+eventColumns+` FROM (`+newest+`) e`+
		eventOwners+latestEvents, args...)
	if err != nil {
		return EventPage{}, fmt.Errorf("listing events: %w", err)
	}
	rows, next := postgres.Page(rows, filter.Limit, EventRecord.cursor)
	if err := countFanOut(ctx, s.DB, rows); err != nil {
		return EventPage{}, err
	}
	return EventPage{Events: rows, Next: next}, nil
}

// CountEvents counts the events that match, at most limit of them. The filter's
// cursor and limit do not count.
func (s *Service) CountEvents(ctx context.Context, filter EventFilter, limit int) (int, error) {
	scope, err := eventScopeOf(ctx, s.DB, filter)
	if err != nil || scope.none {
		return 0, err
	}
	query, args := scope.countQuery(limit)
	count, err := s.DB.Count(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("counting events: %w", err)
	}
	return count, nil
}

// countFanOut fills in what became of the events, which are newest first.
func countFanOut(ctx context.Context, db *postgres.DB, events []EventRecord) error {
	if len(events) == 0 {
		return nil
	}
	uids := make([]uuid.UUID, 0, len(events))
	for _, event := range events {
		uids = append(uids, event.UID)
	}
	var counts []struct {
		UID   uuid.UUID `db:"event_uid"`
		State State     `db:"state"`
		Again bool      `db:"again"`
		Count int       `db:"count"`
	}
	// A delivery is made with its event or later, give or take the microseconds
	// by which an event's time may run ahead: older months need not be searched.
	err := db.SelectContext(ctx, &counts, `
		SELECT event_uid, state, resend_of IS NOT NULL AS again, count(*) AS count
		  FROM deliveries
		 WHERE event_uid = ANY ($1)
		   AND created_at >= $2
		 GROUP BY 1, 2, 3`, pq.Array(uids), events[len(events)-1].OccurredAt.Add(-time.Hour))
	if err != nil {
		return fmt.Errorf("counting the deliveries of %d events: %w", len(events), err)
	}
	fans := make(map[uuid.UUID]FanOut, len(events))
	for _, row := range counts {
		fan := fans[row.UID]
		fan.add(row.State, row.Again, row.Count)
		fans[row.UID] = fan
	}
	for i := range events {
		events[i].FanOut = fans[events[i].UID]
		events[i].FanOut.PassedOver = events[i].PassedOver
	}
	return nil
}

func (f *FanOut) add(state State, again bool, count int) {
	switch {
	case again:
		f.Resends += count
	case state == StateDelivered:
		f.Delivered += count
	case state == StateFailed:
		f.Failed += count
	case state == StateCancelled:
		f.Cancelled += count
	default:
		f.Open += count
	}
}

func noEvent(uid uuid.UUID) error {
	return lending.NewError(lending.CodeNotFound, "no event has the id %s", uid)
}

// EventByUID returns an event with its body, its ledger and its deliveries.
// Error: NOT_FOUND.
func (s *Service) EventByUID(ctx context.Context, uid uuid.UUID) (EventDetail, error) {
	var row struct {
		EventRecord
		Body []byte `db:"body"`
	}
	err := s.DB.GetContext(ctx, &row,
		`SELECT `+eventColumns+`, e.body`+eventTables+` WHERE e.event_uid = $1`, uid)
	if postgres.IsNoRows(err) {
		return EventDetail{}, noEvent(uid)
	}
	if err != nil {
		return EventDetail{}, fmt.Errorf("loading event %s: %w", uid, err)
	}
	detail := EventDetail{EventRecord: row.EventRecord, Body: row.Body}
	one := []EventRecord{detail.EventRecord}
	if err := countFanOut(ctx, s.DB, one); err != nil {
		return EventDetail{}, err
	}
	detail.EventRecord = one[0]
	if detail.Ledger, err = s.EventVerdicts(ctx, uid); err != nil {
		return EventDetail{}, err
	}
	err = s.DB.SelectContext(ctx, &detail.Deliveries, `SELECT `+deliveryColumns+deliveryTables+`
		WHERE d.event_uid = $1
		ORDER BY d.created_at, d.delivery_uid
		LIMIT $2`, uid, postgres.MaxPage)
	if err != nil {
		return EventDetail{}, fmt.Errorf("listing the deliveries of event %s: %w", uid, err)
	}
	return detail, nil
}
