package delivery_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// workWith delivers everything in the queue, with the services taking turns.
func workWith(t *testing.T, h *webhooktest.Harness, services ...*webhooktest.Services) {
	t.Helper()
	turn := 0
	for jobs := h.Jobs(t); len(jobs) > 0; jobs = h.Jobs(t) {
		for _, job := range jobs {
			service := services[turn%len(services)].Deliveries
			if err := service.Deliver(t.Context(), job, webhooktest.First); err != nil {
				t.Fatal(err)
			}
			turn++
		}
	}
}

func withRate(rate int) func(*subscription.Settings) {
	return func(s *subscription.Settings) { s.Rate = rate }
}

// TestRateHoldsAcrossProcesses makes two services on one database work off a burst: per
// second the endpoint gets the subscription's rate and no more.
func TestRateHoldsAcrossProcesses(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, withRate(5))
	second := h.Another(t)
	var sent []string
	const burst = 32
	for range burst {
		sent = append(sent, string(h.Publish(t).Body))
	}
	// One request may start at once; every later second allows five more.
	for seconds, want := 0, 1; want <= burst; seconds, want = seconds+1, want+5 {
		workWith(t, h, h.Services, second)
		if got := len(endpoint.Requests()); got != want {
			t.Fatalf("after %d s %d requests, want %d", seconds, got, want)
		}
		if queued := h.Count(t, `SELECT count(*) FROM deliveries WHERE queued`); queued != 0 {
			t.Fatalf("%d deliveries hold a job while they wait", queued)
		}
		// Time passes in steps: deliveries are enqueued as they fall due.
		for range 5 {
			h.Clock.Move(200 * time.Millisecond)
			h.EnqueueDue(t)
			workWith(t, h, second, h.Services)
		}
	}
	h.Clock.Move(time.Second)
	h.EnqueueDue(t)
	workWith(t, h, h.Services, second)
	var got []string
	for _, request := range endpoint.Requests() {
		got = append(got, request.Body)
	}
	if !slices.Equal(got, sent) {
		t.Errorf("they came in another order than they were made in:\n%q\n%q", got, sent)
	}
	for _, found := range h.List(t) {
		if found.State != delivery.StateDelivered || found.AttemptCount != 1 {
			t.Errorf("a delivery ended %s after %d attempts", found.State, found.AttemptCount)
		}
	}
}

// TestRateLeavesThreeAttempts postpones each attempt of a failing delivery once: a
// postponement is no attempt, and each attempt takes a slot.
func TestRateLeavesThreeAttempts(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
	h.Subscribe(t, endpoint.URL, withRate(1))
	h.Publish(t)
	h.Publish(t)
	for range 40 {
		h.EnqueueDue(t)
		workWith(t, h, h.Services)
		h.Clock.Move(30 * time.Second)
	}
	if got := len(endpoint.Requests()); got != 6 {
		t.Errorf("%d requests, want three of each delivery", got)
	}
	for _, found := range h.List(t) {
		if found.State != delivery.StateFailed || found.AttemptCount != 3 {
			t.Errorf("a delivery ended %s after %d attempts", found.State, found.AttemptCount)
		}
	}
}

// TestMissedSlotsDoNotBurst stops every process while slots pass.
func TestMissedSlotsDoNotBurst(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, withRate(2))
	for range 21 {
		h.Publish(t)
	}
	workWith(t, h, h.Services)
	h.Clock.Move(time.Hour)
	h.EnqueueDue(t)
	workWith(t, h, h.Services)
	// The slots of the last five seconds are still valid; there are none here.
	if got := len(endpoint.Requests()); got > 2 {
		t.Errorf("%d requests at once after an hour without a process", got)
	}
	for range 40 {
		h.Clock.Move(500 * time.Millisecond)
		h.EnqueueDue(t)
		workWith(t, h, h.Services)
	}
	if got := len(endpoint.Requests()); got != 21 {
		t.Errorf("%d requests in the end, want 21", got)
	}
}

// TestSlotsOutlastTheRest scans for due deliveries as rarely as a process ever does: each
// goes at its slot or at the next scan, in the order of the line.
func TestSlotsOutlastTheRest(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, withRate(1))
	var want, got []string
	for range 20 {
		want = append(want, string(h.Publish(t).Body))
	}
	workWith(t, h, h.Services)
	for began := h.Clock.Now(); h.Clock.Now().Sub(began) < 20*time.Second; {
		h.Clock.Move(delivery.DueRest + 250*time.Millisecond)
		h.EnqueueDue(t)
		workWith(t, h, h.Services)
	}
	for _, request := range endpoint.Requests() {
		got = append(got, request.Body)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d requests in 20 s, want %d in their order:\n%q\n%q",
			len(got), len(want), got, want)
	}
}

// TestExpensiveScansRest: after scans for due deliveries took long twice in a row, the next is
// postponed, unless there was much to enqueue.
func TestExpensiveScansRest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slow string
		want []bool
	}{
		"to find them is slow": {"UPDATE ON deliveries", []bool{true, true, false}},
		// A single expensive scan postpones nothing, however slow the machine is.
		"to enqueue them is slow": {"INSERT ON river_job", []bool{true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			h.Subscribe(t, "https://hooks.example.com/", nil)
			h.Backlog(t, 1, h.Clock.Now())
			h.Exec(t, `
				CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END $$`)
			h.Exec(t, `CREATE TRIGGER pause AFTER `+test.slow+` EXECUTE FUNCTION pause()`)
			looks := delivery.DuePoller{Deliveries: h.Deliveries}
			var got []bool
			for range test.want {
				h.Exec(t, `UPDATE deliveries SET queued = false`)
				if err := looks.Enqueue(t.Context()); err != nil {
					t.Fatal(err)
				}
				got = append(got, h.Count(t, `SELECT count(*) FROM deliveries WHERE queued`) == 1)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the looks found what was due: %v, want %v", got, test.want)
			}
		})
	}
}

// TestChangedRateHoldsForWhatWaits removes the rate limit while deliveries wait.
func TestChangedRateHoldsForWhatWaits(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	made, _ := h.Subscribe(t, endpoint.URL, withRate(1))
	var want []string
	for range 9 {
		want = append(want, string(h.Publish(t).Body))
	}
	workWith(t, h, h.Services)
	none := 0
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		changed, _, err := h.Subscriptions.Amend(ctx, tx, made.UID, subscription.Patch{Rate: &none},
			"operator")
		if err == nil && (changed.Rate != 0 || changed.Version != 2) {
			t.Errorf("amended to %+v", changed)
		}
		return err
	})
	h.EnqueueDue(t)
	workWith(t, h, h.Services)
	var got []string
	for _, request := range endpoint.Requests() {
		got = append(got, request.Body)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestALongLineIsRebooked changes the rate of a subscription with more waiting deliveries than one
// transaction rewrites: a job makes all of them fall due in order, unless the rate changes again.
func TestALongLineIsRebooked(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := h.Subscribe(t, "https://hooks.example.com/", withRate(1))
	h.Backlog(t, 2500, h.Clock.Now())
	h.Exec(t, `
		UPDATE deliveries d
		   SET slot_at = n.slot_at, next_attempt_at = n.slot_at
		  FROM (SELECT delivery_uid,
		               $1::timestamptz + row_number() OVER (ORDER BY delivery_uid DESC)
		                                 * interval '1 second' AS slot_at
		          FROM deliveries) AS n
		 WHERE d.delivery_uid = n.delivery_uid`, h.Clock.Now())
	setRate := func(rate int) {
		t.Helper()
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			patch := subscription.Patch{Rate: &rate}
			_, _, err := h.Subscriptions.Amend(ctx, tx, made.UID, patch, "operator")
			return err
		})
	}
	booked := func() int {
		return h.Count(t, `SELECT count(*) FROM deliveries WHERE slot_at IS NOT NULL`)
	}
	wantBooked := func(when string, want int) {
		t.Helper()
		if got := booked(); got != want {
			t.Errorf("%s %d deliveries have their slots, want %d", when, got, want)
		}
	}
	rebook := func() {
		t.Helper()
		if err := h.Subscriptions.Backlogs.RebookAll(t.Context(), made.UID); err != nil {
			t.Fatal(err)
		}
	}
	setRate(500)
	wantBooked("after the change itself", 2500)
	h.Exec(t, `
		CREATE FUNCTION change_again() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			UPDATE subscriptions SET rate = 7;
			RETURN NULL;
		END $$`)
	h.Exec(t, `CREATE TRIGGER change_again AFTER UPDATE ON deliveries EXECUTE FUNCTION change_again()`)
	rebook()
	wantBooked("as the rate changes again", 1500)
	h.Exec(t, `DROP TRIGGER change_again ON deliveries`)
	setRate(500)
	rebook()
	wantBooked("in the end", 0)
	if got := h.Count(t, `
		SELECT count(*)
		  FROM (SELECT next_attempt_at, lag(next_attempt_at) OVER (ORDER BY delivery_uid DESC) AS before
		          FROM deliveries) AS line
		 WHERE next_attempt_at > before OR before IS NULL`); got != 2500 {
		t.Errorf("%d of 2500 deliveries fall due in their order", got)
	}
	if got := h.EnqueueDue(t); got != delivery.DueBatch {
		t.Errorf("%d deliveries are due at once, want a whole batch", got)
	}
	jobs := `SELECT count(*) FROM river_job WHERE args @> '{"rebook": true}'`
	if got := h.Count(t, jobs); got != 2 {
		t.Errorf("%d jobs are to rebook, want one for each change", got)
	}
}

// TestCancelledDeliveriesLeaveTheirSlots cancels from a long line: the remaining
// deliveries, and later ones, go at once.
func TestCancelledDeliveriesLeaveTheirSlots(t *testing.T) {
	t.Parallel()
	type line struct {
		*webhooktest.Harness
		waiting []uuid.UUID
		until   time.Time
	}
	for name, cancel := range map[string]func(context.Context, *postgres.Tx, line) (int, error){
		"chosen by hand": func(ctx context.Context, tx *postgres.Tx, l line) (int, error) {
			ended, err := l.Deliveries.Cancel(ctx, tx, l.waiting)
			return len(ended), err
		},
		"all after a restore": func(ctx context.Context, tx *postgres.Tx, l line) (int, error) {
			return l.Deliveries.CancelOpen(ctx, tx, l.until)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			endpoint := webhooktest.NewReceiver(t, nil)
			h.Subscribe(t, endpoint.URL, withRate(1))
			for range 50 {
				h.Publish(t)
			}
			workWith(t, h, h.Services)
			before := len(endpoint.Requests())
			long := line{h, nil, h.Clock.Now()}
			for _, one := range h.List(t) {
				if !one.State.IsFinal() {
					long.waiting = append(long.waiting, one.UID)
				}
			}
			h.Clock.Move(time.Millisecond)
			want := []string{string(h.Publish(t).Body)}
			workWith(t, h, h.Services)
			h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
				ended, err := cancel(ctx, tx, long)
				if ended != 50-before {
					t.Errorf("cancelled %d deliveries beside %d that went", ended, before)
				}
				return err
			})
			h.EnqueueDue(t)
			want = append(want, string(h.Publish(t).Body))
			for range 3 {
				workWith(t, h, h.Services)
				h.Clock.Move(time.Second)
				h.EnqueueDue(t)
			}
			var got []string
			for _, request := range endpoint.Requests()[before:] {
				got = append(got, request.Body)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestRateIsChecked(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	for _, rate := range []int{-1, subscription.MaxRate + 1} {
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := h.Subscriptions.Subscribe(ctx, tx, h.Partner, subscription.Settings{
				URL: "https://partner.example/hook", Auth: sender.AuthHMAC,
				Events: []string{subscription.AllEvents}, Rate: rate,
			}, "operator")
			return err
		})
		webhooktest.WantRefusal(t, err, lending.CodeValidation, "rate")
	}
}
