package webhook_test

import (
	"strings"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook"
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
		if got := webhook.SameOrigin(test.one, test.other); got != test.same {
			t.Errorf("%s and %s: %v", test.one, test.other, got)
		}
	}
}

// guarded is a subscription with a token, a secret header and a plain one.
func guarded(t *testing.T, h *house, url string) (webhook.Subscription, secret.String) {
	t.Helper()
	return h.subscribe(t, url, func(s *webhook.Settings) {
		s.Auth = webhook.AuthBearer
		s.Headers = []webhook.Header{
			{Name: "x-api-key", Value: "the-partners-own"},
			{Name: "x-tenant", Value: "north", Plain: true},
		}
	})
}

// What is write-only does not move to where somebody else could read it, and nothing
// of a refused change is kept.
func TestCredentialsDoNotMoveAlong(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made, token := guarded(t, h, "https://hooks.example/one")
	address := func(text string) *string { return &text }
	hmac, fresh := webhook.AuthHMAC, secret.New("typed-anew-0123456789")
	kept := []webhook.Header{{Name: "X-Api-Key", Kept: true}, {Name: "x-tenant", Kept: true}}
	anew := []webhook.Header{{Name: "x-api-key", Value: "another"}, {Name: "x-tenant", Kept: true}}
	both := []string{"secret", "headers[0].value"}
	for name, test := range map[string]struct {
		patch  webhook.Patch
		fields []string
	}{
		"another host": {webhook.Patch{URL: address("https://evil.example/one")}, both},
		"another port": {webhook.Patch{URL: address("https://hooks.example:8443/one")}, both},
		"headers kept by name": {
			webhook.Patch{URL: address("https://evil.example/"), Headers: &kept}, both,
		},
		"the token alone given": {
			webhook.Patch{URL: address("https://evil.example/"), Secret: &fresh}, both[1:],
		},
		"the headers alone given": {
			webhook.Patch{URL: address("https://evil.example/"), Headers: &anew}, both[:1],
		},
		"as a signing secret": {
			webhook.Patch{URL: address("https://evil.example/"), Auth: &hmac}, both[1:],
		},
	} {
		_, _, err := h.tryAmend(made.UID, test.patch)
		wantRefusal(t, err, lending.CodeInvalidState, test.fields...)
		if text := err.Error(); strings.Contains(text, token.Reveal()) ||
			strings.Contains(text, "the-partners-own") {
			t.Errorf("%s: the refusal shows a secret: %s", name, text)
		}
	}
	if now, err := h.Subscription(t.Context(), made.UID); err != nil || now.Version != 1 {
		t.Errorf("a refused change left %+v, %v", now, err)
	}
	moved, _ := h.amend(t, made.UID, webhook.Patch{
		URL: address("https://HOOKS.example:443/two"), Headers: &kept,
	})
	if moved.Headers[0].Value != "the-partners-own" || moved.Headers[0].Plain ||
		!moved.Headers[1].Plain {
		t.Errorf("on the same host the headers became %#v", moved.Headers)
	}
	moved, value := h.amend(t, made.UID, webhook.Patch{
		URL: address("https://new.example/"), Secret: &fresh, Headers: &anew,
	})
	if moved.URL != "https://new.example/" || !value.Equal(fresh) ||
		moved.Headers[0].Value != "another" {
		t.Errorf("with all given anew: %+v", moved)
	}
}

// A signing secret is never sent and may stay, and never becomes a token.
func TestSigningSecretMayMove(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made, token := guarded(t, h, "https://hooks.example/") // 1
	elsewhere, home := "https://evil.example/", "https://hooks.example/"
	hmac, bearer := webhook.AuthHMAC, webhook.AuthBearer
	own := secret.New("the-operators-own-token")
	h.amend(t, made.UID, webhook.Patch{ // 2
		URL: &elsewhere, Secret: &own, Headers: &[]webhook.Header{},
	})
	h.amend(t, made.UID, webhook.Patch{URL: &home, Auth: &hmac})                  // 3
	h.amend(t, made.UID, webhook.Patch{Auth: &bearer, Secret: &token})            // 4
	if _, err := h.restore(t, made.UID, webhook.Choice{Version: 3}); err != nil { // 5: hmac, the token
		t.Fatal(err)
	}
	h.amend(t, made.UID, webhook.Patch{URL: &elsewhere}) // 6: it may, it only signs
	back, err := h.restore(t, made.UID, webhook.Choice{Version: 2})
	if err != nil || back.SecretKept || back.Secret.IsZero() || back.Secret.Equal(token) {
		t.Errorf("a secret that signed was sent: %+v, %v", back, err)
	}
}

// A kept header keeps what is stored under its name, and stays secret.
func TestHeadersAreKeptByName(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made, _ := guarded(t, h, "https://hooks.example/")
	for _, test := range []struct {
		header webhook.Header
		field  string
	}{
		{webhook.Header{Name: "x-other", Kept: true}, "headers[0].value"},
		{webhook.Header{Name: "x-api-key", Kept: true, Plain: true}, "headers[0].value"},
	} {
		_, _, err := h.tryAmend(made.UID, webhook.Patch{Headers: &[]webhook.Header{test.header}})
		wantRefusal(t, err, lending.CodeValidation, test.field)
	}
	tenant := []webhook.Header{{Name: "X-Tenant", Kept: true}}
	after, _ := h.amend(t, made.UID, webhook.Patch{Headers: &tenant})
	want := webhook.Header{Name: "x-tenant", Value: "north", Plain: true}
	if len(after.Headers) != 1 || after.Headers[0] != want {
		t.Errorf("headers %#v, want %#v alone", after.Headers, want)
	}
}

func TestRestoreAsksForCredentialsAnew(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	made, _ := guarded(t, h, "https://old.example/")
	moved, token := "https://new.example/", secret.New("token-of-the-new-one")
	h.amend(t, made.UID, webhook.Patch{ // 2
		URL: &moved, Secret: &token, Headers: &[]webhook.Header{{Name: "x-new-key", Value: "new"}},
	})
	_, err := h.restore(t, made.UID, webhook.Choice{Version: 1})
	wantRefusal(t, err, lending.CodeInvalidState, "secret", "headers[0].value")
	again := secret.New("token-of-the-old-one")
	_, err = h.restore(t, made.UID, webhook.Choice{Version: 1, Secret: again})
	wantRefusal(t, err, lending.CodeInvalidState, "headers[0].value")
	strange := []webhook.Header{{Name: "x-strange", Value: "v"}}
	_, err = h.restore(t, made.UID, webhook.Choice{Version: 1, Secret: again, Headers: strange})
	wantRefusal(t, err, lending.CodeValidation, "header")
	key := []webhook.Header{{Name: "X-API-Key", Value: "given anew"}}
	restored, err := h.restore(t, made.UID, webhook.Choice{Version: 1, Secret: again, Headers: key})
	if err != nil || restored.SecretKept || restored.Subscription.URL != "https://old.example/" ||
		restored.Subscription.Headers[0].Value != "given anew" ||
		restored.Subscription.Headers[1].Value != "north" {
		t.Errorf("restored %+v, %v", restored, err)
	}
	restored, err = h.restore(t, made.UID, webhook.Choice{Version: 2, Secret: token, NoHeaders: true})
	if err != nil || len(restored.Subscription.Headers) != 0 {
		t.Errorf("without headers: %+v, %v", restored, err)
	}
}

// A test carries to a new address what was typed, and nothing that is stored.
func TestTryTakesNothingAlong(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	known, strange := newReceiver(t, nil), newReceiver(t, nil)
	made, token := guarded(t, h, known.URL)
	trial := webhook.Trial{
		UID: made.UID, Kind: lending.EventTaskCreated, Settings: webhook.Settings{
			URL: strange.URL, Auth: webhook.AuthBearer, Events: []string{"all"},
			Headers: []webhook.Header{{Name: "x-api-key", Kept: true}},
		},
	}
	_, err := h.Try(t.Context(), trial)
	wantRefusal(t, err, lending.CodeInvalidState, "secret", "headers[0].value")
	if got := strange.requests(); len(got) != 0 {
		t.Errorf("a refused test sent %v", got[0].header)
	}
	trial.Settings.Secret = secret.New("typed-for-this-test")
	trial.Settings.Headers = []webhook.Header{{Name: "x-api-key", Value: "typed"}}
	if _, err = h.Try(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	if got := strange.requests()[0].header; got.Get("authorization") != "Bearer typed-for-this-test" ||
		got.Get("x-api-key") != "typed" {
		t.Errorf("sent %v", got)
	}
	trial.Settings.URL, trial.Settings.Secret = known.URL+"/x", secret.String{}
	trial.Settings.Headers = []webhook.Header{{Name: "x-api-key", Kept: true}}
	if _, err = h.Try(t.Context(), trial); err != nil {
		t.Fatal(err)
	}
	if got := known.requests()[0].header; got.Get("authorization") != "Bearer "+token.Reveal() ||
		got.Get("x-api-key") != "the-partners-own" {
		t.Errorf("to the address in force: %v", got)
	}
	signed, value := h.subscribe(t, known.URL, nil)
	trial = webhook.Trial{UID: signed.UID, Kind: lending.EventTaskCreated, Settings: webhook.Settings{
		URL: strange.URL, Auth: webhook.AuthHMAC, Events: []string{"all"},
	}}
	result, err := h.Try(t.Context(), trial)
	if err != nil || !result.Generated {
		t.Fatalf("%+v, %v", result, err)
	}
	if got := strange.requests()[1].header.Get("x-hmac-signature"); got == webhook.Sign(value,
		result.Body) {
		t.Error("the stored secret signed for a strange address")
	}
}
