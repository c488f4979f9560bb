package subscription_test

import (
	"strings"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestSameOrigin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		one, other string
		same       bool
	}{
		{"https://hooks.example/a", "https://hooks.example/b?c=d", true},
		{"https://hooks.example", "https://HOOKS.example:443/", true},
		{"http://127.0.0.1/", "http://127.0.0.1:80/x", true},
		{"https://[::1]/", "https://[::1]:443/", true},
		{"https://hooks.example/", "https://hooks.example:8443/", false},
		{"https://hooks.example/", "http://hooks.example/", false},
		{"https://hooks.example:443/", "http://hooks.example:443/", false},
		{"https://hooks.example/", "https://hooks.example.evil.example/", false},
		{"https://hooks.example/", "https://evil.example/hooks.example/", false},
		{"https://hooks.example/", "https://hooks.example@evil.example/", false},
		{":", ":", false},
	} {
		if got := subscription.SameOrigin(test.one, test.other); got != test.same {
			t.Errorf("%s and %s: %v", test.one, test.other, got)
		}
	}
}

// guarded is a subscription with a token, a secret header and a plain one.
func guarded(
	t *testing.T, h *webhooktest.Harness, url string,
) (subscription.Subscription, secret.String) {
	t.Helper()
	return h.Subscribe(t, url, func(s *subscription.Settings) {
		s.Auth = sender.AuthBearer
		s.Headers = []sender.Header{
			{Name: "x-api-key", Value: "the-partners-own"},
			{Name: "x-tenant", Value: "north", Plain: true},
		}
	})
}

// Write-only values do not move to where somebody else could read them, and a refused
// change stores nothing.
func TestCredentialsDoNotMoveAlong(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, token := guarded(t, h, "https://hooks.example/one")
	address := func(text string) *string { return &text }
	hmac, fresh := sender.AuthHMAC, secret.New("typed-again-0123456789")
	kept := []sender.Header{{Name: "X-Api-Key", Kept: true}, {Name: "x-tenant", Kept: true}}
	again := []sender.Header{{Name: "x-api-key", Value: "another"}, {Name: "x-tenant", Kept: true}}
	both := []string{"secret", "headers[0].value"}
	for name, test := range map[string]struct {
		patch  subscription.Patch
		fields []string
	}{
		"another host": {subscription.Patch{URL: address("https://evil.example/one")}, both},
		"another port": {subscription.Patch{URL: address("https://hooks.example:8443/one")}, both},
		"headers kept by name": {
			subscription.Patch{URL: address("https://evil.example/"), Headers: &kept}, both,
		},
		"the token alone given": {
			subscription.Patch{URL: address("https://evil.example/"), Secret: &fresh}, both[1:],
		},
		"the headers alone given": {
			subscription.Patch{URL: address("https://evil.example/"), Headers: &again}, both[:1],
		},
		"as a signing secret": {
			subscription.Patch{URL: address("https://evil.example/"), Auth: &hmac}, both[1:],
		},
	} {
		_, _, err := h.TryAmend(made.UID, test.patch)
		webhooktest.WantRefusal(t, err, lending.CodeInvalidState, test.fields...)
		if text := err.Error(); strings.Contains(text, token.Reveal()) ||
			strings.Contains(text, "the-partners-own") {
			t.Errorf("%s: the refusal shows a secret: %s", name, text)
		}
	}
	if now, err := h.Subscriptions.Get(t.Context(), made.UID); err != nil || now.Version != 1 {
		t.Errorf("a refused change left %+v, %v", now, err)
	}
	moved, _ := h.Amend(t, made.UID, subscription.Patch{
		URL: address("https://HOOKS.example:443/two"), Headers: &kept,
	})
	if moved.Headers[0].Value != "the-partners-own" || moved.Headers[0].Plain ||
		!moved.Headers[1].Plain {
		t.Errorf("on the same host the headers became %#v", moved.Headers)
	}
	moved, value := h.Amend(t, made.UID, subscription.Patch{
		URL: address("https://new.example/"), Secret: &fresh, Headers: &again,
	})
	if moved.URL != "https://new.example/" || !value.Equal(fresh) ||
		moved.Headers[0].Value != "another" {
		t.Errorf("with all given again: %+v", moved)
	}
}

// A signing secret is never sent, so it may stay; it never becomes a token.
func TestSigningSecretMayMove(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, token := guarded(t, h, "https://hooks.example/") // 1
	elsewhere, home := "https://evil.example/", "https://hooks.example/"
	hmac, bearer := sender.AuthHMAC, sender.AuthBearer
	own := secret.New("the-operators-own-token")
	h.Amend(t, made.UID, subscription.Patch{ // 2
		URL: &elsewhere, Secret: &own, Headers: &[]sender.Header{},
	})
	h.Amend(t, made.UID, subscription.Patch{URL: &home, Auth: &hmac})       // 3
	h.Amend(t, made.UID, subscription.Patch{Auth: &bearer, Secret: &token}) // 4
	if _, err := h.Restore(t, made.UID,
		subscription.Choice{Version: 3}); err != nil { // 5: hmac, the token
		t.Fatal(err)
	}
	h.Amend(t, made.UID, subscription.Patch{URL: &elsewhere}) // 6: it may, it only signs
	back, err := h.Restore(t, made.UID, subscription.Choice{Version: 2})
	if err != nil || back.SecretKept || back.Secret.IsZero() || back.Secret.Equal(token) {
		t.Errorf("a secret that signed was sent: %+v, %v", back, err)
	}
}

// A kept header keeps the value stored under its name, and stays secret.
func TestHeadersAreKeptByName(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := guarded(t, h, "https://hooks.example/")
	for _, test := range []struct {
		header sender.Header
		field  string
	}{
		{sender.Header{Name: "x-other", Kept: true}, "headers[0].value"},
		{sender.Header{Name: "x-api-key", Kept: true, Plain: true}, "headers[0].value"},
	} {
		_, _, err := h.TryAmend(made.UID, subscription.Patch{Headers: &[]sender.Header{test.header}})
		webhooktest.WantRefusal(t, err, lending.CodeValidation, test.field)
	}
	tenant := []sender.Header{{Name: "X-Tenant", Kept: true}}
	after, _ := h.Amend(t, made.UID, subscription.Patch{Headers: &tenant})
	want := sender.Header{Name: "x-tenant", Value: "north", Plain: true}
	if len(after.Headers) != 1 || after.Headers[0] != want {
		t.Errorf("headers %#v, want %#v alone", after.Headers, want)
	}
}

func TestRestoreAsksForCredentialsAgain(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := guarded(t, h, "https://old.example/")
	moved, token := "https://new.example/", secret.New("token-of-the-new-one")
	h.Amend(t, made.UID, subscription.Patch{ // 2
		URL: &moved, Secret: &token, Headers: &[]sender.Header{{Name: "x-new-key", Value: "new"}},
	})
	_, err := h.Restore(t, made.UID, subscription.Choice{Version: 1})
	webhooktest.WantRefusal(t, err, lending.CodeInvalidState, "secret", "headers[0].value")
	again := secret.New("token-of-the-old-one")
	_, err = h.Restore(t, made.UID, subscription.Choice{Version: 1, Secret: again})
	webhooktest.WantRefusal(t, err, lending.CodeInvalidState, "headers[0].value")
	strange := []sender.Header{{Name: "x-strange", Value: "v"}}
	_, err = h.Restore(t, made.UID, subscription.Choice{Version: 1, Secret: again, Headers: strange})
	webhooktest.WantRefusal(t, err, lending.CodeValidation, "header")
	key := []sender.Header{{Name: "X-API-Key", Value: "given again"}}
	restored, err := h.Restore(t, made.UID,
		subscription.Choice{Version: 1, Secret: again, Headers: key})
	if err != nil || restored.SecretKept || restored.Subscription.URL != "https://old.example/" ||
		restored.Subscription.Headers[0].Value != "given again" ||
		restored.Subscription.Headers[1].Value != "north" {
		t.Errorf("restored %+v, %v", restored, err)
	}
	restored, err = h.Restore(t, made.UID,
		subscription.Choice{Version: 2, Secret: token, NoHeaders: true})
	if err != nil || len(restored.Subscription.Headers) != 0 {
		t.Errorf("without headers: %+v, %v", restored, err)
	}
}

// A test sends to a new address only what was entered, nothing that is stored.
func TestTryTakesNothingAlong(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	known, strange := webhooktest.NewReceiver(t, nil), webhooktest.NewReceiver(t, nil)
	made, token := guarded(t, h, known.URL)
	trial := subscription.Trial{
		UID: made.UID, Kind: lending.EventTaskCreated, Settings: subscription.Settings{
			URL: strange.URL, Auth: sender.AuthBearer, Events: []string{"all"},
			Headers: []sender.Header{{Name: "x-api-key", Kept: true}},
		},
	}
	_, err := h.Subscriptions.Try(t.Context(), trial)
	webhooktest.WantRefusal(t, err, lending.CodeInvalidState, "secret", "headers[0].value")
	if got := strange.Requests(); len(got) != 0 {
		t.Errorf("a refused test sent %v", got[0].Header)
	}
	trial.Settings.Secret = secret.New("typed-for-this-test")
	trial.Settings.Headers = []sender.Header{{Name: "x-api-key", Value: "typed"}}
	if _, err = h.Subscriptions.Try(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	if got := strange.Requests()[0].Header; got.Get("authorization") != "Bearer typed-for-this-test" ||
		got.Get("x-api-key") != "typed" {
		t.Errorf("sent %v", got)
	}
	trial.Settings.URL, trial.Settings.Secret = known.URL+"/x", secret.String{}
	trial.Settings.Headers = []sender.Header{{Name: "x-api-key", Kept: true}}
	if _, err = h.Subscriptions.Try(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	if got := known.Requests()[0].Header; got.Get("authorization") != "Bearer "+token.Reveal() ||
		got.Get("x-api-key") != "the-partners-own" {
		t.Errorf("to the address in force: %v", got)
	}
	signed, value := h.Subscribe(t, known.URL, nil)
	trial = subscription.Trial{
		UID: signed.UID, Kind: lending.EventTaskCreated,
		Settings: subscription.Settings{
			URL: strange.URL, Auth: sender.AuthHMAC, Events: []string{"all"},
		},
	}
	result, err := h.Subscriptions.Try(t.Context(), trial)
	if err != nil || !result.Generated {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := strange.Requests()[1].Header.Get("x-hmac-signature"); got == sender.Sign(value,
		result.Body) {
		t.Error("the stored secret signed for a strange address")
	}
}
