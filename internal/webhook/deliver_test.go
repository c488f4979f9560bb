package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook"
)

func TestDeliverSendsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("x-trace", "abc")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("thanks"))
	})
	subscription, key := h.subscribe(t, endpoint.URL+"/hook", func(s *webhook.Settings) {
		s.Headers = []webhook.Header{{Name: "X-Api-Key", Value: "top secret"}}
	})
	event := h.publish(t)
	if before := h.newest(t); before.State != webhook.DeliveryPending || before.AttemptCount != 0 ||
		before.Event != event.Kind || before.Status != "Pending" || before.EventUID != event.UID ||
		before.ApplicationUID != h.application || before.SubscriptionUID != subscription.UID {
		t.Errorf("recorded %+v", before)
	}
	if count := h.work(t); count != 1 {
		t.Fatalf("%d jobs, want 1", count)
	}

	requests := endpoint.requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests, want 1", len(requests))
	}
	got, after := requests[0], h.newest(t)
	if got.body != string(event.Body) {
		t.Errorf("sent %s, recorded %s", got.body, event.Body)
	}
	for name, want := range map[string]string{
		"x-hmac-signature":      webhook.Sign(key, event.Body),
		"x-drawbridge-event":    "task.created",
		"x-drawbridge-delivery": after.UID.String(),
		"x-drawbridge-attempt":  "1",
		"x-drawbridge-test":     "",
		"x-api-key":             "top secret",
		"content-type":          "application/json",
		"user-agent":            "Drawbridge-Webhooks/test",
	} {
		if value := got.header.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	if after.State != webhook.DeliveryDelivered || after.AttemptCount != 1 ||
		after.NextAttemptAt != nil || after.FinishedAt == nil || *after.LastHTTPStatus != 202 ||
		after.LastErrorClass != nil || string(after.Body) != got.body {
		t.Errorf("delivery %+v", after)
	}
	wantAttempt(t, after, subscription)
	if h.work(t)+h.promote(t) != 0 {
		t.Error("a delivered event has further jobs")
	}
}

func wantAttempt(t *testing.T, detail webhook.DeliveryDetail, of webhook.Subscription) {
	t.Helper()
	if len(detail.Attempts) != 1 {
		t.Fatalf("%d attempts, want 1", len(detail.Attempts))
	}
	attempt := detail.Attempts[0]
	if attempt.Number != 1 || attempt.HTTPStatus != 202 || attempt.ErrorClass != "" ||
		attempt.URL != of.URL || attempt.SubscriptionVersion != of.Version ||
		attempt.Duration <= 0 || attempt.TLS <= 0 || string(attempt.ResponseBody) != "thanks" ||
		!strings.HasPrefix(attempt.Address, "127.0.0.1:") {
		t.Errorf("attempt %+v", attempt)
	}
	if !slices.Contains(attempt.ResponseHeaders, webhook.Header{Name: "x-trace", Value: "abc"}) {
		t.Errorf("response headers %v", attempt.ResponseHeaders)
	}
	at := slices.IndexFunc(attempt.RequestHeaders, func(h webhook.Header) bool {
		return h.Name == "x-api-key"
	})
	if at < 0 || strings.Contains(attempt.RequestHeaders[at].Value, "secret") {
		t.Errorf("the log shows the request headers %+v", attempt.RequestHeaders)
	}
}

func TestThreeAttemptsOnTheirOwnSchedule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		statuses []int
		states   []webhook.DeliveryState
		classes  []webhook.ErrorClass
	}{
		{
			name: "always refused", statuses: []int{500, 302, 404},
			states: []webhook.DeliveryState{"retrying", "retrying", "failed"},
			classes: []webhook.ErrorClass{
				webhook.ClassHTTP5xx, webhook.ClassHTTP3xx, webhook.ClassHTTP4xx,
			},
		},
		{
			name: "received at last", statuses: []int{410, 500, 204},
			states:  []webhook.DeliveryState{"retrying", "retrying", "delivered"},
			classes: []webhook.ErrorClass{webhook.ClassHTTP4xx, webhook.ClassHTTP5xx, ""},
		},
		{
			name: "received at the second", statuses: []int{500, 200},
			states:  []webhook.DeliveryState{"retrying", "delivered"},
			classes: []webhook.ErrorClass{webhook.ClassHTTP5xx, ""},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			endpoint := newReceiver(t, answering(test.statuses...))
			h.subscribe(t, endpoint.URL, nil)
			event := h.publish(t)
			for i, want := range test.states {
				if count := h.work(t); count != 1 {
					t.Fatalf("%d jobs for attempt %d, want 1", count, i+1)
				}
				got := h.newest(t)
				if got.State != want || got.AttemptCount != i+1 || len(got.Attempts) != i+1 ||
					got.Attempts[i].ErrorClass != test.classes[i] {
					t.Fatalf("after attempt %d: %+v", i+1, got)
				}
				if !want.IsFinal() {
					waitOutDelay(t, h, h.Retries.Delays[i])
				}
			}
			if h.clock.move(24 * time.Hour); h.promote(t)+h.work(t) != 0 {
				t.Error("an ended delivery is attempted again")
			}
			requests := endpoint.requests()
			if len(requests) != len(test.states) {
				t.Errorf("%d requests, want %d", len(requests), len(test.states))
			}
			for i, got := range requests {
				if got.header.Get("x-drawbridge-attempt") != strconv.Itoa(i+1) ||
					got.body != string(event.Body) {
					t.Errorf("request %d: %+v", i+1, got)
				}
			}
		})
	}
}

// waitOutDelay checks that the next attempt is due after the delay, with up to a
// tenth more, and not before, and moves the clock there.
func waitOutDelay(t *testing.T, h *house, delay time.Duration) {
	t.Helper()
	due := *h.newest(t).NextAttemptAt
	if wait := due.Sub(h.clock.now()); wait < delay || wait > delay+delay/10 {
		t.Errorf("the next attempt is due in %s, want %s and up to a tenth more", wait, delay)
	}
	h.clock.move(due.Sub(h.clock.now()) - time.Microsecond)
	if count := h.promote(t); count != 0 {
		t.Errorf("%d attempts were promoted before they were due", count)
	}
	h.clock.move(time.Microsecond)
	if count := h.promote(t); count != 1 {
		t.Errorf("%d attempts were promoted, want 1", count)
	}
}

func TestRetryAfterMovesTheNextAttemptLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Retry-After", "1800")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	h.work(t)
	due := *h.newest(t).NextAttemptAt
	if wait := due.Sub(h.clock.now()); wait < 29*time.Minute || wait > 31*time.Minute {
		t.Errorf("the next attempt is due in %s, the endpoint asked for 30 minutes", wait)
	}
}

func TestAnAttemptThatDiedCountsAsUnknown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	for number := 1; number <= webhook.MaxAttempts; number++ {
		job := h.job(t)
		if err := h.Deliver(t.Context(), job, again); err != nil {
			t.Fatal(err)
		}
		got := h.newest(t)
		attempt := got.Attempts[number-1]
		if got.AttemptCount != number || attempt.ErrorClass != webhook.ClassUnknown ||
			attempt.HTTPStatus != 0 || attempt.Error == "" {
			t.Fatalf("after the death of attempt %d: %+v", number, got)
		}
		// What was lost has been delay enough.
		if promoted, want := h.promote(t), min(1, webhook.MaxAttempts-number); promoted != want {
			t.Fatalf("%d attempts due after the death of attempt %d, want %d", promoted, number, want)
		}
	}
	if got := h.newest(t); got.State != webhook.DeliveryFailed {
		t.Errorf("after three deaths the delivery is %s", got.State)
	}
	if count := len(endpoint.requests()); count != 0 {
		t.Errorf("%d requests of attempts that had died", count)
	}
}

func TestAJobThatRunsTwiceSendsOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, answering(500))
	h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	job := h.job(t)
	for _, run := range []webhook.Run{first, first, again} {
		if err := h.Deliver(t.Context(), job, run); err != nil {
			t.Fatal(err)
		}
	}
	got := h.newest(t)
	if len(endpoint.requests()) != 1 || got.AttemptCount != 1 ||
		got.Attempts[0].ErrorClass != webhook.ClassHTTP5xx {
		t.Errorf("%d requests, delivery %+v", len(endpoint.requests()), got)
	}
	gone := webhook.DeliverArgs{DeliveryUID: uuid.New(), CreatedAt: h.clock.now(), Number: 1}
	if err := h.Deliver(t.Context(), gone, first); err != nil {
		t.Errorf("the job of a delivery that is gone: %v", err)
	}
}

// An attempt that could not be made does not count.
func TestNotSent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		// waits tells that the delivery is set aside; else its job runs again.
		waits bool
		// spoil keeps the attempt from being made and returns its context.
		spoil func(t *testing.T, h *house) context.Context
	}{
		{"the key of the secret is lost", true, func(t *testing.T, h *house) context.Context {
			t.Helper()
			h.Keys = otherKeys(t)
			return t.Context()
		}},
		{"the process stops", false, func(t *testing.T, _ *house) context.Context {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			endpoint := newReceiver(t, nil)
			h.subscribe(t, endpoint.URL, nil)
			h.publish(t)
			err := h.Deliver(test.spoil(t, h), h.job(t), first)
			if test.waits != (err == nil) || !test.waits && !errors.Is(err, webhook.ErrNotSent) {
				t.Errorf("error %v", err)
			}
			if got := h.newest(t); got.Parked != test.waits ||
				got.State != webhook.DeliveryPending || got.AttemptCount != 0 ||
				len(got.Attempts) != 0 || len(endpoint.requests()) != 0 {
				t.Errorf("%d requests, delivery %+v", len(endpoint.requests()), got)
			}
		})
	}
}

// A process that is told to stop during a request writes down what it knows.
func TestStoppedDuringTheRequest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	endpoint := newReceiver(t, func(http.ResponseWriter, int) {
		close(arrived)
		<-release
	})
	defer close(release)
	h.subscribe(t, endpoint.URL, nil)
	h.publish(t)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		<-arrived
		stop()
	}()
	if err := h.Deliver(ctx, h.job(t), first); err != nil {
		t.Fatal(err)
	}
	got := h.newest(t)
	if got.State != webhook.DeliveryRetrying || got.AttemptCount != 1 ||
		got.Attempts[0].ErrorClass != webhook.ClassUnknown || len(got.Attempts[0].RequestHeaders) == 0 {
		t.Errorf("delivery %+v", got)
	}
	if count := h.promote(t); count != 1 {
		t.Errorf("%d attempts due, want 1: the next process takes over at once", count)
	}
}

func TestTestEvent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	endpoint := newReceiver(t, nil)
	subscription, _ := h.subscribe(t, endpoint.URL, func(s *webhook.Settings) {
		s.Events = []string{"document.sent"}
	})
	other, _ := h.subscribe(t, endpoint.URL, nil)
	for _, kind := range lending.AllEventKinds() {
		var uid uuid.UUID
		h.do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
			uid, err = h.Test(ctx, tx, subscription.UID, kind)
			return err
		})
		h.work(t)
		got := h.detail(t, uid)
		if !got.Test || got.State != webhook.DeliveryDelivered || got.Event != kind ||
			got.SubscriptionUID != subscription.UID ||
			got.ApplicationUID.String() != lending.SampleApplicationUID {
			t.Errorf("test of %s: %+v", kind, got)
		}
		requests := endpoint.requests()
		last := requests[len(requests)-1]
		if last.header.Get("x-drawbridge-test") != "true" || last.body != string(got.Body) ||
			!strings.Contains(last.body, lending.SampleApplicationUID) {
			t.Errorf("test of %s sent %+v", kind, last)
		}
	}
	if count := len(endpoint.requests()); count != len(lending.AllEventKinds()) {
		t.Errorf("%d requests of %d tests", count, len(lending.AllEventKinds()))
	}
	sample, err := h.Deliveries(t.Context(), webhook.DeliveryFilter{
		ApplicationUID: uuid.MustParse(lending.SampleApplicationUID), Limit: postgres.MaxPage,
	})
	if err != nil || len(sample.Deliveries) != len(lending.AllEventKinds()) {
		t.Errorf("%d deliveries of the sample application (%v)", len(sample.Deliveries), err)
	}

	h.do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Pause(ctx, tx, other.UID, "operator")
		return err
	})
	refusals := []struct {
		uid  uuid.UUID
		kind lending.EventKind
		code lending.Code
		name []string
	}{
		{uuid.New(), lending.EventDocumentSent, lending.CodeNotFound, nil},
		{subscription.UID, "loan.opened", lending.CodeValidation, []string{"event"}},
		{other.UID, lending.EventDocumentSent, lending.CodeInvalidState, nil},
	}
	for _, test := range refusals {
		err := h.try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Test(ctx, tx, test.uid, test.kind)
			return err
		})
		wantRefusal(t, err, test.code, test.name...)
	}
}
