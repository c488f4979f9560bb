package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// subscribe creates a subscription of an account's partner to all events.
func subscribe(
	s *apptest.Server, of apptest.Account, change func(*subscription.Settings),
) subscription.Subscription {
	s.T.Helper()
	on := *s.Harness
	on.Partner = of.PartnerUID
	return on.Subscribe(s.T, change)
}

// recordTask records a task event of the application.
func recordTask(s *apptest.Server, application uuid.UUID) {
	s.T.Helper()
	s.Harness.Do(s.T, func(ctx context.Context, tx *postgres.Tx) error {
		return s.Harness.Events.Record(ctx, tx,
			lending.TaskCreated(application.String(), "Sign", lending.TaskPending))
	})
}

// sendTest sends a test event to a subscription and returns its delivery.
func sendTest(s *apptest.Server, to uuid.UUID) (uid uuid.UUID) {
	s.T.Helper()
	s.Harness.Do(s.T, func(ctx context.Context, tx *postgres.Tx) (err error) {
		uid, err = s.Webhooks.Deliveries.Test(ctx, tx, to, lending.EventTaskCreated)
		return err
	})
	return uid
}

// nullsOf returns the names of an object's null fields.
func nullsOf(object map[string]any) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if object[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

// objectsOf returns the objects of a list in an answer.
func objectsOf(t *testing.T, answer apptest.Answer, list string) (all []map[string]any) {
	t.Helper()
	lists := map[string]json.RawMessage{}
	if err := json.Unmarshal(answer.Result.Data, &lists); err != nil {
		t.Fatalf("answered %s: %v", answer.Raw, err)
	}
	if err := json.Unmarshal(lists[list], &all); err != nil {
		t.Fatalf("answered %s: %v", answer.Raw, err)
	}
	return all
}

// No secret, current or former, and no header value appears in what a partner reads of its
// subscriptions and their deliveries, even if the endpoint echoes everything that it got.
func TestNoCredentialIsShown(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	endpoint := apptest.NewEndpoint(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("x-seen", fmt.Sprint(r.Header))
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, r.Header)
	})
	hidden := []string{"sealed value", "plain value", "authorization value"}
	auths := []sender.Auth{sender.AuthHMAC, sender.AuthBearer, sender.AuthNone}
	for _, auth := range auths {
		to := subscribe(s, s.Home, func(settings *subscription.Settings) {
			settings.URL, settings.Auth = endpoint.URL, auth
			settings.Headers = []sender.Header{
				{Name: "x-api-key", Value: hidden[0]},
				{Name: "x-tenant", Value: hidden[1], Plain: true},
				{Name: "authorization", Value: hidden[2]},
			}
			if auth != sender.AuthNone {
				settings.Secret = secret.New("former-secret-of-" + string(auth))
			}
		})
		if auth == sender.AuthNone {
			continue
		}
		second := secret.New("second-secret-of-" + string(auth))
		hidden = append(hidden, "former-secret", second.Reveal())
		s.Harness.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, _, err := s.Webhooks.Subscriptions.Amend(ctx, tx, to.UID,
				subscription.Patch{Secret: &second, Overlap: time.Hour}, "operator")
			return err
		})
	}
	recordTask(s, s.Create())
	s.Work(t)
	if got := len(endpoint.Received()); got != len(auths) {
		t.Fatalf("%d requests, want %d", got, len(auths))
	}
	answers := map[string]apptest.Answer{}
	read := func(path string) apptest.Answer {
		answers[path] = s.Get(path)
		return answers[path]
	}
	fields := []string{"auth", "events", "merchants", "name", "state", "subscription_uid", "url"}
	for _, one := range objectsOf(t, read("/v2/subscriptions"), "subscriptions") {
		if diff := cmp.Diff(fields, slices.Sorted(maps.Keys(one))); diff != "" {
			t.Errorf("a subscription has other fields: %s", diff)
		}
	}
	for _, one := range objectsOf(t, read("/v2/deliveries"), "deliveries") {
		read(fmt.Sprint("/v2/deliveries/", one["delivery_uid"]))
	}
	if len(answers) != 2+len(auths) {
		t.Errorf("read only %v", slices.Collect(maps.Keys(answers)))
	}
	for path, answer := range answers {
		for _, value := range hidden {
			if strings.Contains(string(answer.Raw), value) {
				t.Errorf("%s shows %q: %s", path, value, answer.Raw)
			}
		}
	}
}

// A test belongs to no merchant: readers of its subscription see it, and recoveries omit it.
func TestTestsAreShownWithTheirSubscription(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 2)
	shared := subscribe(s, group, nil).UID
	narrow := subscribe(s, group, func(settings *subscription.Settings) {
		settings.Merchants = []uuid.UUID{members[0].MerchantUID}
	}).UID
	first, second := sendTest(s, shared), sendTest(s, narrow)
	nulls := []string{"made_good_by", "merchant_uid", "resend_of", "sequence"}
	for _, step := range []struct {
		state delivery.State
		nulls []string
	}{
		{delivery.StatePending, []string{"error_class", "finished_at", "http_status"}},
		{delivery.StateFailed, []string{"next_attempt_at"}},
	} {
		if step.state != delivery.StatePending {
			s.End(first, step.state)
			s.End(second, step.state)
		}
		want := append(slices.Clone(nulls), step.nulls...)
		slices.Sort(want)
		listed := objectsOf(t, call(s, members[1], http.MethodGet, "/v2/deliveries", nil), "deliveries")
		if len(listed) != 1 {
			t.Fatalf("a sibling sees %v", listed)
		}
		one := listed[0]
		if one["test"] != true || one["state"] != string(step.state) ||
			one["event"] != string(lending.EventTaskCreated) ||
			one["subscription_uid"] != shared.String() ||
			one["thrive_application_uid"] != "00000000-0000-4000-8000-000000000000" {
			t.Errorf("a test is %v", one)
		}
		if diff := cmp.Diff(want, nullsOf(one)); diff != "" {
			t.Errorf("a %s test has these nulls: %s", step.state, diff)
		}
	}
	for name, test := range map[string]struct {
		as   apptest.Account
		want []uuid.UUID
	}{
		"its own client": {members[0], []uuid.UUID{second, first}},
		"the group's":    {group, []uuid.UUID{second, first}},
		"a sibling's":    {members[1], []uuid.UUID{first}},
		"a stranger's":   {s.Home, nil},
	} {
		listed, _ := deliveriesListed(s, test.as, url.Values{})
		if diff := cmp.Diff(test.want, listed); diff != "" {
			t.Errorf("%s lists %s", name, diff)
		}
		for _, uid := range []uuid.UUID{first, second} {
			want := http.StatusNotFound
			if slices.Contains(test.want, uid) {
				want = http.StatusOK
			}
			answer := call(s, test.as, http.MethodGet, "/v2/deliveries/"+uid.String(), nil)
			if answer.Status != want {
				t.Errorf("%s reads %s", name, answer.Raw)
			}
		}
	}
	nothing := call(s, group, http.MethodPost, "/v2/recoveries", map[string]any{
		"subscription_uid": shared,
		"since":            s.DB.Now().Add(-time.Minute).UTC().Format(time.RFC3339),
	})
	if nothing.Status != http.StatusAccepted || fmt.Sprint(nothing.Data()["total"]) != "0" ||
		nothing.Text("state") != "finished" {
		t.Errorf("a recovery of tests alone: %s", nothing.Raw)
	}
}
