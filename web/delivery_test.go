package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// sentRow is what tests read of a delivery.
type sentRow struct {
	UID        uuid.UUID  `json:"delivery_uid"`
	State      string     `json:"state"`
	Sequence   *int64     `json:"sequence"`
	Merchant   *uuid.UUID `json:"merchant_uid"`
	ResendOf   *uuid.UUID `json:"resend_of"`
	MadeGoodBy *uuid.UUID `json:"made_good_by"`
	Attempts   []struct {
		HTTPStatus int `json:"http_status"`
	} `json:"attempts"`
}

func call(s *apptest.Server, as apptest.Account, method, path string, body any) apptest.Answer {
	s.T.Helper()
	return s.Do(apptest.Call{Method: method, Path: path, As: &as, JSON: body})
}

func readRow(s *apptest.Server, as apptest.Account, uid uuid.UUID) sentRow {
	s.T.Helper()
	answer := call(s, as, http.MethodGet, "/v2/deliveries/"+uid.String(), nil)
	var row sentRow
	if err := json.Unmarshal(answer.Result.Data, &row); answer.Status != 200 || err != nil {
		s.T.Fatalf("answered %s", answer.Raw)
	}
	return row
}

func TestAPartnerReadsAndResendsItsDeliveries(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	failed := s.Undelivered(s.Create())
	path := "/v2/deliveries/" + failed.UID.String()
	got := readRow(s, s.Home, failed.UID)
	if got.State != "failed" || *got.Sequence != 1 || *got.Merchant != s.Home.MerchantUID ||
		len(got.Attempts) != 1 || got.Attempts[0].HTTPStatus != 503 || got.MadeGoodBy != nil {
		t.Errorf("read %+v", got)
	}
	answer := call(s, s.Home, http.MethodPost, path+"/resend", nil)
	var made sentRow
	if err := json.Unmarshal(answer.Result.Data, &made); err != nil ||
		answer.Status != http.StatusCreated || *made.ResendOf != failed.UID ||
		made.State != "pending" {
		t.Fatalf("re-sent: %s", answer.Raw)
	}
	keyed := apptest.Call{
		Method: http.MethodPost, Path: path + "/resend",
		Header: map[string]string{"Idempotency-Key": "again"},
	}
	first, replayed := s.Do(keyed), s.Do(keyed)
	if first.Status != http.StatusCreated ||
		first.Text("delivery_uid") != replayed.Text("delivery_uid") {
		t.Errorf("under a key: %s, then %s", first.Raw, replayed.Raw)
	}
	again := call(s, s.Home, http.MethodPost, "/v2/deliveries/"+made.UID.String()+"/resend", nil)
	if again.Status != http.StatusConflict || again.Code() != "INVALID_STATE" {
		t.Errorf("one that is on its way was re-sent: %s", again.Raw)
	}
	s.End(made.UID, delivery.StateDelivered)
	if got := readRow(s, s.Home, failed.UID); got.MadeGoodBy == nil || *got.MadeGoodBy != made.UID {
		t.Errorf("made good by %v, want %s", got.MadeGoodBy, made.UID)
	}
	if n := s.Count(t, `
		SELECT count(*) FROM audit_log WHERE action = 'delivery.resend' AND actor = $1`,
		"client "+s.Home.ClientID); n != 2 {
		t.Errorf("%d entries in the audit log, want 2: a replay adds none", n)
	}
	s.Exec(t, `UPDATE subscriptions SET state = 'deleted' WHERE subscription_uid = $1`,
		failed.SubscriptionUID)
	gone := call(s, s.Home, http.MethodPost, path+"/resend", nil)
	if gone.Status != http.StatusConflict || gone.Code() != "INVALID_STATE" {
		t.Errorf("to a deleted subscription: %s", gone.Raw)
	}
}

// Deliveries that are re-sent one by one are bounded for each subscription, and the answer says
// when to come again.
func TestSingleResendsAreBounded(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	failed, other := s.Undelivered(s.Create()), s.Undelivered(s.Create())
	s.Exec(t, `
		INSERT INTO audit_log (at, actor, address, action, subject_kind, subject, reason)
		SELECT now() - interval '30 minutes', $1, '', 'delivery.resend', 'subscription', $2, ''
		  FROM generate_series(1, 99)`, "client "+s.Home.ClientID, failed.SubscriptionUID.String())
	path := "/v2/deliveries/" + failed.UID.String() + "/resend"
	if first := call(s, s.Home, http.MethodPost, path, nil); first.Status != http.StatusCreated {
		t.Errorf("the hundredth: %s", first.Raw)
	}
	over := call(s, s.Home, http.MethodPost, path, nil)
	wait, err := time.ParseDuration(over.Header.Get("Retry-After") + "s")
	if over.Code() != "RATE_LIMITED" || err != nil || wait < 29*time.Minute ||
		wait > 31*time.Minute {
		t.Errorf("one more: %s, in %s: %s", over.Raw, wait, err)
	}
	elsewhere := call(s, s.Home, http.MethodPost,
		"/v2/deliveries/"+other.UID.String()+"/resend", nil)
	if elsewhere.Status != http.StatusCreated {
		t.Errorf("to another subscription: %s", elsewhere.Raw)
	}
}

func TestRecoveriesHoldWhatDidNotArrive(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 2)
	mine, theirs := s.CreateAs(members[0]), s.CreateAs(members[1])
	failed := s.Undelivered(mine)
	s.Fail(mine, failed.SubscriptionUID)
	s.Fail(theirs, failed.SubscriptionUID)
	good := s.Fail(mine, failed.SubscriptionUID)
	s.End(good.UID, delivery.StateDelivered)
	wanted := map[string]any{
		"subscription_uid": failed.SubscriptionUID,
		"since":            failed.EventAt.Add(-time.Minute).UTC().Format(time.RFC3339),
	}
	var together sync.WaitGroup
	answers := make([]apptest.Answer, 4)
	for i := range answers {
		together.Go(func() {
			answers[i], _ = s.Try(apptest.Call{
				Method: http.MethodPost, Path: "/v2/recoveries", As: &members[0], JSON: wanted,
			})
		})
	}
	together.Wait()
	var uid string
	for _, answer := range answers {
		switch answer.Status {
		case http.StatusAccepted:
			if uid != "" {
				t.Error("two recoveries of one subscription began")
			}
			uid = answer.Text("recovery_uid")
			if total := fmt.Sprint(answer.Data()["total"]); total != "2" {
				t.Errorf("it holds %s deliveries, want 2: %s", total, answer.Raw)
			}
		case http.StatusConflict:
		default:
			t.Errorf("answered %s", answer.Raw)
		}
	}
	if got := call(s, members[0], http.MethodGet, "/v2/recoveries/"+uid, nil); got.Status != 200 ||
		got.Text("state") != "running" {
		t.Errorf("read: %s", got.Raw)
	}
	for _, as := range []apptest.Account{group, members[1], s.Home} {
		if got := call(s, as, http.MethodGet, "/v2/recoveries/"+uid, nil); got.Status != 404 {
			t.Errorf("another client read it: %s", got.Raw)
		}
	}
	// Whoever may act for the other merchant has its own.
	if got := call(s, members[1], http.MethodPost, "/v2/recoveries", wanted); got.Status != 202 ||
		fmt.Sprint(got.Data()["total"]) != "1" {
		t.Errorf("the other merchant's: %s", got.Raw)
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_log WHERE action = 'recovery.create'`); n != 2 {
		t.Errorf("%d entries in the audit log, want 2", n)
	}
}

func TestWrongRecoveriesAreRefused(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	failed := s.Undelivered(s.Create())
	foreign := s.Undelivered(s.CreateAs(s.NewAccount("Stranger")))
	now := time.Now().UTC()
	at := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339) }
	for name, test := range map[string]struct {
		body   map[string]any
		status int
		names  string
	}{
		"no subscription": {map[string]any{"since": at(time.Hour)}, 400, "subscription_uid"},
		"another's": {map[string]any{
			"subscription_uid": foreign.SubscriptionUID, "since": at(time.Hour),
		}, 400, "subscription_uid"},
		"no time": {map[string]any{"subscription_uid": failed.SubscriptionUID}, 400, "since"},
		"no time at all": {map[string]any{
			"subscription_uid": failed.SubscriptionUID, "since": "yesterday",
		}, 400, "since"},
		"too far back": {map[string]any{
			"subscription_uid": failed.SubscriptionUID, "since": at(31 * 24 * time.Hour),
		}, 400, "since"},
		"backwards": {map[string]any{
			"subscription_uid": failed.SubscriptionUID, "since": at(time.Hour), "until": at(2 * time.Hour),
		}, 400, "until"},
	} {
		got := call(s, s.Home, http.MethodPost, "/v2/recoveries", test.body)
		if got.Status != test.status || !strings.Contains(string(got.Raw), `"`+test.names+`"`) {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
	s.Exec(t, `UPDATE subscriptions SET state = 'deleted' WHERE subscription_uid = $1`,
		failed.SubscriptionUID)
	got := call(s, s.Home, http.MethodPost, "/v2/recoveries", map[string]any{
		"subscription_uid": failed.SubscriptionUID, "since": at(time.Hour),
	})
	if got.Status != http.StatusConflict {
		t.Errorf("of a deleted subscription: %s", got.Raw)
	}
}

// A client sees the deliveries of its own merchants, and the subscriptions that cover one of
// them; everything else is as if it did not exist.
func TestDeliveriesOfOthersAreNotThere(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 2)
	failed := s.Undelivered(s.CreateAs(members[0]))
	on := *s.Harness
	on.Partner = members[0].PartnerUID
	narrow := on.Subscribe(t, func(settings *subscription.Settings) {
		settings.Name, settings.Merchants = "Narrow", []uuid.UUID{members[0].MerchantUID}
	})
	path := "/v2/deliveries/" + failed.UID.String()
	for name, test := range map[string]struct {
		as            apptest.Account
		status        int
		subscriptions int
	}{
		"its own client": {members[0], 200, 2},
		"the group's":    {group, 200, 2},
		"a sibling's":    {members[1], 404, 1},
		"a stranger's":   {s.Home, 404, 0},
	} {
		for _, one := range []struct{ method, path string }{
			{http.MethodGet, path}, {http.MethodPost, path + "/resend"},
		} {
			want := test.status
			if one.method == http.MethodPost && want == 200 {
				continue
			}
			if got := call(s, test.as, one.method, one.path, nil); got.Status != want {
				t.Errorf("%s, %s %s: %s", name, one.method, one.path, got.Raw)
			}
		}
		listed := call(s, test.as, http.MethodGet, "/v2/deliveries", nil)
		seen := strings.Contains(string(listed.Raw), failed.UID.String())
		if seen != (test.status == 200) {
			t.Errorf("%s lists %s", name, listed.Raw)
		}
		subscriptions := call(s, test.as, http.MethodGet, "/v2/subscriptions", nil)
		text := string(subscriptions.Raw)
		if got := strings.Count(text, `"subscription_uid"`); got != test.subscriptions ||
			strings.Contains(text, narrow.UID.String()) != (test.subscriptions == 2) {
			t.Errorf("%s sees the subscriptions %s", name, text)
		}
	}
}
