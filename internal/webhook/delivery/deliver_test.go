package delivery_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
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

func TestDeliverSendsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("x-trace", "abc")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("thanks"))
	})
	subscribed, key := h.Subscribe(t, endpoint.URL+"/hook", func(s *subscription.Settings) {
		s.Headers = []sender.Header{{Name: "X-Api-Key", Value: "top secret"}}
	})
	event := h.Publish(t)
	if before := h.Newest(t); before.State != delivery.StatePending || before.AttemptCount != 0 ||
		before.Event != event.Kind || before.Status != "Pending" || before.EventUID != event.UID ||
		before.ApplicationUID != h.Application || before.SubscriptionUID != subscribed.UID {
		t.Errorf("recorded %+v", before)
	}
	if count := h.Work(t); count != 1 {
		t.Fatalf("%d jobs, want 1", count)
	}

	requests := endpoint.Requests()
	if len(requests) != 1 {
		t.Fatalf("%d requests, want 1", len(requests))
	}
	got, after := requests[0], h.Newest(t)
	if got.Body != string(event.Body) {
		t.Errorf("sent %s, recorded %s", got.Body, event.Body)
	}
	for name, want := range map[string]string{
		"x-hmac-signature":      sender.Sign(key, event.Body),
		"x-drawbridge-event":    "task.created",
		"x-drawbridge-event-id": event.UID.String(),
		"x-drawbridge-merchant": h.Merchant.String(),
		"x-drawbridge-delivery": after.UID.String(),
		"x-drawbridge-attempt":  "1",
		"x-drawbridge-test":     "",

		"x-drawbridge-sequence":     "1",
		"x-drawbridge-subject":      "application/" + h.Application.String(),
		"x-drawbridge-retries-left": "2",
		"x-api-key":                 "top secret",
		"content-type":              "application/json",
		"user-agent":                "Drawbridge-Webhooks/test",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	if after.State != delivery.StateDelivered || after.AttemptCount != 1 ||
		after.NextAttemptAt != nil || after.FinishedAt == nil || *after.LastHTTPStatus != 202 ||
		after.LastErrorClass != nil || string(after.Body) != got.Body {
		t.Errorf("delivery %+v", after)
	}
	wantAttempt(t, after, subscribed)
	if h.Work(t)+h.EnqueueDue(t) != 0 {
		t.Error("a delivered event has further jobs")
	}
}

func wantAttempt(t *testing.T, detail delivery.Detail, of subscription.Subscription) {
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
	if !slices.Contains(attempt.ResponseHeaders, sender.Header{Name: "x-trace", Value: "abc"}) {
		t.Errorf("response headers %v", attempt.ResponseHeaders)
	}
	at := slices.IndexFunc(attempt.RequestHeaders, func(h sender.Header) bool {
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
		states   []delivery.State
		classes  []sender.ErrorClass
	}{
		{
			name: "always refused", statuses: []int{500, 302, 404},
			states: []delivery.State{"retrying", "retrying", "failed"},
			classes: []sender.ErrorClass{
				sender.ClassHTTP5xx, sender.ClassHTTP3xx, sender.ClassHTTP4xx,
			},
		},
		{
			name: "received at last", statuses: []int{410, 500, 204},
			states:  []delivery.State{"retrying", "retrying", "delivered"},
			classes: []sender.ErrorClass{sender.ClassHTTP4xx, sender.ClassHTTP5xx, ""},
		},
		{
			name: "received at the second", statuses: []int{500, 200},
			states:  []delivery.State{"retrying", "delivered"},
			classes: []sender.ErrorClass{sender.ClassHTTP5xx, ""},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(test.statuses...))
			h.Subscribe(t, endpoint.URL, nil)
			event := h.Publish(t)
			for i, want := range test.states {
				if count := h.Work(t); count != 1 {
					t.Fatalf("%d jobs for attempt %d, want 1", count, i+1)
				}
				got := h.Newest(t)
				if got.State != want || got.AttemptCount != i+1 || len(got.Attempts) != i+1 ||
					got.Attempts[i].ErrorClass != test.classes[i] {
					t.Fatalf("after attempt %d: %+v", i+1, got)
				}
				if !want.IsFinal() {
					waitOutDelay(t, h, h.Deliveries.Retries.Delays[i])
				}
			}
			if h.Clock.Move(24 * time.Hour); h.EnqueueDue(t)+h.Work(t) != 0 {
				t.Error("an ended delivery is attempted again")
			}
			requests := endpoint.Requests()
			if len(requests) != len(test.states) {
				t.Errorf("%d requests, want %d", len(requests), len(test.states))
			}
			for i, got := range requests {
				if got.Header.Get("x-drawbridge-attempt") != strconv.Itoa(i+1) ||
					got.Body != string(event.Body) {
					t.Errorf("request %d: %+v", i+1, got)
				}
			}
		})
	}
}

func TestRetryAfterMovesTheNextAttemptLater(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, func(w http.ResponseWriter, _ int) {
		w.Header().Set("Retry-After", "1800")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	h.Work(t)
	due := *h.Newest(t).NextAttemptAt
	if wait := due.Sub(h.Clock.Now()); wait < 29*time.Minute || wait > 31*time.Minute {
		t.Errorf("the next attempt is due in %s, the endpoint asked for 30 minutes", wait)
	}
}

func TestAnAttemptThatDiedCountsAsUnknown(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	for number := 1; number <= delivery.MaxAttempts; number++ {
		job := h.Job(t)
		if err := h.Deliveries.Deliver(t.Context(), job, webhooktest.Again); err != nil {
			t.Fatal(err)
		}
		got := h.Newest(t)
		attempt := got.Attempts[number-1]
		if got.AttemptCount != number || attempt.ErrorClass != sender.ClassUnknown ||
			attempt.HTTPStatus != 0 || attempt.Error == "" {
			t.Fatalf("after the death of attempt %d: %+v", number, got)
		}
		// The time until the loss was detected has been delay enough.
		if enqueued, want := h.EnqueueDue(t), min(1, delivery.MaxAttempts-number); enqueued != want {
			t.Fatalf("%d attempts due after the death of attempt %d, want %d", enqueued, number, want)
		}
	}
	if got := h.Newest(t); got.State != delivery.StateFailed {
		t.Errorf("after three deaths the delivery is %s", got.State)
	}
	if count := len(endpoint.Requests()); count != 0 {
		t.Errorf("%d requests of attempts that had died", count)
	}
}

func TestAJobThatRunsTwiceSendsOnce(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, webhooktest.Answering(500))
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	job := h.Job(t)
	for _, run := range []delivery.Run{webhooktest.First, webhooktest.First, webhooktest.Again} {
		if err := h.Deliveries.Deliver(t.Context(), job, run); err != nil {
			t.Fatal(err)
		}
	}
	got := h.Newest(t)
	if len(endpoint.Requests()) != 1 || got.AttemptCount != 1 ||
		got.Attempts[0].ErrorClass != sender.ClassHTTP5xx {
		t.Errorf("%d requests, delivery %+v", len(endpoint.Requests()), got)
	}
	gone := delivery.Args{DeliveryUID: uuid.New(), CreatedAt: h.Clock.Now(), Number: 1}
	if err := h.Deliveries.Deliver(t.Context(), gone, webhooktest.First); err != nil {
		t.Errorf("the job of a delivery that is gone: %v", err)
	}
}

// An attempt that could not be made does not count.
func TestNotSent(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		// waits means that the delivery is set aside; otherwise its job runs again.
		waits bool
		// spoil prevents the attempt and returns its context.
		spoil func(t *testing.T, h *webhooktest.Harness) context.Context
	}{
		{"the key of the secret is lost", true, func(
			t *testing.T, h *webhooktest.Harness,
		) context.Context {
			t.Helper()
			h.Subscriptions.Keys = webhooktest.OtherKeys(t)
			return t.Context()
		}},
		{"the process stops", false, func(t *testing.T, _ *webhooktest.Harness) context.Context {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		}},
		{"no file descriptor is free", false, func(
			t *testing.T, h *webhooktest.Harness,
		) context.Context {
			t.Helper()
			h.Exec(t, `UPDATE subscriptions SET url = 'https://hooks.example/'`)
			h.Deliveries.Sender = sender.New(sender.Config{Resolver: withoutFiles{}})
			return t.Context()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			endpoint := webhooktest.NewReceiver(t, nil)
			h.Subscribe(t, endpoint.URL, nil)
			h.Publish(t)
			err := h.Deliveries.Deliver(test.spoil(t, h), h.Job(t), webhooktest.First)
			if test.waits != (err == nil) || !test.waits && !errors.Is(err, delivery.ErrNotSent) {
				t.Errorf("error %v", err)
			}
			if got := h.Newest(t); got.Parked != test.waits ||
				got.State != delivery.StatePending || got.AttemptCount != 0 ||
				len(got.Attempts) != 0 || len(endpoint.Requests()) != 0 {
				t.Errorf("%d requests, delivery %+v", len(endpoint.Requests()), got)
			}
			if begun := h.Count(t, `SELECT count(*) FROM begun_attempts`); begun != 0 {
				t.Error("the attempt is noted as begun")
			}
		})
	}
}

// withoutFiles is a resolver in a process that may open no more files.
type withoutFiles struct{}

func (withoutFiles) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "dial udp 10.0.0.53:53: socket: too many open files", Name: host}
}

// A process that is told to stop during a request records what it knows by then.
func TestStoppedDuringTheRequest(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint, arrived, release := holding(t, func() {})
	defer close(release)
	h.Subscribe(t, endpoint.URL, nil)
	h.Publish(t)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		<-arrived
		stop()
	}()
	if err := h.Deliveries.Deliver(ctx, h.Job(t), webhooktest.First); err != nil {
		t.Fatal(err)
	}
	got := h.Newest(t)
	if got.State != delivery.StateRetrying || got.AttemptCount != 1 ||
		got.Attempts[0].ErrorClass != sender.ClassUnknown || len(got.Attempts[0].RequestHeaders) == 0 {
		t.Errorf("delivery %+v", got)
	}
	if count := h.EnqueueDue(t); count != 1 {
		t.Errorf("%d attempts due, want 1: the next process takes over at once", count)
	}
}

func TestTestEvent(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, _ := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
		s.Events = []string{"document.sent"}
	})
	other, _ := h.Subscribe(t, endpoint.URL, nil)
	for _, kind := range lending.AllEventKinds() {
		var uid uuid.UUID
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
			uid, err = h.Deliveries.Test(ctx, tx, subscribed.UID, kind)
			return err
		})
		h.Work(t)
		got := h.Detail(t, uid)
		if !got.Test || got.State != delivery.StateDelivered || got.Event != kind ||
			got.SubscriptionUID != subscribed.UID ||
			got.ApplicationUID.String() != lending.SampleApplicationUID {
			t.Errorf("test of %s: %+v", kind, got)
		}
		requests := endpoint.Requests()
		last := requests[len(requests)-1]
		if last.Header.Get("x-drawbridge-test") != "true" || last.Body != string(got.Body) ||
			!strings.Contains(last.Body, lending.SampleApplicationUID) {
			t.Errorf("test of %s sent %+v", kind, last)
		}
	}
	if count := len(endpoint.Requests()); count != len(lending.AllEventKinds()) {
		t.Errorf("%d requests of %d tests", count, len(lending.AllEventKinds()))
	}
	sample, _, err := h.Deliveries.List(t.Context(), delivery.Filter{
		ApplicationUID: uuid.MustParse(lending.SampleApplicationUID),
	}, postgres.Paging{Limit: postgres.MaxPage})
	if err != nil || len(sample) != len(lending.AllEventKinds()) {
		t.Errorf("%d deliveries of the sample application (%v)", len(sample), err)
	}

	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Subscriptions.Pause(ctx, tx, other.UID, "operator")
		return err
	})
	refusals := []struct {
		uid  uuid.UUID
		kind lending.EventKind
		code lending.Code
		name []string
	}{
		{uuid.New(), lending.EventDocumentSent, lending.CodeNotFound, nil},
		{subscribed.UID, "loan.opened", lending.CodeValidation, []string{"event"}},
		{other.UID, lending.EventDocumentSent, lending.CodeInvalidState, nil},
	}
	for _, test := range refusals {
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Deliveries.Test(ctx, tx, test.uid, test.kind)
			return err
		})
		webhooktest.WantRefusal(t, err, test.code, test.name...)
	}
}

// waitOutDelay checks that the next attempt is due after the delay plus up to a tenth,
// and not before, and moves the clock there.
func waitOutDelay(t *testing.T, h *webhooktest.Harness, delay time.Duration) {
	t.Helper()
	due := *h.Newest(t).NextAttemptAt
	if wait := due.Sub(h.Clock.Now()); wait < delay || wait > delay+delay/10 {
		t.Errorf("the next attempt is due in %s, want %s and up to a tenth more", wait, delay)
	}
	h.Clock.Move(due.Sub(h.Clock.Now()) - time.Microsecond)
	if count := h.EnqueueDue(t); count != 0 {
		t.Errorf("%d attempts were enqueued before they were due", count)
	}
	h.Clock.Move(time.Microsecond)
	if count := h.EnqueueDue(t); count != 1 {
		t.Errorf("%d attempts were enqueued, want 1", count)
	}
}
