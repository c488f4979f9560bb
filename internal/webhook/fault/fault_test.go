package fault_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/secret"
	"drawbridge/internal/waittest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/fault"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// bench is a sandbox subscription with an endpoint that stores its requests.
type bench struct {
	*webhooktest.Harness
	*fault.Service

	t        *testing.T
	endpoint *webhooktest.Receiver
	to       uuid.UUID
	secret   secret.String
}

func newBench(t *testing.T, change func(*subscription.Settings)) *bench {
	t.Helper()
	b := &bench{Harness: webhooktest.New(t), t: t, endpoint: webhooktest.NewReceiver(t, nil)}
	b.Service = &fault.Service{DB: b.Harness.DB}
	b.Deliveries.Faults = b.Service
	b.subscribe(b.endpoint.URL, change)
	return b
}

func (b *bench) subscribe(url string, change func(*subscription.Settings)) {
	b.t.Helper()
	made, key := b.Subscribe(b.t, url, change)
	b.to, b.secret = made.UID, key
}

func (b *bench) order(f delivery.Fault, count, delay int) (placed fault.Order) {
	b.t.Helper()
	order := fault.Order{SubscriptionUID: b.to, Fault: f, Count: count}
	if delay > 0 {
		order.Delay = &delay
	}
	b.Do(b.t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		placed, err = b.Place(ctx, tx, order)
		return err
	})
	return placed
}

// publish records an event a moment later and returns its body.
func (b *bench) publish() string {
	b.t.Helper()
	b.Clock.Move(time.Millisecond)
	return string(b.Harness.Publish(b.t).Body)
}

// pass advances the clock and works what has fallen due.
func (b *bench) pass(by time.Duration) {
	b.t.Helper()
	b.Clock.Move(by)
	b.EnqueueDue(b.t)
	b.Work(b.t)
}

func (b *bench) bodies() []string {
	var bodies []string
	for _, request := range b.endpoint.Requests() {
		bodies = append(bodies, request.Body)
	}
	return bodies
}

func (b *bench) wantBodies(what string, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.bodies()); diff != "" {
		b.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func (b *bench) remaining() (left []int) {
	b.t.Helper()
	pending, err := b.Pending(b.t.Context(), []uuid.UUID{b.to})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, order := range pending {
		left = append(left, order.Remaining)
	}
	return left
}

func TestDuplicateIsNoAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.order(delivery.FaultDuplicate, 1, 0)
	first := b.publish()
	b.Work(t)
	b.wantBodies("one event, twice", first, first)
	if detail := b.Newest(t); len(detail.Attempts) != 1 ||
		detail.Attempts[0].Fault != delivery.FaultDuplicate || detail.State != delivery.StateDelivered {
		t.Errorf("the delivery is %+v", detail)
	}
	second := b.publish()
	b.Work(t)
	b.wantBodies("the next one", first, first, second)
	if detail := b.Newest(t); detail.Attempts[0].Fault != "" {
		t.Errorf("the next attempt has the fault %q", detail.Attempts[0].Fault)
	}
	if left := b.remaining(); left != nil {
		t.Errorf("orders with %v left", left)
	}
}

// TestOrdersQueue places several orders: each applies to as many deliveries as it says, in turn.
func TestOrdersQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.order(delivery.FaultDuplicate, 2, 0)
	b.order(delivery.FaultBadSignature, 1, 0)
	for range 4 {
		b.publish()
	}
	b.Work(t)
	var got []delivery.Fault
	for _, one := range slices.Backward(b.List(t)) {
		got = append(got, b.Detail(t, one.UID).Attempts[0].Fault)
	}
	want := []delivery.Fault{
		delivery.FaultDuplicate, delivery.FaultDuplicate, delivery.FaultBadSignature, "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReorder(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.order(delivery.FaultReorder, 1, 0)
	first := b.publish()
	b.Work(t)
	b.pass(5 * time.Second)
	b.wantBodies("while the first waits")
	second := b.publish()
	b.Work(t)
	b.pass(0)
	b.wantBodies("the second first", second, first)
	b.order(delivery.FaultReorder, 1, 0)
	third := b.publish()
	b.Work(t)
	b.pass(14 * time.Second)
	b.wantBodies("while the third waits", second, first)
	b.pass(2 * time.Second)
	b.wantBodies("after 15 s without a next one", second, first, third)
}

// TestReorderOfSeveral holds back every other delivery: each is overtaken by the one
// after it, however quickly they come.
func TestReorderOfSeveral(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(b *bench){
		"one by one": func(b *bench) { b.Work(b.t); b.pass(0) },
		"at once":    func(*bench) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.order(delivery.FaultReorder, 2, 0)
			b.order(delivery.FaultDuplicate, 1, 0)
			var made []string
			for range 5 {
				made = append(made, b.publish())
				work(b)
			}
			// Last one first: which fault a delivery gets does not depend on the order of the workers.
			for _, job := range slices.Backward(b.Jobs(t)) {
				if err := b.Deliveries.Deliver(t.Context(), job, webhooktest.First); err != nil {
					t.Fatal(err)
				}
			}
			b.pass(0)
			got, place := b.bodies(), make(map[string]int)
			for at, body := range got {
				place[body] = at
			}
			if len(got) != 6 || place[made[1]] > place[made[0]] || place[made[3]] > place[made[2]] {
				t.Errorf("the order is %v of %v", got, made)
			}
			var injected []delivery.Fault
			for _, sent := range slices.Backward(b.List(t)) {
				injected = append(injected, b.Detail(t, sent.UID).Attempts[0].Fault)
			}
			want := []delivery.Fault{"reorder", "", "reorder", "duplicate", ""}
			if diff := cmp.Diff(want, injected); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReorderWhateverComesFirst makes a worker take the later delivery first: the earlier
// one still waits.
func TestReorderWhateverComesFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.order(delivery.FaultReorder, 1, 0)
	first, second := b.publish(), b.publish()
	jobs := b.Jobs(t)
	for _, job := range slices.Backward(jobs) {
		if err := b.Deliveries.Deliver(t.Context(), job, webhooktest.First); err != nil {
			t.Fatal(err)
		}
	}
	b.pass(0)
	b.wantBodies("the second first", second, first)
}

func TestDelay(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.order(delivery.FaultDelay, 1, 60)
	first := b.publish()
	b.Work(t)
	second := b.publish()
	b.Work(t)
	b.pass(59 * time.Second)
	b.wantBodies("within the minute", second)
	b.pass(2 * time.Second)
	b.wantBodies("after the minute", second, first)
	if detail := b.Detail(t, b.List(t)[1].UID); len(detail.Attempts) != 1 ||
		detail.Attempts[0].Fault != delivery.FaultDelay {
		t.Errorf("the delayed delivery is %+v", detail)
	}
}

// TestEarlierOnesWaitForTheirFault makes the worker of a later delivery assign the faults
// while that of an earlier one waits for the lock.
func TestEarlierOnesWaitForTheirFault(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.order(delivery.FaultDelay, 1, 60)
	b.publish()
	b.publish()
	made := b.List(t) // newest first
	took := make([]chan delivery.FaultUse, len(made))
	b.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx, `SELECT FROM subscriptions FOR UPDATE`)
		for i, one := range made {
			took[i] = make(chan delivery.FaultUse, 1)
			go func() {
				injected, err := b.Take(context.WithoutCancel(ctx), one.UID, b.to, one.CreatedAt)
				if err != nil {
					t.Error(err)
				}
				took[i] <- injected
			}()
			waittest.Until(t, "the worker waits for its turn", func() bool {
				return b.Count(t, `
					SELECT count(*)
					  FROM pg_stat_activity
					 WHERE datname = current_database()
					   AND wait_event_type = 'Lock'`) == i+1
			})
		}
		return err
	})
	if got := <-took[0]; got.Fault != "" {
		t.Errorf("the later one suffers %+v", got)
	}
	if got := <-took[1]; got.Fault != delivery.FaultDelay || got.Until.IsZero() {
		t.Errorf("the earlier one suffers %+v", got)
	}
}

func TestBadSignature(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.order(delivery.FaultBadSignature, 1, 0)
	for range 2 {
		b.publish()
		b.Work(t)
	}
	for i, request := range b.endpoint.Requests() {
		right := sender.Sign(b.secret, []byte(request.Body))
		if got := request.Header.Get(sender.HeaderSignature); (got == right) != (i == 1) {
			t.Errorf("request %d is signed %s, right is %s", i+1, got, right)
		}
	}
	b.subscribe(b.endpoint.URL, func(s *subscription.Settings) { s.Auth = sender.AuthBearer })
	b.order(delivery.FaultBadSignature, 1, 0)
	b.publish()
	b.Work(t)
	var tokens []string
	for _, request := range b.endpoint.Requests() {
		if token := request.Header.Get("Authorization"); token != "" {
			tokens = append(tokens, token)
		}
	}
	if len(tokens) != 1 || !strings.HasPrefix(tokens[0], "Bearer ") ||
		strings.Contains(tokens[0], b.secret.Reveal()) {
		t.Errorf("the bearer tokens are %q, want one that is wrong", tokens)
	}
	b.subscribe(b.endpoint.URL, func(s *subscription.Settings) { s.Auth = sender.AuthNone })
	err := b.Try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := b.Place(ctx, tx, fault.Order{
			SubscriptionUID: b.to, Fault: delivery.FaultBadSignature, Count: 1,
		})
		return err
	})
	webhooktest.WantRefusal(t, err, "VALIDATION_ERROR", "fault")
}

// TestBadSignatureInEveryHeader: no signature that a receiver could check is right,
// neither that by the former secret during an overlap nor those of Standard Webhooks.
func TestBadSignatureInEveryHeader(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(s *subscription.Settings) { s.Standard = true })
	_, renewed := b.Amend(t, b.to, subscription.Patch{Secret: &secret.String{}, Overlap: time.Hour})
	b.order(delivery.FaultBadSignature, 1, 0)
	for range 2 {
		b.publish()
		b.Work(t)
	}
	requests := b.endpoint.Requests()
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	for i, request := range requests {
		signed := request.Header.Get("webhook-id") + "." + request.Header.Get("webhook-timestamp") +
			"." + request.Body
		standard := func(key secret.String) string {
			return "v1," + base64.StdEncoding.EncodeToString(sender.Mac(key, []byte(signed)))
		}
		right := []string{
			sender.Sign(renewed, []byte(request.Body)), sender.Sign(b.secret, []byte(request.Body)),
			standard(renewed), standard(b.secret),
		}
		got := []string{
			request.Header.Get(sender.HeaderSignature), request.Header.Get("x-hmac-signature-previous"),
		}
		got = append(got, strings.Fields(request.Header.Get("webhook-signature"))...)
		anyRight := slices.ContainsFunc(got, func(one string) bool { return slices.Contains(right, one) })
		if i == 0 && (anyRight || len(got) != len(right) || slices.Contains(got, "")) {
			t.Errorf("under the fault it is signed %q, right is %q", got, right)
		}
		if i == 1 && !slices.Equal(got, right) {
			t.Errorf("without a fault it is signed %q, right is %q", got, right)
		}
	}
}

// TestTruncate cuts requests: the endpoint reads no whole body, the attempt fails and is
// repeated in full, and the subscription's health does not count it.
func TestTruncate(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var broken, whole atomic.Int32
	endpoint := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if _, err := io.ReadAll(q.Body); err != nil {
			broken.Add(1)
		} else {
			whole.Add(1)
		}
	}))
	t.Cleanup(endpoint.Close)
	b.subscribe(endpoint.URL, nil)
	b.order(delivery.FaultTruncate, 1, 0)
	b.publish()
	b.Work(t)
	b.pass(2 * time.Minute)
	var detail delivery.Detail
	for _, one := range b.List(t) {
		if one.SubscriptionUID == b.to {
			detail = b.Detail(t, one.UID)
		}
	}
	if detail.State != delivery.StateDelivered || len(detail.Attempts) != 2 ||
		detail.Attempts[0].ErrorClass != sender.ClassProtocol ||
		detail.Attempts[0].Fault != delivery.FaultTruncate || detail.Attempts[1].Fault != "" {
		t.Errorf("the delivery is %+v", detail)
	}
	endpoint.Close() // waits for its handlers
	if broken.Load() != 1 || whole.Load() != 1 {
		t.Errorf("%d broken requests, %d whole ones", broken.Load(), whole.Load())
	}
	b.Tally(t)
	if found := b.HealthOf(t, b.to); found.Attempts != 1 {
		t.Errorf("the health counts %d attempts", found.Attempts)
	}
}

// TestWhatTakesNoFault sends a test event and a re-send: they use up no fault, and leave
// the order to the next delivery.
func TestWhatTakesNoFault(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.publish()
	b.Work(t)
	sent := b.List(t)[0].UID
	b.order(delivery.FaultDuplicate, 1, 0)
	b.Clock.Move(time.Millisecond)
	spared := b.Resend(t, sent)
	b.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		test, err := b.Deliveries.Test(ctx, tx, b.to, lending.EventTaskCreated)
		spared = append(spared, test)
		return err
	})
	b.Work(t)
	if left := b.remaining(); !slices.Equal(left, []int{1}) || len(b.bodies()) != 3 {
		t.Errorf("orders with %v left, %d requests", left, len(b.bodies()))
	}
	for _, uid := range spared {
		if detail := b.Detail(t, uid); len(detail.Attempts) != 1 || detail.Attempts[0].Fault != "" ||
			detail.State != delivery.StateDelivered {
			t.Errorf("the test event or the re-send is %+v", detail)
		}
	}
	b.publish()
	b.Work(t)
	if left := b.remaining(); left != nil || len(b.bodies()) != 5 {
		t.Errorf("after the next delivery orders have %v left, %d requests", left, len(b.bodies()))
	}
}

// TestOrdersEnd withdraws an order, and lets another expire.
func TestOrdersEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	placed := b.order(delivery.FaultDuplicate, 3, 0)
	b.publish()
	b.Work(t)
	withdraw := func(of []uuid.UUID) (fault.Order, error) {
		var order fault.Order
		err := b.Try(func(ctx context.Context, tx *postgres.Tx) (err error) {
			order, err = b.Withdraw(ctx, tx, placed.UID, of)
			return err
		})
		return order, err
	}
	_, err := withdraw([]uuid.UUID{uuid.New()})
	webhooktest.WantRefusal(t, err, "NOT_FOUND")
	if order, err := withdraw([]uuid.UUID{b.to}); err != nil || order.Remaining != 2 {
		t.Errorf("withdrawn is %+v, %v", order, err)
	}
	_, err = withdraw([]uuid.UUID{b.to})
	webhooktest.WantRefusal(t, err, "NOT_FOUND")
	b.order(delivery.FaultDuplicate, 1, 0)
	b.Clock.Move(25 * time.Hour)
	if left := b.remaining(); left != nil {
		t.Errorf("after a day orders have %v left", left)
	}
	last := b.publish()
	b.Work(t)
	if got := b.bodies(); len(got) != 3 || got[2] != last {
		t.Errorf("received %q", got)
	}
	left := func() (orders, uses int) {
		t.Helper()
		if err := b.Purge(t.Context()); err != nil {
			t.Error(err)
		}
		return b.Count(t, `SELECT count(*) FROM sandbox_faults`),
			b.Count(t, `SELECT count(*) FROM sandbox_fault_uses`)
	}
	if orders, uses := left(); orders != 0 || uses != 1 {
		t.Errorf("%d orders and %d faults of deliveries that are kept are left", orders, uses)
	}
	b.Exec(t, `DELETE FROM deliveries`)
	if _, uses := left(); uses != 0 {
		t.Errorf("%d faults of deliveries that are gone are left", uses)
	}
}

// TestOrdersAreLimited places orders up to the limit, and again after one was withdrawn,
// with several concurrent orders of which only one is allowed.
func TestOrdersAreLimited(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	placed := b.order(delivery.FaultDuplicate, 1, 0)
	b.Exec(t, `
		INSERT INTO sandbox_faults (fault_uid, subscription_uid, fault, count, remaining, created_at,
		                            expires_at)
		SELECT gen_random_uuid(), subscription_uid, fault, count, remaining, created_at, expires_at
		  FROM sandbox_faults, generate_series(2, 100)`)
	try := func() error {
		return b.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := b.Place(ctx, tx, fault.Order{
				SubscriptionUID: b.to, Fault: delivery.FaultDuplicate, Count: 1,
			})
			return err
		})
	}
	webhooktest.WantRefusal(t, try(), "INVALID_STATE")
	b.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := b.Withdraw(ctx, tx, placed.UID, []uuid.UUID{b.to})
		return err
	})
	var placing sync.WaitGroup
	var placedNow atomic.Int64
	for range 8 {
		placing.Go(func() {
			if try() == nil {
				placedNow.Add(1)
			}
		})
	}
	placing.Wait()
	if got := placedNow.Load(); got != 1 {
		t.Errorf("%d of eight took the last place", got)
	}
}

// TestNothingIsAskedWithoutAnOrder: an attempt without a fault runs no separate
// statement, which would take longer than all the statements that it shares.
func TestNothingIsAskedWithoutAnOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	attempt := func() (asked int) {
		t.Helper()
		b.publish()
		job := b.Job(t)
		recorder := pgtest.Record(t, b.Harness.DB)
		if err := b.Deliveries.Deliver(t.Context(), job, webhooktest.First); err != nil {
			t.Fatal(err)
		}
		for _, query := range recorder.Take() {
			if strings.Contains(query.Text, "sandbox_fault") {
				asked++
			}
		}
		return asked
	}
	if asked := attempt(); asked > 0 {
		t.Errorf("an attempt without a fault asks for faults %d times", asked)
	}
	b.order(delivery.FaultDuplicate, 1, 0)
	if asked := attempt(); asked == 0 || len(b.endpoint.Requests()) != 3 {
		t.Errorf("the next one, with an order, asks %d times; %d requests came, want 3",
			asked, len(b.endpoint.Requests()))
	}
}
