package webhook_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

// crowd is a house with many deliveries, several of each moment.
type crowd struct {
	*house
	subscriptions, applications []uuid.UUID
	// rows are newest first.
	rows []crowdRow
}

type crowdRow struct {
	UID          uuid.UUID             `db:"delivery_uid"`
	CreatedAt    time.Time             `db:"created_at"`
	Subscription uuid.UUID             `db:"subscription_uid"`
	Application  uuid.NullUUID         `db:"application_uid"`
	State        webhook.DeliveryState `db:"state"`
	Event        lending.EventKind     `db:"event"`
}

// newCrowd makes count deliveries, of different moments every so many rows.
func newCrowd(t testing.TB, count, perMoment int) *crowd {
	t.Helper()
	c := &crowd{house: newHouse(t)}
	for range 3 {
		subscription, _ := c.subscribe(t, "https://hooks.example.com", nil)
		c.subscriptions = append(c.subscriptions, subscription.UID)
		c.applications = append(c.applications, c.newApplication(t, c.merchant))
	}
	event := c.publish(t)
	c.exec(t, `DELETE FROM deliveries`)
	c.exec(t, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, test, state, next_attempt_at, queued)
		SELECT gen_random_uuid(), $1::timestamptz + (n / $2) * interval '1 second',
		       ($3::uuid[])[1 + (random() * 2)::int], $4, $5,
		       (ARRAY['task.created', 'document.sent', 'application.status.update'])[1 + n % 3],
		       CASE WHEN n % 10 > 0 THEN ($6::uuid[])[1 + (random() * 2)::int] END,
		       'Pending', n % 10 = 0, state,
		       CASE WHEN state IN ('pending', 'retrying') THEN now() END, false
		  FROM (SELECT n, (ARRAY['pending', 'retrying', 'failed', 'cancelled', 'delivered',
		                         'delivered', 'delivered', 'delivered'])[1 + (random() * 7)::int] AS state
		          FROM generate_series(0, $7::int - 1) AS n) numbered`,
		c.clock.now().Add(-time.Hour), perMoment, uidList(c.subscriptions), event.UID,
		event.OccurredAt, uidList(c.applications), count)
	err := c.DB.SelectContext(t.Context(), &c.rows, `
		SELECT delivery_uid, created_at, subscription_uid, application_uid, state, event
		  FROM deliveries`)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(c.rows, func(a, b crowdRow) int {
		if order := b.CreatedAt.Compare(a.CreatedAt); order != 0 {
			return order
		}
		return bytes.Compare(b.UID[:], a.UID[:])
	})
	return c
}

// uidList writes identifiers as Postgres writes an array.
func uidList(uids []uuid.UUID) string {
	texts := make([]string, len(uids))
	for i, uid := range uids {
		texts[i] = uid.String()
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// matches is what a filter means, one row at a time.
func matches(f webhook.DeliveryFilter, row crowdRow) bool {
	application := row.Application.UUID
	if !row.Application.Valid {
		application = uuid.MustParse(lending.SampleApplicationUID)
	}
	return (f.SubscriptionUID == uuid.Nil || f.SubscriptionUID == row.Subscription) &&
		(f.ApplicationUID == uuid.Nil || f.ApplicationUID == application) &&
		(f.State == "" || f.State == row.State) &&
		(f.Event == "" || f.Event == row.Event) &&
		(f.Since.IsZero() || !row.CreatedAt.Before(f.Since)) &&
		(f.Until.IsZero() || row.CreatedAt.Before(f.Until))
}

// The pages of any filter, put together, are every delivery that matches, each
// once and newest first, whatever is added meanwhile.
func TestPagesAreWhatAFilterMeans(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 300, 7)
	rapid.Check(t, func(r *rapid.T) {
		filter := c.anyFilter(r)
		var want []uuid.UUID
		for _, row := range c.rows {
			if matches(filter, row) {
				want = append(want, row.UID)
			}
		}
		var got []uuid.UUID
		for {
			page, err := c.Deliveries(t.Context(), filter)
			if err != nil {
				r.Fatal(err)
			}
			if len(page.Deliveries) > filter.Limit || len(page.Deliveries) == 0 && len(got) > 0 {
				r.Fatalf("a page of %d after %d rows", len(page.Deliveries), len(got))
			}
			for _, delivery := range page.Deliveries {
				got = append(got, delivery.UID)
			}
			if page.Next.IsZero() {
				break
			}
			// A cursor travels as text.
			if filter.Cursor, err = postgres.ParseCursor(page.Next.String()); err != nil {
				r.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("filter %+v (-want +got):\n%s", filter, diff)
		}
	})
}

func (c *crowd) anyFilter(r *rapid.T) webhook.DeliveryFilter {
	filter := webhook.DeliveryFilter{Limit: rapid.IntRange(1, 60).Draw(r, "limit")}
	sometimes := func(label string) bool { return rapid.Bool().Draw(r, label) }
	if sometimes("by subscription") {
		filter.SubscriptionUID = rapid.SampledFrom(c.subscriptions).Draw(r, "subscription")
	}
	if sometimes("by application") {
		all := append(slices.Clone(c.applications), uuid.MustParse(lending.SampleApplicationUID))
		filter.ApplicationUID = rapid.SampledFrom(all).Draw(r, "application")
	}
	if sometimes("by state") {
		filter.State = rapid.SampledFrom(webhook.DeliveryStates()).Draw(r, "state")
	}
	if sometimes("by event") {
		filter.Event = rapid.SampledFrom(lending.AllEventKinds()).Draw(r, "event")
	}
	if sometimes("since") {
		filter.Since = rapid.SampledFrom(c.rows).Draw(r, "since").CreatedAt
	}
	if sometimes("until") {
		filter.Until = rapid.SampledFrom(c.rows).Draw(r, "until").CreatedAt
	}
	return filter
}

func TestListRefusesALimitThatNoPageHas(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.subscribe(t, "https://hooks.example.com", nil)
	h.publish(t)
	for _, limit := range []int{-1, 0, webhook.MaxPage + 1} {
		_, err := h.Deliveries(t.Context(), webhook.DeliveryFilter{Limit: limit})
		wantRefusal(t, err, lending.CodeValidation, "limit")
		_, _, err = h.Subscriptions(t.Context(), webhook.SubscriptionFilter{Limit: limit})
		wantRefusal(t, err, lending.CodeValidation, "limit")
	}
	_, err := h.Delivery(t.Context(), uuid.New())
	wantRefusal(t, err, lending.CodeNotFound)
}

func TestSubscriptionPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	other := &house{
		Service: h.Service, clock: h.clock, partner: h.newPartner(t), application: h.application,
	}
	var mine, paused []uuid.UUID
	for i := range 7 {
		if i%3 == 0 {
			h.clock.move(time.Second) // the others share a moment
		}
		subscription, _ := h.subscribe(t, "https://hooks.example.com", nil)
		mine = append(mine, subscription.UID)
		if i%2 == 0 {
			h.pause(t, subscription.UID)
			paused = append(paused, subscription.UID)
		}
		deleted, _ := h.subscribe(t, "https://hooks.example.com", nil)
		h.delete(t, deleted.UID)
	}
	foreign, _ := other.subscribe(t, "https://hooks.example.com", nil)

	tests := []struct {
		name   string
		filter webhook.SubscriptionFilter
		want   []uuid.UUID
	}{
		{"all", webhook.SubscriptionFilter{}, append(slices.Clone(mine), foreign.UID)},
		{"of a partner", webhook.SubscriptionFilter{PartnerUID: h.partner}, mine},
		{"paused", webhook.SubscriptionFilter{State: webhook.StatePaused}, paused},
		{
			"paused of another",
			webhook.SubscriptionFilter{PartnerUID: other.partner, State: webhook.StatePaused},
			nil,
		},
	}
	for _, test := range tests {
		for _, limit := range []int{1, 2, 500} {
			filter := test.filter
			filter.Limit = limit
			var got []webhook.Subscription
			for {
				page, next, err := h.Subscriptions(t.Context(), filter)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, page...)
				if filter.Cursor = next; next.IsZero() {
					break
				}
			}
			var uids []uuid.UUID
			for i, subscription := range got {
				uids = append(uids, subscription.UID)
				if i > 0 && subscription.CreatedAt.After(got[i-1].CreatedAt) {
					t.Errorf("%s: an older one before a newer one", test.name)
				}
			}
			byText := func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) }
			slices.SortFunc(uids, byText)
			want := slices.SortedFunc(slices.Values(test.want), byText)
			if diff := cmp.Diff(want, uids); diff != "" {
				t.Errorf("%s, %d a page (-want +got):\n%s", test.name, limit, diff)
			}
		}
	}
}

// Lists stay quick as the log grows: whatever the filter, the month that holds
// the rows is read by an index.
func TestListsUseAnIndex(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 20_000, 3)
	c.exec(t, `ANALYZE deliveries`)
	full := "deliveries" + c.rows[0].CreatedAt.UTC().Format("_y2006m01")
	middle := c.rows[len(c.rows)/2]
	filters := map[string]webhook.DeliveryFilter{
		"none":         {},
		"subscription": {SubscriptionUID: c.subscriptions[0]},
		"application":  {ApplicationUID: c.applications[0]},
		"sample":       {ApplicationUID: uuid.MustParse(lending.SampleApplicationUID)},
		"failed":       {State: webhook.DeliveryFailed},
		"delivered":    {State: webhook.DeliveryDelivered},
		"event":        {Event: lending.EventTaskCreated},
		"time":         {Since: middle.CreatedAt, Until: middle.CreatedAt.Add(time.Minute)},
		"failed of a subscription since": {
			SubscriptionUID: c.subscriptions[0], State: webhook.DeliveryFailed, Since: middle.CreatedAt,
		},
	}
	for name, filter := range filters {
		for _, cursor := range []postgres.Cursor{{}, {At: middle.CreatedAt, UID: middle.UID}} {
			filter.Limit, filter.Cursor = 50, cursor
			query, args := filter.Query()
			var plan []string
			if err := c.DB.SelectContext(t.Context(), &plan, `EXPLAIN `+query, args...); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(plan, "\n")
			if strings.Contains(text, "Seq Scan on "+full) || !strings.Contains(text, full) {
				t.Errorf("filter %s (cursor %t) does not use an index:\n%s", name, !cursor.IsZero(), text)
			}
		}
	}
}
