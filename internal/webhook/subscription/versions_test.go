package subscription_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// changed makes one version for each kind of change.
func changed(t *testing.T, h *webhooktest.Harness) (uuid.UUID, secret.String) {
	t.Helper()
	subscribed, first := h.Subscribe(t, "https://hooks.example/one", func(s *subscription.Settings) {
		s.Headers = []sender.Header{{Name: "x-api-key", Value: "one one one"}}
	})
	uid := subscribed.UID
	moved, rotated := "https://hooks.example/two", secret.New("whsec_second_secret")
	h.Amend(t, uid, subscription.Patch{URL: &moved, Reason: "they moved"})
	h.Amend(t, uid, subscription.Patch{Secret: &rotated, Overlap: time.Hour})
	h.Amend(t, uid, subscription.Patch{
		Events: []string{"task.created"}, Merchants: []uuid.UUID{h.Merchant},
	})
	headers := []sender.Header{
		{Name: "x-api-key", Value: "two two two"},
		{Name: "accept-language", Value: "pt", Plain: true},
	}
	h.Amend(t, uid, subscription.Patch{Headers: &headers})
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Subscriptions.Pause(ctx, tx, uid, "olga@lender.example")
		return err
	})
	return uid, first
}

func TestVersionsTellWhoChangedWhatAndWhy(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	uid, _ := changed(t, h)
	versions, err := h.Subscriptions.Versions(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, version := range versions {
		shown = append(shown, fmt.Sprintf("%d %s (%s) %s by %s", version.Number, version.Change,
			version.Reason, version.State, version.ChangedBy))
	}
	want := []string{
		"6 paused () paused by olga@lender.example",
		"5 headers changed () active by olga@lender.example",
		"4 events, merchants changed () active by olga@lender.example",
		"3 secret changed () active by olga@lender.example",
		"2 url changed (they moved) active by olga@lender.example",
		"1 created () active by operator",
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	_, err = h.Subscriptions.Versions(t.Context(), uuid.New())
	webhooktest.WantRefusal(t, err, lending.CodeNotFound)
}

func TestVersionsAreCompared(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	uid, first := changed(t, h)
	diff, err := h.Subscriptions.CompareVersions(t.Context(), uid, 1, 6)
	if err != nil {
		t.Fatal(err)
	}
	want := subscription.VersionDiff{From: 1, To: 6, Changes: []subscription.SettingChange{
		{Setting: "url", Before: "https://hooks.example/one", After: "https://hooks.example/two"},
		{Setting: "secret", Masked: true},
		{Setting: "events", Before: "all"},
		{Setting: "events", After: "task.created"},
		{Setting: "merchants", Before: "all"},
		{Setting: "merchants", After: h.Merchant.String()},
		{
			Setting: "headers", Name: "x-api-key", Before: "[hidden]", After: "[hidden]",
			Masked: true,
		},
		{Setting: "headers", Name: "accept-language", After: "pt"},
		{Setting: "state", Before: "active", After: "paused"},
	}}
	if difference := cmp.Diff(want, diff); difference != "" {
		t.Error(difference)
	}
	for _, hidden := range []string{"one one", "two two", "second_secret", first.Reveal()} {
		if strings.Contains(fmt.Sprintf("%+v", diff), hidden) {
			t.Errorf("the difference shows %q", hidden)
		}
	}
	back, err := h.Subscriptions.CompareVersions(t.Context(), uid, 6, 5)
	if err != nil || fmt.Sprint(back.Settings()) != "[state]" {
		t.Errorf("from 6 to 5: %v, %v", back.Settings(), err)
	}
	_, err = h.Subscriptions.CompareVersions(t.Context(), uid, 1, 7)
	webhooktest.WantRefusal(t, err, lending.CodeNotFound)
}

func TestVersionsKeepTheHealthRules(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example/one", nil)
	watch := subscription.Watch{Pause: true, FailingMinutes: 60, AlertEmail: "ops@partner.example"}
	h.Amend(t, subscribed.UID, subscription.Patch{Watch: &watch})
	diff, err := h.Subscriptions.CompareVersions(t.Context(), subscribed.UID, 1, 2)
	want := []subscription.SettingChange{{
		Setting: "health_rules",
		After:   "pauses when it fails, fails after 60 minutes, alerts ops@partner.example",
	}}
	if difference := cmp.Diff(want, diff.Changes); difference != "" || err != nil {
		t.Error(difference, err)
	}
}

// Restoring a version restores its health rules, and one save is one version.
func TestRestoreBringsTheHealthRulesBack(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	made, _ := h.Subscribe(t, "https://hooks.example/one", nil)
	rules := subscription.Watch{
		Pause: true, FailingMinutes: 60, FailingEvents: 7, AlertEmail: `"a, b"@partner.example`,
	}
	moved := "https://hooks.example/two"
	changed, _ := h.Amend(t, made.UID, subscription.Patch{URL: &moved, Watch: &rules}) // 2
	if changed.Version != 2 || changed.Watch != rules {
		t.Errorf("one save made %+v", changed)
	}
	h.Amend(t, made.UID, subscription.Patch{Watch: &subscription.Watch{}}) // 3
	restored, err := h.Restore(t, made.UID, subscription.Choice{Version: 2})
	if err != nil || restored.Subscription.Watch != rules {
		t.Errorf("restored %+v, %v", restored.Subscription.Watch, err)
	}
	versions, err := h.Subscriptions.Versions(t.Context(), made.UID)
	if err != nil || len(versions) != 4 ||
		versions[0].Change != "version 2 restored: health rules changed" ||
		versions[2].Change != "url, health rules changed" {
		t.Errorf("versions %+v, %v", versions, err)
	}
	// Rules that an older release stored are read the same; a version without any changes none.
	h.Exec(t, `
		UPDATE subscription_versions
		   SET health_rules = CASE version WHEN 1 THEN NULL ELSE 'fails after 9 events' END
		 WHERE version < 3`)
	if restored, err = h.Restore(t, made.UID, subscription.Choice{Version: 1}); err != nil ||
		restored.Subscription.Watch != rules {
		t.Errorf("without rules it has %+v, %v", restored.Subscription.Watch, err)
	}
	if restored, err = h.Restore(t, made.UID, subscription.Choice{Version: 2}); err != nil ||
		restored.Subscription.Watch != (subscription.Watch{FailingEvents: 9}) {
		t.Errorf("of an older release it has %+v, %v", restored.Subscription.Watch, err)
	}
	_, _, err = h.TryAmend(made.UID, subscription.Patch{Watch: &subscription.Watch{FailingMinutes: 1}})
	webhooktest.WantRefusal(t, err, lending.CodeValidation, "failing_minutes")
}

func TestRestorePutsAVersionBackAndKeepsTheSecret(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	uid, _ := changed(t, h)
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Subscriptions.Resume(ctx, tx, uid, "operator")
		return err
	})
	restored, err := h.Restore(t, uid,
		subscription.Choice{Version: 1, Reason: "the move was called off"})
	if err != nil {
		t.Fatal(err)
	}
	got := restored.Subscription
	if got.URL != "https://hooks.example/one" || fmt.Sprint(got.Events) != "[all]" ||
		len(got.Merchants) != 0 || len(got.Headers) != 1 || got.Headers[0].Value != "one one one" ||
		got.Version != 8 || !restored.SecretKept || !restored.Secret.IsZero() {
		t.Errorf("restored %+v", restored)
	}
	versions, err := h.Subscriptions.Versions(t.Context(), uid)
	if err != nil || versions[0].Reason != "the move was called off" ||
		versions[0].Change != "version 1 restored: url, events, merchants, headers changed" {
		t.Errorf("version %+v, %v", versions[0], err)
	}
	h.Amend(t, uid, subscription.Patch{URL: &endpoint.URL, Headers: &[]sender.Header{}})
	event := h.Publish(t)
	h.Work(t)
	if sent := endpoint.Requests(); len(sent) != 1 ||
		sent[0].Header.Get("x-hmac-signature") !=
			sender.Sign(secret.New("whsec_second_secret"), event.Body) {
		t.Errorf("%d requests, or not signed with the secret in force", len(sent))
	}
	if again, err := h.Restore(t, uid, subscription.Choice{Version: 9}); err != nil ||
		again.Subscription.Version != 9 {
		t.Errorf("restoring what is in force made %+v, %v", again.Subscription.Version, err)
	}
}

func TestRestoreAcrossSchemes(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	endpoint := webhooktest.NewReceiver(t, nil)
	subscribed, _ := h.Subscribe(t, endpoint.URL, nil) // 1: hmac
	bearer, none := sender.AuthBearer, sender.AuthNone
	_, token := h.Amend(t, subscribed.UID, subscription.Patch{Auth: &bearer})  // 2
	kept, err := h.Restore(t, subscribed.UID, subscription.Choice{Version: 1}) // 3
	if err != nil || kept.Subscription.Auth != sender.AuthHMAC || !kept.SecretKept {
		t.Fatalf("restored %+v, %v", kept, err)
	}
	event := h.Publish(t)
	h.Work(t)
	signature := endpoint.Requests()[0].Header.Get("x-hmac-signature")
	if signature != sender.Sign(token, event.Body) {
		t.Error("the secret in force was not kept under the other scheme")
	}
	h.Amend(t, subscribed.UID, subscription.Patch{Auth: &none}) // 4
	fresh, err := h.Restore(t, subscribed.UID, subscription.Choice{Version: 2})
	if err != nil || fresh.Subscription.Auth != sender.AuthBearer || fresh.SecretKept ||
		fresh.Secret.IsZero() {
		t.Errorf("without a secret to keep: %+v, %v", fresh, err)
	}
}

func TestRestoreChecksByTheRulesOfToday(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	uid, _ := changed(t, h)
	h.Subscriptions.Policy.Allow = nil
	h.Exec(t, `
		UPDATE subscription_versions
		   SET url = 'https://127.0.0.1/hook', merchant_uids = ARRAY[$2::uuid]
		 WHERE subscription_uid = $1 AND version = 1`, uid, uuid.New())
	_, err := h.Restore(t, uid, subscription.Choice{Version: 1})
	webhooktest.WantRefusal(t, err, lending.CodeValidation, "url")
	h.Exec(t, `UPDATE subscription_versions SET url = 'https://ok.example/' WHERE version = 1`)
	_, err = h.Restore(t, uid, subscription.Choice{Version: 1, NoHeaders: true})
	webhooktest.WantRefusal(t, err, lending.CodeValidation, "merchant")
	_, err = h.Restore(t, uid, subscription.Choice{Version: 99})
	webhooktest.WantRefusal(t, err, lending.CodeNotFound)
	_, err = h.Restore(t, uuid.New(), subscription.Choice{Version: 1})
	webhooktest.WantRefusal(t, err, lending.CodeNotFound)
}

func TestAStaleChangeIsRefusedAndToldWhatChanged(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	uid, _ := changed(t, h)
	mine := "https://hooks.example/mine"
	for _, test := range []struct {
		name  string
		base  int
		stale string
	}{
		{"the one in force", 6, ""},
		{"only paused since", 5, ""},
		{"headers since", 4, "[headers]"},
		{"everything since", 1, "[url secret events merchants headers]"},
	} {
		err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := h.Subscriptions.Amend(ctx, tx, uid,
				subscription.Patch{URL: &mine, Base: test.base}, "ines")
			if err == nil {
				err = errors.New("to be rolled back")
			}
			return err
		})
		stale, refused := errors.AsType[*subscription.StaleError](err)
		if refused != (test.stale != "") {
			t.Errorf("%s: %v", test.name, err)
		}
		if !refused {
			continue
		}
		webhooktest.WantRefusal(t, err, lending.CodeInvalidState)
		if fmt.Sprint(stale.Since.Settings()) != test.stale || stale.By != "olga@lender.example" {
			t.Errorf("%s: since %v by %s", test.name, stale.Since.Settings(), stale.By)
		}
	}
	// State changes caused by health are nobody's edits.
	h.Exec(t, `
		INSERT INTO subscription_versions
		SELECT (jsonb_populate_record(v, jsonb_build_object('version', 7, 'change', 'recovered',
		                                                   'changed_by', 'system'))).*
		  FROM subscription_versions v
		 WHERE version = 6`)
	h.Exec(t, `UPDATE subscriptions SET version = 7`)
	refused := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := h.Subscriptions.Amend(ctx, tx, uid, subscription.Patch{URL: &mine, Base: 4}, "ines")
		return err
	})
	if stale, ok := errors.AsType[*subscription.StaleError](refused); !ok ||
		stale.By != "olga@lender.example" {
		t.Errorf("after a recovery: %v", refused)
	}
	_, err := h.Restore(t, uid, subscription.Choice{Version: 2, Base: 1})
	webhooktest.WantRefusal(t, err, lending.CodeInvalidState)
}
