package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
)

// sentRow holds the fields of a delivery that tests read.
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
	keyed.JSON, keyed.Departs = ` {} `, true
	if same := s.Do(keyed); first.Text("delivery_uid") != same.Text("delivery_uid") {
		t.Errorf("under the key with an empty object: %s", same.Raw)
	}
	keyed.JSON = `{"other": 1}`
	if other := s.Do(keyed); other.Code() != "IDEMPOTENCY_MISMATCH" {
		t.Errorf("under the key with another content: %s", other.Raw)
	}
	again := call(s, s.Home, http.MethodPost, "/v2/deliveries/"+made.UID.String()+"/resend", nil)
	if again.Status != http.StatusConflict || again.Code() != "INVALID_STATE" {
		t.Errorf("one that is on its way was re-sent: %s", again.Raw)
	}
	s.Harness.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := s.Webhooks.Deliveries.Test(ctx, tx, failed.SubscriptionUID, lending.EventTaskCreated)
		return err
	})
	var test uuid.UUID
	if err := s.DB.GetContext(t.Context(), &test,
		`SELECT delivery_uid FROM deliveries WHERE test`); err != nil {
		t.Fatal(err)
	}
	s.End(test, delivery.StateFailed)
	tested := call(s, s.Home, http.MethodPost, "/v2/deliveries/"+test.String()+"/resend", nil)
	if tested.Status != http.StatusConflict || tested.Code() != "INVALID_STATE" {
		t.Errorf("a test was re-sent: %s", tested.Raw)
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

// atLimit fails unless a request is refused until the given time has passed on the clock,
// and accepted then.
func atLimit(
	s *apptest.Server, clock *apptest.Clock, in time.Duration, again func() apptest.Answer, taken int,
) (over apptest.Answer) {
	s.T.Helper()
	over = again()
	wait, err := time.ParseDuration(over.Header.Get("Retry-After") + "s")
	if over.Status != http.StatusTooManyRequests || over.Code() != "RATE_LIMITED" || err != nil ||
		wait != in {
		s.T.Errorf("beyond the limit: %s, to come again in %s, want %s", over.Raw, wait, in)
	}
	clock.Move(in - time.Second)
	if early := again(); early.Status != http.StatusTooManyRequests {
		s.T.Errorf("a second too early: %s", early.Raw)
	}
	clock.Move(time.Second)
	if now := again(); now.Status != taken {
		s.T.Errorf("in time: %s", now.Raw)
	}
	if next := again(); next.Status == taken {
		s.T.Errorf("the next is taken at once: %s", next.Raw)
	}
	return over
}

// wantQuota expects a refusal to report the exceeded quota, not the rate limit.
func wantQuota(t *testing.T, over apptest.Answer, quota, message string) {
	t.Helper()
	got := []string{
		over.Header.Get("RateLimit-Limit"), over.Header.Get("RateLimit-Remaining"),
		over.Header.Get("RateLimit-Reset"), over.Message(),
	}
	want := []string{quota, "0", over.Header.Get("Retry-After"), message}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("beyond the limit (-want +got):\n%s", diff)
	}
}

// Re-sends of single deliveries are limited per subscription and hour, and the answer says
// when to retry.
func TestSingleResendsAreBounded(t *testing.T) {
	t.Parallel()
	clock, db := apptest.NewClock(), pgtest.New(t)
	db.Now = clock.Now
	s := apptest.StartServer(t, db).Furnish()
	failed, other := s.Undelivered(s.Create()), s.Undelivered(s.Create())
	resend := func(uid uuid.UUID) apptest.Answer {
		return call(s, s.Home, http.MethodPost, "/v2/deliveries/"+uid.String()+"/resend", nil)
	}
	for nth := range 100 {
		if made := resend(failed.UID); made.Status != http.StatusCreated {
			t.Fatalf("re-send %d: %s", nth+1, made.Raw)
		}
		clock.Move(10 * time.Second)
	}
	again := func() apptest.Answer { return resend(failed.UID) }
	over := atLimit(s, clock, time.Hour-1000*time.Second, again, http.StatusCreated)
	wantQuota(t, over, "100", "this may be done at most 100 times in 1 h; try again in 43 min 20 s")
	if elsewhere := resend(other.UID); elsewhere.Status != http.StatusCreated {
		t.Errorf("to another subscription: %s", elsewhere.Raw)
	}
}

// A client may begin ten recoveries in any 24 hours, over all subscriptions; refused ones
// do not count.
func TestRecoveriesAreBounded(t *testing.T) {
	t.Parallel()
	clock, db := apptest.NewClock(), pgtest.New(t)
	db.Now = clock.Now
	s := apptest.StartServer(t, db).Furnish()
	uid := s.Create()
	recoverAll := func(failed delivery.Delivery) apptest.Answer {
		return call(s, s.Home, http.MethodPost, "/v2/recoveries", map[string]any{
			"subscription_uid": failed.SubscriptionUID,
			"since":            failed.EventAt.Add(-time.Minute).UTC().Format(time.RFC3339),
		})
	}
	for nth := range 10 {
		failed := s.Undelivered(uid)
		clock.Move(time.Minute)
		if begun := recoverAll(failed); begun.Status != http.StatusAccepted {
			t.Fatalf("recovery %d: %s", nth+1, begun.Raw)
		}
		if running := recoverAll(failed); nth < 9 && running.Code() != "INVALID_STATE" {
			t.Errorf("beside a running one: %s", running.Raw)
		}
		clock.Move(time.Hour - time.Minute)
	}
	next := []delivery.Delivery{s.Undelivered(uid), s.Undelivered(uid)}
	clock.Move(time.Minute)
	over := atLimit(s, clock, 14*time.Hour, func() apptest.Answer {
		answer := recoverAll(next[0])
		if answer.Status == http.StatusAccepted {
			next = next[1:]
		}
		return answer
	}, http.StatusAccepted)
	wantQuota(t, over, "10", "this may be done at most 10 times in 24 h; try again in 14 h")
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
	if got := call(s, members[0], http.MethodPost, "/v2/recoveries", wanted); got.Status != 409 ||
		!strings.Contains(string(got.Raw), uid) {
		t.Errorf("the refusal of a second one names not the first: %s", got.Raw)
	}
	// A client of the other merchant has its own quota.
	if got := call(s, members[1], http.MethodPost, "/v2/recoveries", wanted); got.Status != 202 ||
		fmt.Sprint(got.Data()["total"]) != "1" {
		t.Errorf("the other merchant's: %s", got.Raw)
	}
	// The event's time counts, to the microsecond: its delivery may be slightly older.
	late := s.Fail(mine, failed.SubscriptionUID)
	s.Fail(mine, failed.SubscriptionUID)
	s.Exec(t, `
		UPDATE deliveries
		   SET created_at = event_at - interval '1 second'
		 WHERE delivery_uid = $1`, late.UID)
	exactly := call(s, group, http.MethodPost, "/v2/recoveries", map[string]any{
		"subscription_uid": late.SubscriptionUID, "since": late.EventAt.UTC(),
		"until": late.EventAt.Add(time.Microsecond).UTC(),
	})
	if exactly.Status != 202 || fmt.Sprint(exactly.Data()["total"]) != "1" {
		t.Errorf("of one event's time: %s", exactly.Raw)
	}
	if n := s.Count(t, `SELECT count(*) FROM audit_log WHERE action = 'recovery.create'`); n != 3 {
		t.Errorf("%d entries in the audit log, want 3", n)
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
		"of a time to come": {map[string]any{
			"subscription_uid": failed.SubscriptionUID, "since": at(-time.Hour),
		}, 400, "since"},
		"backwards": {map[string]any{
			"subscription_uid": failed.SubscriptionUID, "since": at(time.Hour), "until": at(2 * time.Hour),
		}, 400, "until"},
	} {
		got := call(s, s.Home, http.MethodPost, "/v2/recoveries", test.body)
		if got.Status != test.status || !slices.Equal(got.Fields(), []string{test.names}) {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
	group, _ := s.NewGroup("Group", 2)
	foreigner := call(s, group, http.MethodPost, "/v2/recoveries", map[string]any{
		"subscription_uid": failed.SubscriptionUID, "since": at(time.Hour),
	})
	if !slices.Equal(foreigner.Fields(), []string{"subscription_uid"}) {
		t.Errorf("of another partner's, by a group: %s", foreigner.Raw)
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

// A client sees the deliveries of its own merchants, and the subscriptions that cover one
// of them; anything else is answered as if it did not exist.
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

// However many subscriptions a partner has for other merchants, a client sees only the one
// that covers its own merchants and, in it, only its own merchants.
func TestSubscriptionsAreListedAmongMany(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 3)
	on := *s.Harness
	on.Partner = members[0].PartnerUID
	shared := on.Subscribe(t, func(settings *subscription.Settings) {
		settings.Merchants = []uuid.UUID{members[0].MerchantUID, members[1].MerchantUID}
	})
	other := on.Subscribe(t, func(settings *subscription.Settings) {
		settings.Merchants = []uuid.UUID{members[2].MerchantUID}
	})
	s.Exec(t, `
		WITH copied AS (
			INSERT INTO subscriptions
			SELECT (jsonb_populate_record(s, jsonb_build_object(
			           'subscription_uid', gen_random_uuid(),
			           'created_at', s.created_at + n * interval '1 second'))).*
			  FROM subscriptions s
			 CROSS JOIN generate_series(1, 501) AS n
			 WHERE s.subscription_uid = $1
			RETURNING subscription_uid, partner_uid
		)
		INSERT INTO subscription_merchants (subscription_uid, merchant_uid, partner_uid)
		SELECT subscription_uid, $2, partner_uid FROM copied`, other.UID, members[2].MerchantUID)
	for name, test := range map[string]struct {
		as        apptest.Account
		count     int
		merchants []uuid.UUID
	}{
		"one merchant's":     {members[0], 1, []uuid.UUID{members[0].MerchantUID}},
		"the other's":        {members[1], 1, []uuid.UUID{members[1].MerchantUID}},
		"the many":           {members[2], 500, []uuid.UUID{members[2].MerchantUID}},
		"those of the group": {group, 500, []uuid.UUID{members[2].MerchantUID}},
	} {
		answer := call(s, test.as, http.MethodGet, "/v2/subscriptions", nil)
		var listed struct {
			Subscriptions []struct {
				UID       uuid.UUID   `json:"subscription_uid"`
				Merchants []uuid.UUID `json:"merchants"`
			} `json:"subscriptions"`
		}
		if err := json.Unmarshal(answer.Result.Data, &listed); err != nil {
			t.Fatalf("%s: %s", name, answer.Raw)
		}
		if got := listed.Subscriptions; len(got) != test.count ||
			(got[0].UID == shared.UID) != (test.count == 1) ||
			!slices.Equal(got[0].Merchants, test.merchants) {
			t.Errorf("%s: %d subscriptions, the first %+v", name, len(got), got[0])
		}
	}
}
