package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/delivery"
)

// deliveriesListed reads the list to its end and returns the uids and the number of pages.
func deliveriesListed(
	s *apptest.Server, as apptest.Account, query url.Values,
) (uids []uuid.UUID, pages int) {
	s.T.Helper()
	for {
		answer := call(s, as, http.MethodGet, "/v2/deliveries?"+query.Encode(), nil)
		var page struct {
			Deliveries []sentRow `json:"deliveries"`
			NextCursor *string   `json:"next_cursor"`
		}
		if err := json.Unmarshal(answer.Result.Data, &page); answer.Status != 200 || err != nil {
			s.T.Fatalf("answered %s", answer.Raw)
		}
		for _, one := range page.Deliveries {
			uids = append(uids, one.UID)
		}
		if pages++; page.NextCursor == nil {
			return uids, pages
		}
		query.Set("cursor", *page.NextCursor)
	}
}

func TestDeliveriesAreFiltered(t *testing.T) {
	t.Parallel()
	clock, db := apptest.NewClock(), pgtest.New(t)
	db.Now = clock.Now
	s := apptest.StartServer(t, db).Furnish()
	all := s.SubscribeHome().UID
	uid, other := s.Create(), s.Create()
	var made []delivery.Delivery
	for _, application := range []uuid.UUID{uid, other, uid} {
		clock.Move(time.Second)
		made = append(made, s.Fail(application, all))
	}
	clock.Move(time.Second)
	elsewhere := s.Undelivered(uid) // and one to the first subscription, which waits
	newest, _ := deliveriesListed(s, s.Home,
		url.Values{"limit": {"2"}, "subscription_uid": {all.String()}})
	waits := newest[0]
	uids := func(rows ...delivery.Delivery) (uids []uuid.UUID) {
		for _, row := range rows {
			uids = append(uids, row.UID)
		}
		return uids
	}
	at := func(row delivery.Delivery) []string {
		return []string{row.CreatedAt.UTC().Format(time.RFC3339Nano)}
	}
	for name, test := range map[string]struct {
		query url.Values
		want  []uuid.UUID
		pages int
	}{
		"one subscription's, newest first": {
			url.Values{"subscription_uid": {all.String()}},
			append([]uuid.UUID{waits}, uids(made[2], made[1], made[0])...), 1,
		},
		"page by page": {
			url.Values{"subscription_uid": {all.String()}, "limit": {"3"}},
			append([]uuid.UUID{waits}, uids(made[2], made[1], made[0])...), 2,
		},
		"another subscription's": {
			url.Values{"subscription_uid": {elsewhere.SubscriptionUID.String()}}, uids(elsewhere), 1,
		},
		"nobody's":       {url.Values{"subscription_uid": {uuid.NewString()}}, nil, 1},
		"the nil one's":  {url.Values{"subscription_uid": {uuid.Nil.String()}}, nil, 1},
		"of the nil one": {url.Values{"thrive_application_uid": {uuid.Nil.String()}}, nil, 1},
		"a state":        {url.Values{"state": {"pending"}}, []uuid.UUID{waits}, 1},
		"an application": {url.Values{"thrive_application_uid": {other.String()}}, uids(made[1]), 1},
		"a kind":         {url.Values{"event": {"task.created"}, "state": {"delivered"}}, nil, 1},
		"a kind by pages": {
			url.Values{"event": {"task.created"}, "limit": {"1"}, "until": at(made[2])},
			uids(made[1], made[0]), 2,
		},
		"another kind": {url.Values{"event": {"task.updated"}}, nil, 1},
		"since, inclusive": {
			url.Values{"since": at(made[2]), "state": {"failed"}, "subscription_uid": {all.String()}},
			uids(made[2]), 1,
		},
		"until, exclusive":  {url.Values{"until": at(made[1])}, uids(made[0]), 1},
		"a time in between": {url.Values{"since": at(made[1]), "until": at(made[2])}, uids(made[1]), 1},
	} {
		got, pages := deliveriesListed(s, s.Home, test.query)
		if diff := cmp.Diff(test.want, got); diff != "" || pages != test.pages {
			t.Errorf("%s: %d pages, want %d: %s", name, pages, test.pages, diff)
		}
	}
}

// Each wrong parameter is named, all of them at once.
func TestWrongDeliveryParametersAreNamed(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	foreign := "applications." + postgres.Cursor{At: time.Now(), UID: uuid.New()}.String()
	for query, fields := range map[string][]string{
		"limit=0":                         {"limit"},
		"limit=501":                       {"limit"},
		"limit=ten":                       {"limit"},
		"limit=1&limit=2":                 {"limit"},
		"state=made_good":                 {"state"},
		"state=failed&state=failed":       {"state"},
		"state=":                          {"state"},
		"event=all":                       {"event"},
		"event=task.done":                 {"event"},
		"event=":                          {"event"},
		"subscription_uid=x":              {"subscription_uid"},
		"subscription_uid=":               {"subscription_uid"},
		"thrive_application_uid=7":        {"thrive_application_uid"},
		"since=yesterday":                 {"since"},
		"since=2026-11-21T09:30:00+01:00": {"since"}, // + is a space
		"until=2026-11-21":                {"until"},
		"cursor=x":                        {"cursor"},
		"cursor=deliveries.":              {"cursor"},
		"cursor=events.1":                 {"cursor"},
		"cursor=" + foreign:               {"cursor"},
		"cursor=1&event=x&limit=0&since=x&state=x&subscription_uid=x&thrive_application_uid=x&until=x": {
			"cursor", "event", "limit", "since", "state", "subscription_uid", "thrive_application_uid",
			"until",
		},
	} {
		answer := s.Get("/v2/deliveries?" + query)
		got := answer.Fields()
		slices.Sort(got)
		if diff := cmp.Diff(fields, got); answer.Code() != "VALIDATION_ERROR" || diff != "" {
			t.Errorf("%s: answered %s", query, answer.Raw)
		}
	}
}
