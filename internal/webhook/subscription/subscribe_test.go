package subscription_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

func TestSubscribe(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	second := h.NewMerchant(t, h.Partner)
	settings := subscription.Settings{
		URL:       "https://HOOKS.example.com/in?a=b",
		Auth:      sender.AuthBearer,
		Secret:    secret.New("a-token-of-our-own"),
		Events:    []string{"task.updated", "document.sent", "task.updated"},
		Merchants: []uuid.UUID{second, h.Merchant, second},
		Headers:   []sender.Header{{Name: "X-Key", Value: " v "}},
	}
	before := settings.Events[0]
	var made subscription.Subscription
	var value secret.String
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
		made, value, err = h.Subscriptions.Subscribe(ctx, tx, h.Partner, settings, "admin@example.com")
		return err
	})
	want := subscription.Subscription{
		UID: made.UID, PartnerUID: h.Partner, URL: "https://hooks.example.com/in?a=b",
		Auth: sender.AuthBearer, Events: []string{"document.sent", "task.updated"},
		Merchants: []uuid.UUID{h.Merchant, second},
		Headers:   []sender.Header{{Name: "x-key", Value: "v"}},
		State:     subscription.StateActive, Version: 1,
		CreatedAt: h.Clock.Now(), UpdatedAt: h.Clock.Now(),
	}
	byUID := cmpopts.SortSlices(func(a, b uuid.UUID) bool { return a.String() < b.String() })
	if diff := cmp.Diff(want, made, byUID); diff != "" {
		t.Errorf("made (-want +got):\n%s", diff)
	}
	loaded, err := h.Subscriptions.Get(t.Context(), made.UID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, loaded); diff != "" {
		t.Errorf("loaded (-made +loaded):\n%s", diff)
	}
	if value.Reveal() != "a-token-of-our-own" {
		t.Error("the answer has another secret than the one that was brought")
	}
	if settings.Events[0] != before {
		t.Error("the caller's list of events was sorted")
	}
	if h.Count(t, `
		SELECT count(*)
		  FROM subscription_versions
		 WHERE subscription_uid = $1
		   AND version = 1
		   AND change = 'created'
		   AND changed_by = 'admin@example.com'
		   AND cardinality(merchant_uids) = 2`, made.UID) != 1 {
		t.Error("the first version is not kept")
	}
}

func TestSecretsAreGeneratedSealedAndShownOnce(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	values := make(map[string]bool)
	for _, auth := range []sender.Auth{sender.AuthHMAC, sender.AuthHMAC, sender.AuthBearer} {
		made, value := h.Subscribe(t, "https://hooks.example.com", func(s *subscription.Settings) {
			s.Auth = auth
			s.Headers = []sender.Header{{Name: "x-key", Value: "header-credential"}}
		})
		text := value.Reveal()
		prefix := map[sender.Auth]string{sender.AuthHMAC: "whsec_", sender.AuthBearer: "whtok_"}[auth]
		if !strings.HasPrefix(text, prefix) || len(text) < 40 || values[text] {
			t.Errorf("generated secret %q", text)
		}
		values[text] = true
		var row string
		err := h.DB.Get(&row, `SELECT s::text FROM subscriptions s WHERE subscription_uid = $1`, made.UID)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(row, text) || strings.Contains(row, "header-credential") {
			t.Errorf("the row shows a secret: %s", row)
		}
	}
	_, none := h.Subscribe(t, "https://hooks.example.com", func(s *subscription.Settings) {
		s.Auth = sender.AuthNone
	})
	if !none.IsZero() {
		t.Error("a subscription without authentication got a secret")
	}
}

func TestSubscribeRefusals(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	foreign := h.NewMerchant(t, h.NewPartner(t))
	tests := []struct {
		name   string
		change func(*subscription.Settings)
		fields []string
	}{
		{"no URL", func(s *subscription.Settings) { s.URL = "" }, []string{"url"}},
		{
			"plain http", func(s *subscription.Settings) { s.URL = "http://hooks.example.com" },
			[]string{"url"},
		},
		{
			"private address", func(s *subscription.Settings) { s.URL = "https://10.0.0.1" },
			[]string{"url"},
		},
		{"no event", func(s *subscription.Settings) { s.Events = nil }, []string{"event"}},
		{
			"unknown events",
			func(s *subscription.Settings) { s.Events = []string{"loan.opened", "task.created", "x"} },
			[]string{"event", "event"},
		},
		{
			"all and more",
			func(s *subscription.Settings) { s.Events = []string{"all", "task.created"} },
			[]string{"event"},
		},
		{"unknown auth", func(s *subscription.Settings) { s.Auth = "basic" }, []string{"auth"}},
		{"no auth", func(s *subscription.Settings) { s.Auth = "" }, []string{"auth"}},
		{
			"short secret",
			func(s *subscription.Settings) { s.Secret = secret.New("123456789012345") },
			[]string{"secret"},
		},
		{
			"long secret",
			func(s *subscription.Settings) { s.Secret = secret.New(strings.Repeat("x", 257)) },
			[]string{"secret"},
		},
		{
			"token with a space",
			func(s *subscription.Settings) {
				s.Auth, s.Secret = sender.AuthBearer, secret.New("12345678 90123456")
			},
			[]string{"secret"},
		},
		{
			"token beyond ASCII",
			func(s *subscription.Settings) {
				s.Auth, s.Secret = sender.AuthBearer, secret.New("12345678é90123456")
			},
			[]string{"secret"},
		},
		{
			"secret with a control character",
			func(s *subscription.Settings) { s.Secret = secret.New("12345678\t90123456") },
			[]string{"secret"},
		},
		{
			"secret that is no text",
			func(s *subscription.Settings) { s.Secret = secret.New("12345678\xff90123456") },
			[]string{"secret"},
		},
		{
			"secret with a space around it",
			func(s *subscription.Settings) { s.Secret = secret.New("1234567890123456 ") },
			[]string{"secret"},
		},
		{
			"secret of too many bytes",
			func(s *subscription.Settings) { s.Secret = secret.New(strings.Repeat("é", 129)) },
			[]string{"secret"},
		},
		{
			"secret without use",
			func(s *subscription.Settings) {
				s.Auth, s.Secret = sender.AuthNone, secret.New("1234567890123456")
			},
			[]string{"secret"},
		},
		{
			"forbidden header",
			func(s *subscription.Settings) { s.Headers = []sender.Header{{Name: "Host", Value: "x"}} },
			[]string{"headers[0].name"},
		},
		{
			"header of ours and a value that no header has",
			func(s *subscription.Settings) {
				s.Headers = []sender.Header{
					{Name: "X-Drawbridge-Event", Value: "x"}, {Name: "x-a", Value: "line\nbreak"},
				}
			},
			[]string{"headers[0].name", "headers[1].value"},
		},
		{
			"another partner's merchant",
			func(s *subscription.Settings) { s.Merchants = []uuid.UUID{h.Merchant, foreign} },
			[]string{"merchant"},
		},
		{
			"unknown merchant",
			func(s *subscription.Settings) { s.Merchants = []uuid.UUID{uuid.New()} },
			[]string{"merchant"},
		},
		{
			"everything at once",
			func(s *subscription.Settings) {
				s.URL, s.Auth, s.Events = "hooks", "basic", nil
				s.Headers = []sender.Header{{Name: "", Value: "x"}}
			},
			[]string{"url", "event", "auth", "headers[0].name"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			settings := subscription.Settings{
				URL: "https://hooks.example.com", Auth: sender.AuthHMAC, Events: []string{"all"},
			}
			test.change(&settings)
			err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
				_, _, err := h.Subscriptions.Subscribe(ctx, tx, h.Partner, settings, "operator")
				return err
			})
			webhooktest.WantRefusal(t, err, lending.CodeValidation, test.fields...)
			if count := h.Count(t, `SELECT count(*) FROM subscriptions`); count != 0 {
				t.Errorf("%d subscriptions", count)
			}
		})
	}
	t.Run("unknown partner", func(t *testing.T) {
		t.Parallel()
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := h.Subscriptions.Subscribe(ctx, tx, uuid.New(), subscription.Settings{
				URL: "https://hooks.example.com", Auth: sender.AuthNone, Events: []string{"all"},
			}, "operator")
			return err
		})
		webhooktest.WantRefusal(t, err, lending.CodeNotFound)
	})
}

func TestAmend(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	text := func(s string) *string { return &s }
	bearer, none, empty := sender.AuthBearer, sender.AuthNone, secret.String{}
	ours, short := secret.New("brought-along-secret"), secret.New("short")
	words := secret.New("Zażółć gęślą jaźń 🔑")
	headers := []sender.Header{{Name: "X-B", Value: "2"}}
	tests := []struct {
		name  string
		patch subscription.Patch
		// change is the version's description, empty for none.
		change string
		// secret is what is returned: "", the prefix of a generated one or the text.
		secret string
		fields []string
		check  func(subscription.Subscription) bool
	}{
		{name: "nothing"},
		{
			name:  "the same again",
			patch: subscription.Patch{URL: text("https://hooks.example.com"), Events: []string{"all"}},
		},
		{
			name: "URL", patch: subscription.Patch{URL: text("https://two.example.com/")},
			change: "url changed",
			check:  func(s subscription.Subscription) bool { return s.URL == "https://two.example.com/" },
		},
		{
			name: "events", patch: subscription.Patch{Events: []string{"task.created"}},
			change: "events changed",
			check:  func(s subscription.Subscription) bool { return len(s.Events) == 1 },
		},
		{
			name: "merchants", patch: subscription.Patch{Merchants: []uuid.UUID{h.Merchant}},
			change: "merchants changed",
			check:  func(s subscription.Subscription) bool { return len(s.Merchants) == 1 },
		},
		{
			name: "headers", patch: subscription.Patch{Headers: &headers}, change: "headers changed",
			check: func(s subscription.Subscription) bool {
				return len(s.Headers) == 1 && s.Headers[0].Name == "x-b"
			},
		},
		{
			name: "no headers", patch: subscription.Patch{Headers: &[]sender.Header{}},
			change: "headers changed",
			check:  func(s subscription.Subscription) bool { return len(s.Headers) == 0 },
		},
		{
			name: "generated secret", patch: subscription.Patch{Secret: &empty, Overlap: time.Hour},
			change: "secret changed", secret: "whsec_",
			check: func(s subscription.Subscription) bool {
				return s.PreviousUntil != nil && s.PreviousUntil.Equal(h.Clock.Now().Add(time.Hour))
			},
		},
		{
			name: "secret of words", patch: subscription.Patch{Secret: &words},
			change: "secret changed", secret: words.Reveal(),
		},
		{
			name: "secret without an overlap", patch: subscription.Patch{Secret: &ours},
			change: "secret changed", secret: "brought-along-secret",
			check: func(s subscription.Subscription) bool { return s.PreviousUntil == nil },
		},
		{
			name: "bearer", patch: subscription.Patch{Auth: &bearer, Overlap: time.Hour},
			change: "auth, secret changed", secret: "whtok_",
			check: func(s subscription.Subscription) bool {
				return s.Auth == sender.AuthBearer && s.PreviousUntil == nil
			},
		},
		{
			name: "none", patch: subscription.Patch{Auth: &none}, change: "auth changed",
			check: func(s subscription.Subscription) bool { return s.Auth == sender.AuthNone },
		},
		{
			name: "much at once",
			patch: subscription.Patch{
				URL: text("https://two.example.com/"), Secret: &ours,
				Headers: &headers,
			},
			change: "url, secret, headers changed", secret: "brought-along-secret",
		},
		{name: "bad URL", patch: subscription.Patch{URL: text("ftp://x")}, fields: []string{"url"}},
		{name: "no events", patch: subscription.Patch{Events: []string{}}, fields: []string{"event"}},
		{name: "short secret", patch: subscription.Patch{Secret: &short}, fields: []string{"secret"}},
		{
			name: "secret without use", patch: subscription.Patch{Auth: &none, Secret: &ours},
			fields: []string{"secret"},
		},
		{
			name: "overlap of a year", fields: []string{"overlap"},
			patch: subscription.Patch{Secret: &ours, Overlap: 365 * 24 * time.Hour},
		},
		{
			name: "unknown merchant", patch: subscription.Patch{Merchants: []uuid.UUID{uuid.New()}},
			fields: []string{"merchant"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			before, _ := h.Subscribe(t, "https://hooks.example.com", func(s *subscription.Settings) {
				s.Headers = []sender.Header{{Name: "x-a", Value: "1", Plain: true}}
			})
			var after subscription.Subscription
			var value secret.String
			err := h.Try(func(ctx context.Context, tx *postgres.Tx) (err error) {
				after, value, err = h.Subscriptions.Amend(ctx, tx, before.UID, test.patch, "admin")
				return err
			})
			if len(test.fields) > 0 {
				webhooktest.WantRefusal(t, err, lending.CodeValidation, test.fields...)
				after = before
			} else if err != nil {
				t.Fatal(err)
			}
			switch got := value.Reveal(); {
			case strings.HasSuffix(test.secret, "_") && strings.HasPrefix(got, test.secret):
			case got != test.secret:
				t.Errorf("answered the secret %q, want %q", got, test.secret)
			}
			if test.check != nil && !test.check(after) {
				t.Errorf("amended %+v", after)
			}
			loaded, err := h.Subscriptions.Get(t.Context(), before.UID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(after, loaded, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("loaded (-answered +loaded):\n%s", diff)
			}
			versions := 1
			if test.change != "" {
				versions = 2
			}
			if got := h.Count(t, `
				SELECT count(*)
				  FROM subscription_versions
				 WHERE subscription_uid = $1
				   AND (version = 1 OR (change = $2 AND changed_by = 'admin'))`,
				before.UID, test.change); got != versions || loaded.Version != versions {
				t.Errorf("version %d, %d of them kept, want %d", loaded.Version, got, versions)
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		t.Parallel()
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := h.Subscriptions.Amend(ctx, tx, uuid.New(), subscription.Patch{}, "admin")
			return err
		})
		webhooktest.WantRefusal(t, err, lending.CodeNotFound)
		_, err = h.Subscriptions.Get(t.Context(), uuid.New())
		webhooktest.WantRefusal(t, err, lending.CodeNotFound)
	})
}

// During the overlap of a rotation both secrets sign, afterwards only the new one.
func TestRotationWithOverlap(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, first := h.Subscribe(t, endpoint.URL, nil)
	send := func() webhooktest.Received {
		h.Publish(t)
		h.Work(t)
		requests := endpoint.Requests()
		return requests[len(requests)-1]
	}
	put := func(value secret.String, overlap time.Duration) (made secret.String) {
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) (err error) {
			_, made, err = h.Subscriptions.Amend(ctx, tx, subscribed.UID,
				subscription.Patch{Secret: &value, Overlap: overlap}, "admin")
			return err
		})
		return made
	}
	rotate := func(overlap time.Duration) secret.String { return put(secret.String{}, overlap) }
	expect := func(when string, current secret.String, previous *secret.String) {
		t.Helper()
		got := send()
		want := ""
		if previous != nil {
			want = sender.Sign(*previous, []byte(got.Body))
		}
		if got.Header.Get("x-hmac-signature") != sender.Sign(current, []byte(got.Body)) ||
			got.Header.Get("x-hmac-signature-previous") != want {
			t.Errorf("%s: headers %v", when, got.Header)
		}
	}
	expect("at first", first, nil)
	second := rotate(subscription.DefaultOverlap)
	expect("after a rotation", second, &first)
	version := func() int {
		loaded, err := h.Subscriptions.Get(t.Context(), subscribed.UID)
		if err != nil {
			t.Fatal(err)
		}
		return loaded.Version
	}
	same := func(value secret.String, overlap time.Duration) {
		t.Helper()
		before := version()
		made := put(value, overlap)
		if after := version(); after != before || !made.IsZero() {
			t.Errorf("the same secret made version %d of %d", after, before)
		}
	}
	same(second, subscription.DefaultOverlap)
	expect("when the same is given again", second, &first)
	h.Clock.Move(subscription.DefaultOverlap - time.Second)
	expect("just before the overlap ends", second, &first)
	third := rotate(time.Hour)
	expect("after another rotation", third, &second)
	h.Clock.Move(time.Hour)
	expect("after the overlap", third, nil)
	same(third, time.Hour)
	expect("when the same is given again later", third, nil)
	fourth := rotate(0)
	expect("after a rotation without overlap", fourth, nil)
	fifth := rotate(time.Hour)
	put(fifth, 0)
	expect("when the same is given again without overlap", fifth, nil)
}

func TestBearerIsSentAlone(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, token := h.Subscribe(t, endpoint.URL, func(s *subscription.Settings) {
		s.Auth = sender.AuthBearer
		s.Headers = []sender.Header{{Name: "Authorization", Value: "Basic overruled"}}
	})
	replaced := secret.New("a-replaced-token")
	for _, want := range []secret.String{token, replaced} {
		h.Publish(t)
		h.Work(t)
		requests := endpoint.Requests()
		header := requests[len(requests)-1].Header
		if got := header["Authorization"]; len(got) != 1 || got[0] != "Bearer "+want.Reveal() ||
			header.Get("x-hmac-signature") != "" || header.Get("x-hmac-signature-previous") != "" {
			t.Errorf("headers %v", header)
		}
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := h.Subscriptions.Amend(ctx, tx, subscribed.UID, subscription.Patch{
				Secret: &replaced, Overlap: subscription.DefaultOverlap,
			}, "admin")
			return err
		})
	}
}
