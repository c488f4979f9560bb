package web_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// outage is a server with a stopped clock, and a subscription of Home with three events
// whose delivery has failed for good.
type outage struct {
	*apptest.Server

	clock *apptest.Clock
	to    uuid.UUID
	began time.Time
}

func newOutage(t *testing.T, url string) outage {
	t.Helper()
	clock, db := apptest.NewClock(), pgtest.New(t)
	db.Now = clock.Now
	s := apptest.StartServer(t, db).Furnish()
	to := subscribe(s, s.Home, func(settings *subscription.Settings) { settings.URL = url })
	o := outage{Server: s, clock: clock, to: to.UID, began: clock.Now()}
	application := s.Create()
	for range 3 {
		clock.Move(time.Second)
		s.Fail(application, to.UID)
	}
	clock.Move(time.Second)
	return o
}

// begin requests a recovery of everything since a time.
func (o outage) begin(since time.Time, header map[string]string) apptest.Answer {
	o.T.Helper()
	return o.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/recoveries", Header: header, JSON: map[string]any{
			"subscription_uid": o.to, "since": since.UTC().Format(time.RFC3339),
		},
	})
}

// read returns a recovery's state, its counts of deliveries, sent, delivered and failed,
// and whether it is over.
func (o outage) read(uid string) string {
	o.T.Helper()
	got := o.Get("/v2/recoveries/" + uid).Data()
	return fmt.Sprint(got["state"], " ", got["total"], " ", got["sent"], " ", got["delivered"], " ",
		got["failed"], " ", got["finished_at"] != nil)
}

// work does the workers' part of a recovery for a while, and reports whether it has ended.
func (o outage) work(uid string) (ended bool) {
	o.T.Helper()
	run := o.Count(o.T, `SELECT run FROM bulk_resends WHERE bulk_uid = $1`, uid)
	next, err := o.Webhooks.Bulk.Advance(o.T.Context(),
		bulk.Args{BulkUID: uuid.MustParse(uid), Run: run})
	if err != nil {
		o.T.Fatal(err)
	}
	o.clock.Move(12 * time.Minute)
	o.attempt()
	return next == 0
}

// attempt makes the attempts that are due.
func (o outage) attempt() {
	o.T.Helper()
	if _, err := o.Webhooks.Deliveries.EnqueueDue(o.T.Context()); err != nil {
		o.T.Fatal(err)
	}
	o.Work(o.T)
}

func (o outage) finish(uid string) {
	o.T.Helper()
	for range 20 {
		if o.work(uid) {
			return
		}
	}
	o.T.Fatalf("the recovery does not end: it is %s", o.read(uid))
}

// A recovery is read to its end: what was delivered, what failed again, and when it ended.
func TestARecoveryEnds(t *testing.T) {
	t.Parallel()
	o := newOutage(t, apptest.NewEndpoint(t, append(
		slices.Repeat([]http.HandlerFunc{apptest.Status(http.StatusOK)}, 2),
		apptest.Status(http.StatusServiceUnavailable))...).URL)
	uid := o.begin(o.began, nil).Text("recovery_uid")
	if got := o.read(uid); got != "running 3 0 0 0 false" {
		t.Errorf("at first it is %s", got)
	}
	o.finish(uid)
	if got := o.read(uid); got != "finished 3 3 2 1 true" {
		t.Errorf("at last it is %s", got)
	}
}

// A repeated request under the same key begins no recovery, during the first one or after it.
func TestARecoveryUnderAKeyBeginsOnce(t *testing.T) {
	t.Parallel()
	endpoint := apptest.NewEndpoint(t)
	o := newOutage(t, endpoint.URL)
	key := map[string]string{"Idempotency-Key": "after-the-outage"}
	first := o.begin(o.began, key)
	if first.Status != http.StatusAccepted {
		t.Fatalf("answered %s", first.Raw)
	}
	again := o.begin(o.began, key)
	o.finish(first.Text("recovery_uid"))
	for when, repeated := range map[string]apptest.Answer{
		"while it runs": again, "after it": o.begin(o.began, key),
	} {
		if !bytes.Equal(first.Raw, repeated.Raw) ||
			repeated.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s the repeated request answered %s", when, repeated.Raw)
		}
	}
	if other := o.begin(o.began.Add(time.Second), key); other.Code() != "IDEMPOTENCY_MISMATCH" {
		t.Errorf("another time under the key answered %s", other.Raw)
	}
	if n := o.Count(t, `SELECT count(*) FROM bulk_resends`); n != 1 || len(endpoint.Received()) != 3 {
		t.Errorf("%d recoveries sent %d requests, want 1 and 3", n, len(endpoint.Received()))
	}
	if n := o.Count(t, `SELECT count(*) FROM audit_log
		WHERE action = 'recovery.create' AND subject_kind = 'bulk_resend'`); n != 1 {
		t.Errorf("%d entries in the audit log, want 1", n)
	}
}

// A recovery for a paused subscription begins, and waits until it is resumed.
func TestARecoveryWaitsForAPausedSubscription(t *testing.T) {
	t.Parallel()
	endpoint := apptest.NewEndpoint(t)
	o := newOutage(t, endpoint.URL)
	change := func(to func(
		ctx context.Context, tx *postgres.Tx, uid uuid.UUID, by string,
	) (subscription.Subscription, error),
	) {
		o.Harness.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := to(ctx, tx, o.to, "operator")
			return err
		})
	}
	change(o.Webhooks.Subscriptions.Pause)
	begun := o.begin(o.began, nil)
	uid := begun.Text("recovery_uid")
	for range 3 {
		if o.work(uid) {
			t.Error("it gave up")
		}
	}
	if got := o.read(uid); begun.Status != http.StatusAccepted || got != "running 3 0 0 0 false" ||
		len(endpoint.Received()) > 0 {
		t.Errorf("while the subscription is paused it is %s, begun with %s", got, begun.Raw)
	}
	change(o.Webhooks.Subscriptions.Resume)
	o.finish(uid)
	if got := o.read(uid); got != "finished 3 3 3 0 true" {
		t.Errorf("after it was resumed it is %s", got)
	}
}

// Clients see what operators do to their recovery; no other may begin before it is over.
func TestClientsReadWhatOperatorsDoToARecovery(t *testing.T) {
	t.Parallel()
	o := newOutage(t, apptest.NewEndpoint(t).URL)
	uid := o.begin(o.began, nil).Text("recovery_uid")
	operators := o.Webhooks.Bulk
	for i, step := range []struct {
		do   func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error
		want string
		next int
	}{
		{operators.Pause, "paused 3 0 0 0 false", http.StatusConflict},
		{operators.Resume, "running 3 0 0 0 false", http.StatusConflict},
		{operators.Pause, "paused 3 0 0 0 false", http.StatusConflict},
		{
			func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
				_, err := operators.Cancel(ctx, tx, uid)
				return err
			},
			"cancelled 3 0 0 0 true", http.StatusAccepted,
		},
	} {
		o.Harness.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			return step.do(ctx, tx, uuid.MustParse(uid))
		})
		if got := o.read(uid); got != step.want {
			t.Errorf("step %d: read %s, want %s", i+1, got, step.want)
		}
		if next := o.begin(o.began, nil); next.Status != step.next {
			t.Errorf("step %d: another recovery answered %s", i+1, next.Raw)
		}
	}
}

// Every attempt, a re-send and a recovery identify the event in the same way, so that a
// receiver recognises it, and each identifies its delivery.
func TestWhatIsSentAgainIsKnownAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sent []http.Header
	endpoint := apptest.NewEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if sent = append(sent, r.Header.Clone()); len(sent) <= 2*delivery.MaxAttempts {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	clock, db := apptest.NewClock(), pgtest.New(t)
	db.Now = clock.Now
	s := apptest.StartServer(t, db).Furnish()
	o := outage{Server: s, clock: clock, began: clock.Now()}
	o.to = subscribe(s, s.Home, func(settings *subscription.Settings) {
		settings.URL, settings.Standard = endpoint.URL, true
	}).UID
	body := apptest.Borrow()
	body["external_reference"] = "CRM 1/ä"
	made := call(s, s.Home, http.MethodPost, "/v2/application", body)
	recordTask(s, uuid.MustParse(made.Text("thrive_application_uid")))
	attempts := func() {
		for range delivery.MaxAttempts {
			o.attempt()
			clock.Move(12 * time.Minute)
		}
	}
	newest := func() string {
		list := objectsOf(t, s.Get("/v2/deliveries?limit=1"), "deliveries")
		return fmt.Sprint(list[0]["delivery_uid"])
	}
	attempts()
	original := newest()
	resent := call(s, s.Home, http.MethodPost, "/v2/deliveries/"+original+"/resend", nil)
	attempts()
	o.finish(o.begin(o.began, nil).Text("recovery_uid"))
	deliveries := append(slices.Repeat([]string{original}, 3), slices.Repeat(
		[]string{resent.Text("delivery_uid")}, 3)...)
	deliveries = append(deliveries, newest())
	mu.Lock()
	defer mu.Unlock()
	if len(sent) != len(deliveries) {
		t.Fatalf("%d requests, want %d", len(sent), len(deliveries))
	}
	want := map[string]string{
		"webhook-id":             resent.Text("event_uid"),
		"x-drawbridge-event-id":  resent.Text("event_uid"),
		"x-drawbridge-reference": "CRM%201%2F%C3%A4",
		"x-drawbridge-merchant":  s.Home.MerchantUID.String(),
		"x-drawbridge-sequence":  "1",
		"x-drawbridge-event":     "task.created",
		"x-drawbridge-subject":   sent[0].Get("x-drawbridge-subject"),
	}
	for i, header := range sent {
		want["x-drawbridge-delivery"] = deliveries[i]
		want["x-drawbridge-attempt"] = fmt.Sprint(i%3 + 1)
		want["x-drawbridge-retries-left"] = fmt.Sprint(2 - i%3)
		for name, value := range want {
			if got := header.Get(name); got != value || got == "" {
				t.Errorf("request %d has %s %q, want %q", i+1, name, got, value)
			}
		}
		if !strings.HasPrefix(header.Get("webhook-signature"), "v1,") {
			t.Errorf("request %d is signed %q", i+1, header.Get("webhook-signature"))
		}
	}
}

// A subscription that was narrowed since is not re-sent events of merchants that it no
// longer covers, whoever asks for them; events that it covers are re-sent.
func TestNothingGoesAgainToWhereItIsNotCovered(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 2)
	kept, left := s.CreateAs(members[0]), s.CreateAs(members[1])
	to := subscribe(s, group, func(settings *subscription.Settings) {
		settings.Merchants = []uuid.UUID{members[0].MerchantUID, members[1].MerchantUID}
	}).UID
	covered, stranded := s.Fail(kept, to), s.Fail(left, to)
	s.Harness.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := s.Webhooks.Subscriptions.Amend(ctx, tx, to,
			subscription.Patch{Merchants: []uuid.UUID{members[0].MerchantUID}}, "olga@lender.example")
		return err
	})
	for name, test := range map[string]struct {
		as   apptest.Account
		uid  uuid.UUID
		want int
	}{
		"the merchant's own client":       {members[1], stranded.UID, http.StatusConflict},
		"the group's":                     {group, stranded.UID, http.StatusConflict},
		"the group's, of what is covered": {group, covered.UID, http.StatusCreated},
	} {
		answer := call(s, test.as, http.MethodPost, "/v2/deliveries/"+test.uid.String()+"/resend", nil)
		if answer.Status != test.want || test.want == http.StatusConflict &&
			(answer.Code() != "INVALID_STATE" || !strings.Contains(answer.Message(), "no longer covers")) {
			t.Errorf("%s: %s", name, answer.Raw)
		}
	}
	s.Fail(kept, to) // the first one is being re-sent
	begun := call(s, group, http.MethodPost, "/v2/recoveries", map[string]any{
		"subscription_uid": to, "since": covered.EventAt.Add(-time.Minute).UTC().Format(time.RFC3339),
	})
	if begun.Status != http.StatusAccepted || fmt.Sprint(begun.Data()["total"]) != "1" {
		t.Errorf("the group's recovery: %s", begun.Raw)
	}
}
