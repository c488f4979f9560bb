package event_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

func record(t *testing.T, w *apptest.Harness, event lending.Event) {
	t.Helper()
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		return w.Events.Record(ctx, tx, event)
	})
}

func taskCreated(uid uuid.UUID) lending.Event {
	return lending.TaskCreated(uid.String(), "Sign", lending.TaskPending)
}

func TestTimesOfEventsNeverRepeat(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	app, other := w.Application(t), w.Application(t)
	start := clock.Now()
	// The clock stands still, steps back, runs slowly and jumps.
	steps := []time.Duration{
		0, 0, -time.Hour, 0, time.Hour, time.Microsecond, 0, 10 * time.Microsecond, time.Minute, 0,
	}
	for _, step := range steps {
		clock.Move(step)
		w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			for range 2 { // two in one transaction
				if err := w.Events.Record(ctx, tx, taskCreated(app.UID)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	all := w.EventsOf(t, app.UID)
	if len(all) != 2*len(steps) {
		t.Fatalf("%d events, want %d", len(all), 2*len(steps))
	}
	for i, recorded := range all {
		if i > 0 && !recorded.OccurredAt.After(all[i-1].OccurredAt) {
			t.Errorf("event %d is of %s, the one before of %s", i, recorded.OccurredAt, all[i-1].OccurredAt)
		}
		if !strings.Contains(recorded.Body,
			`"timestamp":"`+lending.FormatTimestamp(recorded.OccurredAt)+`"`) {
			t.Errorf("the body of the event of %s says %s", recorded.OccurredAt, recorded.Body)
		}
	}
	if got := all[len(all)-4].OccurredAt; !got.Equal(clock.Now()) {
		t.Errorf("after a leap the time is %s, the clock shows %s", got, clock.Now())
	}
	if first := all[0].OccurredAt; !first.Equal(start) {
		t.Errorf("the first event is of %s, the clock showed %s", first, start)
	}
	record(t, w, taskCreated(other.UID))
	if got := w.EventsOf(t, other.UID)[0].OccurredAt; !got.Equal(clock.Now()) {
		t.Errorf("another application's event is of %s, the clock shows %s", got, clock.Now())
	}
}

func TestSimultaneousEventsHaveTheirOwnTimes(t *testing.T) {
	t.Parallel()
	w := apptest.NewAt(t, apptest.NewClock())
	app := w.Application(t)
	var together sync.WaitGroup
	const count = 40
	for range count {
		together.Go(func() {
			err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
				return w.Events.Record(ctx, tx, taskCreated(app.UID))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	times := make(map[time.Time]bool)
	for _, recorded := range w.EventsOf(t, app.UID) {
		times[recorded.OccurredAt.UTC()] = true
	}
	if len(times) != count {
		t.Errorf("%d different times of %d events", len(times), count)
	}
}

func TestEventGoesToWhoeverWantsIt(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	sibling := w.NewMerchant(t, w.Partner, "Sibling")
	app := w.Application(t)
	stranger := w.NewPartner(t, "Stranger")
	elsewhere := *w
	elsewhere.Partner = stranger

	subscribe := func(change func(*subscription.Settings)) subscription.Subscription {
		return w.Subscribe(t, change)
	}
	events := func(events ...string) func(*subscription.Settings) {
		return func(s *subscription.Settings) { s.Events = events }
	}
	merchants := func(uids ...uuid.UUID) func(*subscription.Settings) {
		return func(s *subscription.Settings) { s.Merchants = uids }
	}
	paused := subscribe(nil)
	deleted := subscribe(nil)
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := w.Webhooks.Subscriptions.Pause(ctx, tx, paused.UID, "operator"); err != nil {
			return err
		}
		_, err := w.Webhooks.Subscriptions.Delete(ctx, tx, deleted.UID, "operator")
		return err
	})
	tests := []struct {
		name         string
		subscription subscription.Subscription
		want         bool
	}{
		{"every event, every merchant", subscribe(nil), true},
		{"this kind", subscribe(events("task.created")), true},
		{"this kind and another", subscribe(events("task.updated", "task.created")), true},
		{"another kind", subscribe(events("task.updated")), false},
		{"this merchant", subscribe(merchants(w.Merchant)), true},
		{"this merchant and another", subscribe(merchants(sibling, w.Merchant)), true},
		{"another merchant", subscribe(merchants(sibling)), false},
		{"paused", paused, true},
		{"deleted", deleted, false},
		{"another partner's", elsewhere.Subscribe(t, nil), false},
	}
	record(t, w, taskCreated(app.UID))
	late := subscribe(nil)

	found := make(map[uuid.UUID]int)
	for _, sent := range w.DeliveriesOf(t, app.UID) {
		found[sent.SubscriptionUID]++
	}
	for _, test := range tests {
		want := 0
		if test.want {
			want = 1
		}
		if got := found[test.subscription.UID]; got != want {
			t.Errorf("%s: %d deliveries, want %d", test.name, got, want)
		}
	}
	if found[late.UID] != 0 {
		t.Error("a subscription got an event from before its time")
	}
	if jobs := w.Queued(t, delivery.Queue); jobs != len(w.DeliveriesOf(t, app.UID)) {
		t.Errorf("%d jobs for %d deliveries", jobs, len(w.DeliveriesOf(t, app.UID)))
	}
}

func TestEveryDeliveryHasTheSameBytes(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Application(t)
	for range 3 {
		w.Subscribe(t, nil)
	}
	record(t, w, lending.TaskCreated(app.UID.String(), `Sign "this" – & <that>`, lending.TaskPending))
	body := w.EventsOf(t, app.UID)[0].Body
	deliveries := w.DeliveriesOf(t, app.UID)
	var resent []uuid.UUID
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		resent, err = w.Webhooks.Deliveries.Resend(ctx, tx, []uuid.UUID{deliveries[0].UID}, "support", "")
		return err
	})
	uids := resent
	for _, sent := range deliveries {
		uids = append(uids, sent.UID)
	}
	for _, uid := range uids {
		detail, err := w.Webhooks.Deliveries.Get(t.Context(), uid)
		if err != nil {
			t.Fatal(err)
		}
		if string(detail.Body) != body {
			t.Errorf("delivery %s has the body %s, the event %s", uid, detail.Body, body)
		}
	}
}

func TestRecordForNoApplication(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	for _, uid := range []string{uuid.NewString(), "app-1"} {
		err := w.Try(t, func(ctx context.Context, tx *postgres.Tx) error {
			return w.Events.Record(ctx, tx, lending.TaskCreated(uid, "Sign", lending.TaskPending))
		})
		if err == nil {
			t.Errorf("an event of application %q was recorded", uid)
		}
	}
	if count := w.Count(t, `SELECT count(*) FROM events`); count != 0 {
		t.Errorf("%d events", count)
	}
}

func TestMailsSayWhatIsKnown(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	solar := w.NewProduct(t, "SOLAR", "40,40,20")
	app := w.Application(t, apptest.In(lending.StatusHardPull),
		apptest.Selecting(solar))
	w.Move(t, app.UID, lending.StatusPendClearance)
	record(t, w, taskCreated(app.UID))

	plain := []string{"first_name=Ana", "merchant_name=Sunny Roofs", "project_name=Roof"}
	offered := append([]string{
		"approved_amount=10000.00", "interest_rate=7.99", "product_name=Product SOLAR", "term=120",
	}, plain...)
	with := func(params []string, more ...string) string {
		all := append(slices.Clone(params), more...)
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	want := map[string]bool{
		"stipulation suppressed " + with(plain, "status=Hard Pull Authorization"): true,
		"welcome queued " + with(offered):                                         true,
		"stipulation queued " + with(offered, "status=Pend Clearance"):            true,
		"task queued " + with(offered, "task_title=Sign"):                         true,
	}
	filter := email.Filter{ApplicationUID: app.UID}
	mails, _, err := email.List(t.Context(), w.DB, filter, postgres.Paging{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, mail := range mails {
		detail, err := email.Get(t.Context(), w.DB, mail.EmailUID)
		if err != nil {
			t.Fatal(err)
		}
		var params []string
		for name, value := range detail.Params {
			params = append(params, name+"="+value)
		}
		line := fmt.Sprint(mail.Kind, " ", mail.State, " ", with(params))
		if !want[line] {
			t.Errorf("unexpected mail: %s", line)
		}
		delete(want, line)
		if mail.ToAddress != "ana@example.com" || mail.ToName != "Ana Lima" {
			t.Errorf("the %s mail goes to %s <%s>", mail.Kind, mail.ToName, mail.ToAddress)
		}
	}
	for line := range want {
		t.Errorf("missing mail: %s", line)
	}
}

func TestWelcomeOnce(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Application(t, apptest.From(lending.SourceConsole))
	for range 3 {
		w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			return w.Events.Welcome(ctx, tx, app.UID)
		})
	}
	if mails := w.MailsOf(t, app.UID); len(mails) != 1 || mails[0] != "welcome: queued" {
		t.Errorf("mails %q, want one welcome", mails)
	}
	if jobs := w.Queued(t, email.Queue); jobs != 1 {
		t.Errorf("%d jobs, want 1", jobs)
	}
}
