package subscription_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestTrySendsOneMarkedRequestAndRecordsNothing(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	receiver := webhooktest.NewReceiver(t, nil)
	known := secret.New("a-secret-that-both-know")
	result, err := h.Subscriptions.Try(t.Context(), subscription.Trial{
		Kind: lending.EventTaskCreated,
		Settings: subscription.Settings{
			URL: receiver.URL, Auth: sender.AuthHMAC, Secret: known,
			Events:  []string{subscription.AllEvents},
			Headers: []sender.Header{{Name: "X-Api-Key", Value: "partners-own"}},
		},
	})
	if err != nil || !result.Delivered() || result.Generated {
		t.Fatalf("the trial ended with %+v, %v", result, err)
	}
	got := receiver.Requests()[0]
	if got.Header.Get("x-drawbridge-test") != "true" ||
		got.Header.Get("x-drawbridge-event") != "task.created" ||
		got.Header.Get("x-api-key") != "partners-own" ||
		got.Header.Get("x-hmac-signature") != sender.Sign(known, result.Body) {
		t.Errorf("the endpoint got %v", got.Header)
	}
	var payload map[string]any
	if err := json.Unmarshal(result.Body, &payload); err != nil ||
		payload["application_id"] != lending.SampleApplicationUID {
		t.Errorf("the body is %s, %v", result.Body, err)
	}
	for _, header := range result.RequestHeaders {
		if header.Value == "partners-own" {
			t.Error("the result shows the partner's key")
		}
	}
	left := h.Count(t, `SELECT (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM events)`)
	if left != 0 {
		t.Errorf("the trial left %d rows", left)
	}
}

func TestTryUsesTheSecretInForceOfASubscription(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	receiver := webhooktest.NewReceiver(t, nil)
	subscribed, value := h.Subscribe(t, receiver.URL, nil)
	settings := subscription.Settings{
		URL: receiver.URL, Auth: sender.AuthHMAC, Events: []string{"task.created"},
	}
	trial := subscription.Trial{
		Kind: lending.EventTaskCreated, Settings: settings,
		UID: subscribed.UID,
	}
	result, err := h.Subscriptions.Try(t.Context(), trial)
	if err != nil || result.Generated {
		t.Fatalf("%+v, %v", result, err)
	}
	got := receiver.Requests()[0].Header.Get("x-hmac-signature")
	if got != sender.Sign(value, result.Body) {
		t.Errorf("signed with another secret: %s", got)
	}
	trial.UID = uuid.Nil
	if result, err = h.Subscriptions.Try(t.Context(), trial); err != nil || !result.Generated {
		t.Errorf("a new subscription's secret: %+v, %v", result, err)
	}
}

func TestTryRefusesWhatCouldNotBeSaved(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	valid := subscription.Settings{
		URL: "https://127.0.0.1:4430/", Auth: sender.AuthNone, Events: []string{subscription.AllEvents},
	}
	local, header := valid, valid
	local.URL = "https://localhost/"
	header.Headers = []sender.Header{{Name: "Host", Value: "x"}}
	for field, trial := range map[string]subscription.Trial{
		"event":           {Settings: valid, Kind: "loan.lost"},
		"url":             {Settings: local, Kind: lending.EventTaskCreated},
		"headers[0].name": {Settings: header, Kind: lending.EventTaskCreated},
	} {
		_, err := h.Subscriptions.Try(t.Context(), trial)
		webhooktest.WantRefusal(t, err, lending.CodeValidation, field)
	}
	_, err := h.Subscriptions.Try(t.Context(), subscription.Trial{
		Settings: valid, Kind: lending.EventTaskCreated, UID: uuid.New(),
	})
	if lending.ErrorCode(err) != lending.CodeNotFound {
		t.Errorf("an unknown subscription: %v", err)
	}
	receiver := webhooktest.NewReceiver(t, webhooktest.Answering(http.StatusBadGateway))
	valid.URL = receiver.URL
	result, err := h.Subscriptions.Try(t.Context(),
		subscription.Trial{Settings: valid, Kind: lending.EventTaskCreated})
	if err != nil || result.Class != sender.ClassHTTP5xx {
		t.Errorf("an endpoint's failure: %+v, %v", result, err)
	}
}
