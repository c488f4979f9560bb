package webhook_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
)

func TestTrySendsOneMarkedRequestAndRecordsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	receiver := newReceiver(t, nil)
	known := secret.New("a-secret-that-both-know")
	result, err := h.Try(t.Context(), webhook.Trial{
		Kind: lending.EventTaskCreated,
		Settings: webhook.Settings{
			URL: receiver.URL, Auth: webhook.AuthHMAC, Secret: known,
			Events:  []string{webhook.AllEvents},
			Headers: []webhook.Header{{Name: "X-Api-Key", Value: "partners-own"}},
		},
	})
	if err != nil || !result.Delivered() || result.Generated {
		t.Fatalf("the trial ended with %+v, %v", result, err)
	}
	got := receiver.requests()[0]
	if got.header.Get("x-drawbridge-test") != "true" ||
		got.header.Get("x-drawbridge-event") != "task.created" ||
		got.header.Get("x-api-key") != "partners-own" ||
		got.header.Get("x-hmac-signature") != webhook.Sign(known, result.Body) {
		t.Errorf("the endpoint got %v", got.header)
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
	left := h.count(t, `SELECT (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM events)`)
	if left != 0 {
		t.Errorf("the trial left %d rows", left)
	}
}

func TestTryUsesTheSecretInForceOfASubscription(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	receiver := newReceiver(t, nil)
	subscription, value := h.subscribe(t, receiver.URL, nil)
	settings := webhook.Settings{
		URL: receiver.URL, Auth: webhook.AuthHMAC, Events: []string{"task.created"},
	}
	trial := webhook.Trial{Kind: lending.EventTaskCreated, Settings: settings, UID: subscription.UID}
	result, err := h.Try(t.Context(), trial)
	if err != nil || result.Generated {
		t.Fatalf("%+v, %v", result, err)
	}
	got := receiver.requests()[0].header.Get("x-hmac-signature")
	if got != webhook.Sign(value, result.Body) {
		t.Errorf("signed with another secret: %s", got)
	}
	trial.UID = uuid.Nil
	if result, err = h.Try(t.Context(), trial); err != nil || !result.Generated {
		t.Errorf("a new subscription's secret: %+v, %v", result, err)
	}
}

func TestTryRefusesWhatCouldNotBeSaved(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	valid := webhook.Settings{
		URL: "https://127.0.0.1:4430/", Auth: webhook.AuthNone, Events: []string{webhook.AllEvents},
	}
	local, header := valid, valid
	local.URL = "https://localhost/"
	header.Headers = []webhook.Header{{Name: "Host", Value: "x"}}
	for field, trial := range map[string]webhook.Trial{
		"event":           {Settings: valid, Kind: "loan.lost"},
		"url":             {Settings: local, Kind: lending.EventTaskCreated},
		"headers[0].name": {Settings: header, Kind: lending.EventTaskCreated},
	} {
		_, err := h.Try(t.Context(), trial)
		wantRefusal(t, err, lending.CodeValidation, field)
	}
	_, err := h.Try(t.Context(), webhook.Trial{
		Settings: valid, Kind: lending.EventTaskCreated, UID: uuid.New(),
	})
	if lending.ErrorCode(err) != lending.CodeNotFound {
		t.Errorf("an unknown subscription: %v", err)
	}
	receiver := newReceiver(t, answering(http.StatusBadGateway))
	valid.URL = receiver.URL
	result, err := h.Try(t.Context(), webhook.Trial{Settings: valid, Kind: lending.EventTaskCreated})
	if err != nil || result.Class != webhook.ClassHTTP5xx {
		t.Errorf("an endpoint's failure: %+v, %v", result, err)
	}
}
