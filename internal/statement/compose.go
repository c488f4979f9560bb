package statement

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
)

// timeLayout is UTC with milliseconds, as in the API.
const timeLayout = "2006-01-02T15:04:05.000Z"

func formatTime(at time.Time) string { return at.UTC().Format(timeLayout) }

// deliverySlack is how much earlier than its event's time a delivery's created_at may be,
// because recording moves the time of an application's event forward.
const deliverySlack = 24 * time.Hour

// compose builds the content of each merchant's statement for the day.
func (s *Service) compose(
	ctx context.Context, tx *postgres.Tx, on day, merchants []uuid.UUID,
) (map[uuid.UUID]*content, error) {
	contents := make(map[uuid.UUID]*content, len(merchants))
	for _, merchant := range merchants {
		empty := &content{Disbursements: []disbursement{}, Events: []event{}}
		empty.Totals.ByStatus = make(map[lending.FundingStatus]amounts)
		for _, status := range lending.AllFundingStatuses() {
			empty.Totals.ByStatus[status] = amounts{}
		}
		contents[merchant] = empty
	}
	draws, err := s.Loans.ChangedWithin(ctx, tx, merchants, on.Begins, on.Ends)
	if err != nil {
		return nil, err
	}
	references, err := referencesOf(ctx, tx, draws)
	if err != nil {
		return nil, err
	}
	for _, draw := range draws {
		contents[draw.MerchantUID].enter(draw, on, references[draw.ApplicationUID])
	}
	var events []struct {
		event
		MerchantUID uuid.UUID `db:"merchant_uid"`
		OccurredAt  time.Time `db:"occurred_at"`
	}
	// The events are indexed by partner.
	err = tx.SelectContext(ctx, &events, `
		SELECT e.event_uid, e.merchant_uid, e.application_uid, e.sequence, e.kind, e.subject,
		       e.reference, e.status, e.occurred_at
		  FROM merchants m
		  JOIN events e ON e.partner_uid = m.partner_uid AND e.merchant_uid = m.merchant_uid
		 WHERE m.merchant_uid = ANY ($1)
		   AND e.occurred_at >= $2
		   AND e.occurred_at < $3
		 ORDER BY e.occurred_at, e.event_uid`, pq.Array(merchants), on.Begins, on.Ends)
	if err != nil {
		return nil, fmt.Errorf("listing the events of %s: %w", on.date(), err)
	}
	for _, row := range events {
		of := contents[row.MerchantUID]
		row.Timestamp, row.Deliveries = lending.FormatTimestamp(row.OccurredAt), []delivery{}
		of.Events = append(of.Events, row.event)
	}
	return contents, addDeliveries(ctx, tx, on, contents)
}

// enter adds a disbursement if it changed on the day.
func (c *content) enter(draw loan.Disbursement, on day, reference *string) {
	draw = draw.AsOf(on.Ends)
	entry := disbursement{
		ID: draw.ID, ApplicationUID: draw.ApplicationUID, ExternalReference: reference,
		Number: draw.Number, Kind: draw.Kind, Status: draw.Status,
		Gross: draw.Gross, Fee: draw.Fee, Net: draw.Net, Evidence: draw.Evidence(),
	}
	for _, made := range draw.Changes {
		if made.At.Before(on.Begins) {
			continue
		}
		entry.Changes = append(entry.Changes, change{
			Status: made.Status, At: formatTime(made.At), Evidence: made.Evidence,
		})
		reached := c.Totals.ByStatus[made.Status]
		reached.add(draw)
		c.Totals.ByStatus[made.Status] = reached
	}
	if len(entry.Changes) == 0 {
		return
	}
	c.Totals.add(draw)
	c.Disbursements = append(c.Disbursements, entry)
}

// referencesOf returns the partners' own references for the disbursements' applications.
func referencesOf(
	ctx context.Context, tx *postgres.Tx, draws []loan.Disbursement,
) (map[uuid.UUID]*string, error) {
	uids := make([]uuid.UUID, 0, len(draws))
	for _, draw := range draws {
		uids = append(uids, draw.ApplicationUID)
	}
	var rows []struct {
		UID       uuid.UUID `db:"application_uid"`
		Reference *string   `db:"external_reference"`
	}
	err := tx.SelectContext(ctx, &rows, `
		SELECT application_uid, external_reference
		  FROM applications
		 WHERE application_uid = ANY ($1)
		   AND external_reference IS NOT NULL`, pq.Array(uids))
	if err != nil {
		return nil, fmt.Errorf("loading the references of %d disbursements: %w", len(draws), err)
	}
	references := make(map[uuid.UUID]*string, len(rows))
	for _, row := range rows {
		references[row.UID] = row.Reference
	}
	return references, nil
}

// addDeliveries adds to each event its outcome at each subscription.
func addDeliveries(
	ctx context.Context, tx *postgres.Tx, on day, contents map[uuid.UUID]*content,
) error {
	var uids []uuid.UUID
	places := make(map[uuid.UUID]*event)
	for _, content := range contents {
		for i := range content.Events {
			uids = append(uids, content.Events[i].UID)
			places[content.Events[i].UID] = &content.Events[i]
		}
	}
	if len(uids) == 0 {
		return nil
	}
	var rows []struct {
		delivery
		EventUID uuid.UUID  `db:"event_uid"`
		Arrived  *time.Time `db:"delivered_at"`
	}
	err := tx.SelectContext(ctx, &rows, `
		SELECT event_uid,
		       subscription_uid,
		       (array_agg(delivery_uid ORDER BY state <> 'delivered',
		            CASE WHEN state = 'delivered' THEN finished_at END, created_at, delivery_uid)
		       )[1] AS delivery_uid,
		       CASE WHEN bool_or(state = 'delivered') THEN 'delivered'
		            WHEN bool_or(state IN ('pending', 'retrying')) THEN 'waiting'
		            WHEN bool_or(state = 'failed') THEN 'failed'
		            ELSE 'cancelled' END AS outcome,
		       min(finished_at) FILTER (WHERE state = 'delivered') AS delivered_at
		  FROM (SELECT event_uid, subscription_uid, delivery_uid, state, finished_at, created_at
		          FROM deliveries
		         WHERE event_uid = ANY ($1)
		           AND created_at >= $2
		           AND NOT test
		         UNION ALL
		        SELECT o.event_uid, s.subscription_uid, s.delivery_uid, 'pending', NULL, o.recorded_at
		          FROM outbox o
		         CROSS JOIN LATERAL unnest(o.owed, o.delivery_uids) AS s (subscription_uid, delivery_uid)
		         WHERE o.event_uid = ANY ($1)) AS known
		 GROUP BY event_uid, subscription_uid
		 ORDER BY event_uid, min(created_at), subscription_uid`,
		pq.Array(uids), on.Begins.Add(-deliverySlack))
	if err != nil {
		return fmt.Errorf("listing the deliveries of %d events: %w", len(uids), err)
	}
	for _, row := range rows {
		if row.Arrived != nil {
			row.DeliveredAt = new(formatTime(*row.Arrived))
		}
		of := places[row.EventUID]
		of.Deliveries = append(of.Deliveries, row.delivery)
	}
	return nil
}
