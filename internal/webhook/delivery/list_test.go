package delivery_test

import (
	"bytes"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// crowd is a harness with many deliveries, several with the same creation time.
type crowd struct {
	*webhooktest.Harness
	subscriptions, applications []uuid.UUID
	// rows are newest first.
	rows []crowdRow
}

type crowdRow struct {
	UID          uuid.UUID         `db:"delivery_uid"`
	CreatedAt    time.Time         `db:"created_at"`
	Subscription uuid.UUID         `db:"subscription_uid"`
	Application  uuid.NullUUID     `db:"application_uid"`
	State        delivery.State    `db:"state"`
	Event        lending.EventKind `db:"event"`
	Class        sql.NullString    `db:"last_error_class"`
	Status       sql.NullInt64     `db:"last_http_status"`
	Took         sql.NullInt64     `db:"last_duration_us"`
	Test         bool              `db:"test"`
	Resend       bool              `db:"resend"`
}

// newCrowd creates count deliveries, perMoment of them with the same creation time.
func newCrowd(t testing.TB, count, perMoment int) *crowd {
	t.Helper()
	c := &crowd{Harness: webhooktest.New(t)}
	for range 3 {
		subscribed, _ := c.Subscribe(t, "https://hooks.example.com", nil)
		c.subscriptions = append(c.subscriptions, subscribed.UID)
	}
	for range 30 {
		c.applications = append(c.applications, c.NewApplication(t, c.Merchant))
	}
	event := c.Publish(t)
	c.Exec(t, `DELETE FROM deliveries`)
	c.Exec(t, `
		INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid, event_at,
		                        event, application_uid, status, test, state, next_attempt_at, queued,
		                        last_error_class, last_http_status, last_duration_us, resend_of,
		                        resent_by)
		SELECT gen_random_uuid(), $1::timestamptz + (n / $2) * interval '1 second',
		       ($3::uuid[])[1 + (random() * 2)::int], $4, $5,
		       (ARRAY['task.created', 'document.sent', 'application.status.update'])[1 + n % 3],
		       CASE WHEN n % 10 > 0 THEN ($6::uuid[])[1 + (random() * 29)::int] END,
		       'Pending', n % 10 = 0, state,
		       CASE WHEN state IN ('pending', 'retrying') THEN now() END, false,
		       CASE WHEN state IN ('failed', 'retrying')
		            THEN (ARRAY['http_5xx', 'http_4xx', 'timeout'])[1 + n % 3] END,
		       CASE WHEN state = 'delivered' THEN (ARRAY[200, 200, 204, 202])[1 + n % 4]
		            WHEN state IN ('failed', 'retrying')
		            THEN (ARRAY[503, 404, NULL])[1 + n % 3] END,
		       CASE WHEN n % 50 = 0 THEN 6000000 ELSE 40000 END,
		       CASE WHEN n % 20 = 7 THEN gen_random_uuid() END,
		       CASE WHEN n % 20 = 7 THEN 'sam' END
		  FROM (SELECT n, (ARRAY['pending', 'retrying', 'failed', 'cancelled', 'delivered',
		                         'delivered', 'delivered', 'delivered'])[1 + (random() * 7)::int] AS state
		          FROM generate_series(0, $7::int - 1) AS n) numbered`,
		c.Clock.Now().Add(-time.Hour), perMoment, uidList(c.subscriptions), event.UID,
		event.OccurredAt, uidList(c.applications), count)
	err := c.DB.SelectContext(t.Context(), &c.rows, `
		SELECT delivery_uid, created_at, subscription_uid, application_uid, state, event,
		       last_error_class, last_http_status, last_duration_us, test,
		       resend_of IS NOT NULL AS resend
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

// uidList formats identifiers as a Postgres array.
func uidList(uids []uuid.UUID) string {
	texts := make([]string, len(uids))
	for i, uid := range uids {
		texts[i] = uid.String()
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// matches applies a filter to one row, as its documentation says.
func matches(f delivery.Filter, row crowdRow) bool {
	application := row.Application.UUID
	if !row.Application.Valid {
		application = uuid.MustParse(lending.SampleApplicationUID)
	}
	return (f.SubscriptionUID == uuid.Nil || f.SubscriptionUID == row.Subscription) &&
		(f.ApplicationUID == uuid.Nil || f.ApplicationUID == application) &&
		(f.State == "" || f.State == row.State) &&
		(f.Event == "" || f.Event == row.Event) &&
		(f.ErrorClass == "" || string(f.ErrorClass) == row.Class.String) &&
		(f.HTTPStatus == 0 || int64(f.HTTPStatus) == row.Status.Int64) &&
		(f.HTTPClass == 0 || int64(f.HTTPClass) == row.Status.Int64/100) &&
		(f.Test == nil || *f.Test == row.Test) &&
		(f.Resend == nil || *f.Resend == row.Resend) &&
		(!f.Slow || row.Took.Int64 >= delivery.SlowAfter.Microseconds()) &&
		(f.Since.IsZero() || !row.CreatedAt.Before(f.Since)) &&
		(f.Until.IsZero() || row.CreatedAt.Before(f.Until))
}

// The pages of any filter together contain every matching delivery, each once and newest
// first, whatever is added meanwhile.
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
		page := postgres.Paging{Limit: rapid.IntRange(1, 60).Draw(r, "limit")}
		for {
			rows, next, err := c.Deliveries.List(t.Context(), filter, page)
			if err != nil {
				r.Fatal(err)
			}
			if len(rows) > page.Limit || len(rows) == 0 && len(got) > 0 {
				r.Fatalf("a page of %d after %d rows", len(rows), len(got))
			}
			for _, found := range rows {
				got = append(got, found.UID)
			}
			if next.IsZero() {
				break
			}
			// A cursor is passed on as text.
			if page.From, err = postgres.ParseCursor(next.String()); err != nil {
				r.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("filter %+v (-want +got):\n%s", filter, diff)
		}
	})
}

func (c *crowd) anyFilter(r *rapid.T) delivery.Filter {
	var filter delivery.Filter
	sometimes := func(label string) bool { return rapid.IntRange(0, 3).Draw(r, label) == 0 }
	if sometimes("by subscription") {
		filter.SubscriptionUID = rapid.SampledFrom(c.subscriptions).Draw(r, "subscription")
	}
	if sometimes("by application") {
		all := append(slices.Clone(c.applications), uuid.MustParse(lending.SampleApplicationUID))
		filter.ApplicationUID = rapid.SampledFrom(all[len(all)-4:]).Draw(r, "application")
	}
	if sometimes("by state") {
		filter.State = rapid.SampledFrom(delivery.States()).Draw(r, "state")
	}
	if sometimes("by event") {
		filter.Event = rapid.SampledFrom(lending.AllEventKinds()).Draw(r, "event")
	}
	if sometimes("by answer") {
		filter.HTTPStatus = rapid.SampledFrom([]int{200, 202, 204, 404, 503, 500}).Draw(r, "status")
	}
	if sometimes("by class of answer") {
		filter.HTTPClass = rapid.IntRange(2, 5).Draw(r, "class")
	}
	if sometimes("by error") {
		filter.ErrorClass = rapid.SampledFrom(sender.ErrorClasses()).Draw(r, "error")
	}
	if sometimes("by test") {
		filter.Test = new(rapid.Bool().Draw(r, "test"))
	}
	if sometimes("by re-send") {
		filter.Resend = new(rapid.Bool().Draw(r, "resend"))
	}
	filter.Slow = rapid.IntRange(0, 9).Draw(r, "slow") == 0
	if sometimes("by partner") {
		filter.PartnerUID = c.Partner
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
	h := webhooktest.New(t)
	h.Subscribe(t, "https://hooks.example.com", nil)
	h.Publish(t)
	for _, limit := range []int{-1, 0, postgres.MaxPage + 1} {
		page := postgres.Paging{Limit: limit}
		_, _, err := h.Deliveries.List(t.Context(), delivery.Filter{}, page)
		webhooktest.WantRefusal(t, err, lending.CodeValidation, "limit")
		_, _, err = h.Subscriptions.List(t.Context(), subscription.Filter{}, page)
		webhooktest.WantRefusal(t, err, lending.CodeValidation, "limit")
	}
	_, err := h.Deliveries.Get(t.Context(), uuid.New())
	webhooktest.WantRefusal(t, err, lending.CodeNotFound)
}

func TestSubscriptionPages(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	other := &webhooktest.Harness{
		Services: h.Services, Clock: h.Clock, Partner: h.NewPartner(t), Application: h.Application,
	}
	var mine, paused []uuid.UUID
	for i := range 7 {
		if i%3 == 0 {
			h.Clock.Move(time.Second) // the others share a time
		}
		subscribed, _ := h.Subscribe(t, "https://hooks.example.com", nil)
		mine = append(mine, subscribed.UID)
		if i%2 == 0 {
			h.Pause(t, subscribed.UID)
			paused = append(paused, subscribed.UID)
		}
		deleted, _ := h.Subscribe(t, "https://hooks.example.com", nil)
		h.Delete(t, deleted.UID)
	}
	foreign, _ := other.Subscribe(t, "https://hooks.example.com", nil)

	tests := []struct {
		name   string
		filter subscription.Filter
		want   []uuid.UUID
	}{
		{"all", subscription.Filter{}, append(slices.Clone(mine), foreign.UID)},
		{"of a partner", subscription.Filter{PartnerUID: h.Partner}, mine},
		{"paused", subscription.Filter{State: subscription.StatePaused}, paused},
		{
			"paused of another",
			subscription.Filter{PartnerUID: other.Partner, State: subscription.StatePaused},
			nil,
		},
	}
	for _, test := range tests {
		for _, limit := range []int{1, 2, 500} {
			asked := postgres.Paging{Limit: limit}
			var got []subscription.Subscription
			for {
				page, next, err := h.Subscriptions.List(t.Context(), test.filter, asked)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, page...)
				if asked.From = next; next.IsZero() {
					break
				}
			}
			var uids []uuid.UUID
			for i, subscribed := range got {
				uids = append(uids, subscribed.UID)
				if i > 0 && subscribed.CreatedAt.After(got[i-1].CreatedAt) {
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

// Lists stay quick as the log grows: for any filter, or any two filters, the months that
// contain the rows are read by an index, to list and to count.
func TestListsUseAnIndex(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 50_000, 3)
	c.Exec(t, `ANALYZE`)
	filters := c.everyFilter()
	for i, one := range filters {
		c.wantIndex(t, one.name, one.set)
		for _, other := range filters[i+1:] {
			c.wantIndex(t, one.name+" and "+other.name, one.set, other.set)
		}
	}
}

// A reader of all of a partner's merchants, however many applications these have, sees all of
// its deliveries without any application being looked up; a reader of some of them sees theirs.
func TestReadersOfAllMerchants(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 300, 3)
	other := c.NewMerchant(t, c.Partner)
	c.applications = append(c.applications, c.NewApplication(t, other))
	c.Exec(t, `
		UPDATE deliveries
		   SET application_uid = $1
		 WHERE application_uid = $2`, c.applications[30], c.applications[0])
	var ofOthers, tests int
	err := c.DB.QueryRow(`
		SELECT count(*) FILTER (WHERE application_uid = $1), count(*) FILTER (WHERE test)
		  FROM deliveries`, c.applications[30]).Scan(&ofOthers, &tests)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		merchants []uuid.UUID
		want      int
		looks     bool
	}{
		{"all", []uuid.UUID{c.Merchant, other}, 300, false},
		{"the first", []uuid.UUID{c.Merchant}, 300 - ofOthers, true},
		{"the other", []uuid.UUID{other}, ofOthers + tests, true},
	} {
		reader := delivery.Reader{PartnerUID: c.Partner, Merchants: test.merchants}
		found, _, err := c.Deliveries.ListFor(t.Context(), reader, delivery.Filter{},
			postgres.Paging{Limit: 500})
		if err != nil || len(found) != test.want {
			t.Errorf("%s: %d deliveries, %v; want %d", test.name, len(found), err, test.want)
		}
		query, args, err := c.Deliveries.Query(t.Context(),
			delivery.Filter{PartnerUID: c.Partner, Reader: &reader}, postgres.Paging{Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		err = c.DB.SelectContext(t.Context(), &plan, `EXPLAIN (ANALYZE, COSTS OFF) `+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		looks := slices.ContainsFunc(plan, func(line string) bool {
			return strings.Contains(line, " on applications ") && !strings.Contains(line, "never executed")
		})
		if looks != test.looks {
			t.Errorf("%s: applications are looked up: %t\n%s", test.name, looks, strings.Join(plan, "\n"))
		}
	}
}

type namedFilter struct {
	name string
	set  func(*asked)
}

// asked holds the parameters of a list.
type asked struct {
	delivery.Filter

	from postgres.Cursor
}

func (c *crowd) everyFilter() []namedFilter {
	type filter = asked
	middle := c.rows[len(c.rows)/2]
	sample := uuid.MustParse(lending.SampleApplicationUID)
	return []namedFilter{
		{"none", func(*filter) {}},
		{"subscription", func(f *filter) { f.SubscriptionUID = c.subscriptions[0] }},
		{"partner", func(f *filter) { f.PartnerUID = c.Partner }},
		{"merchant", func(f *filter) { f.MerchantUID = c.Merchant }},
		{"application", func(f *filter) { f.ApplicationUID = c.applications[0] }},
		{"sample", func(f *filter) { f.ApplicationUID = sample }},
		{"failed", func(f *filter) { f.State = delivery.StateFailed }},
		{"delivered", func(f *filter) { f.State = delivery.StateDelivered }},
		{"event", func(f *filter) { f.Event = lending.EventTaskCreated }},
		{"answer", func(f *filter) { f.HTTPStatus = 404 }},
		{"other success", func(f *filter) { f.HTTPStatus = 204 }},
		{"class of answer", func(f *filter) { f.HTTPClass = 5 }},
		{"error", func(f *filter) { f.ErrorClass = sender.ClassTimeout }},
		{"test", func(f *filter) { f.Test = new(true) }},
		{"no test", func(f *filter) { f.Test = new(false) }},
		{"re-send", func(f *filter) { f.Resend = new(true) }},
		{"slow", func(f *filter) { f.Slow = true }},
		{"since", func(f *filter) { f.Since = middle.CreatedAt }},
		{"until", func(f *filter) { f.Until = middle.CreatedAt }},
		{"cursor", func(f *filter) {
			f.from = postgres.Cursor{At: middle.CreatedAt, UID: middle.UID}
		}},
	}
}

// wantIndex fails the test if a page or its count scans a whole month.
func (c *crowd) wantIndex(t *testing.T, name string, set ...func(*asked)) {
	t.Helper()
	var filter asked
	for _, each := range set {
		each(&filter)
	}
	list, listArgs, err := c.Deliveries.Query(t.Context(), filter.Filter,
		postgres.Paging{From: filter.from, Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	// This share of the rows corresponds to ten thousand of millions.
	count, countArgs, err := c.Deliveries.CountQuery(t.Context(), filter.Filter, 250)
	if err != nil {
		t.Fatal(err)
	}
	for query, args := range map[string][]any{list: listArgs, count: countArgs} {
		var plan []string
		if err := c.DB.SelectContext(t.Context(), &plan, `EXPLAIN `+query, args...); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text := strings.Join(plan, "\n")
		full := "deliveries" + c.rows[0].CreatedAt.UTC().Format("_y2006m01")
		if strings.Contains(text, "Seq Scan on "+full) {
			t.Errorf("the filter %s reads all of %s:\n%s\n%s", name, full, query, text)
		}
	}
}

// Cancelling ends waiting deliveries and leaves ended ones alone.
func TestCancel(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, 60, 3)
	var chosen []uuid.UUID
	waiting := 0
	for _, row := range c.rows[:40] {
		chosen = append(chosen, row.UID)
		if !row.State.IsFinal() {
			waiting++
		}
	}
	var ended []uuid.UUID
	err := c.DB.InTx(t.Context(), func(tx *postgres.Tx) (err error) {
		ended, err = c.Deliveries.Cancel(t.Context(), tx, append(chosen, uuid.New()))
		return err
	})
	if err != nil || len(ended) != waiting {
		t.Fatalf("ended %d, %v; want the %d that wait", len(ended), err, waiting)
	}
	after, err := c.Deliveries.ByUIDs(t.Context(), chosen)
	if err != nil || len(after) != len(chosen) {
		t.Fatalf("%d deliveries, %v", len(after), err)
	}
	for i, found := range after {
		want := c.rows[i].State
		if !want.IsFinal() {
			want = delivery.StateCancelled
		}
		if found.UID != chosen[i] || found.State != want {
			t.Errorf("delivery %d is %s, want %s", i, found.State, want)
		}
	}
}
