package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/catalog"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/subscription"
)

// TestScenarios plays each scenario and expects the state and events that the single
// operations would have led to.
func TestScenarios(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	// For such a small amount the first stage is the whole loan.
	s.Products["rounded"] = uuid.MustParse(s.AddProduct(t, catalog.NewProduct{
		Code: "P99", Schedule: "99.99,0.01", Min: "1.00", Max: "40.00",
	}).UID)
	approved := []string{
		"application.status.update Hard Pull Authorization", "application.status.update Approved",
	}
	drawn := []string{
		"disbursement.funding.status-changed FUNDING_REQUESTED",
		"disbursement.funding.status-changed FUNDING_PROCESSING",
		"disbursement.funding.settled FUNDING_SETTLED",
	}
	for _, test := range []struct {
		name, product string
		loan          bool
		events        [][]string
	}{
		{"approved", "", true, [][]string{approved}},
		{"declined", "", false, [][]string{{"application.status.update Declined"}}},
		{"three_stages", "", true, [][]string{approved, drawn}},
		{"paid_out", "P5050", true, [][]string{approved, drawn, drawn}},
		{"returned", "rounded", true, [][]string{approved, drawn, {
			"disbursement.funding.returned FUNDING_RETURNED",
		}}},
		{"paid_out", "rounded", true, [][]string{approved, drawn}},
		{"returned", "P404020", true, [][]string{approved, drawn, {
			"disbursement.funding.returned FUNDING_RETURNED",
		}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := map[string]any{"name": test.name}
			if test.product != "" {
				body["product_uid"] = s.Products[test.product]
			}
			answer := s.Do(apptest.Call{
				Method: http.MethodPost, Path: "/v2/sandbox/scenario", JSON: body,
			})
			var played struct {
				UID   uuid.UUID  `json:"thrive_application_uid"`
				Loan  *uuid.UUID `json:"loan_application_uid"`
				Steps []string
			}
			err := json.Unmarshal(answer.Result.Data, &played)
			if err != nil || answer.Status != http.StatusCreated || len(played.Steps) == 0 {
				t.Fatalf("answered %s", answer.Raw)
			}
			var want []string
			for _, part := range test.events {
				want = append(want, part...)
			}
			if diff := cmp.Diff(want, s.Events(played.UID)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			loan := s.Get("/v2/loan/" + played.UID.String())
			if (loan.Status == http.StatusOK) != test.loan || (played.Loan != nil) != test.loan {
				t.Errorf("the scenario names the loan %v, which answers %s", played.Loan, loan.Raw)
			}
		})
	}
}

// TestScenariosThatDoNotFit requests scenarios that no product allows.
func TestScenariosThatDoNotFit(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	play := func(body map[string]any) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/sandbox/scenario", JSON: body,
		})
	}
	for _, product := range []any{s.Products["P5050"], uuid.New()} {
		answer := play(map[string]any{"name": "three_stages", "product_uid": product})
		if answer.Status != http.StatusBadRequest || strings.Join(answer.Fields(), "") != "product_uid" {
			t.Errorf("%v answered %s", product, answer.Raw)
		}
	}
	unknown := play(map[string]any{"name": "approved", "product_uid": uuid.New()})
	if unknown.Message() != `"product_uid" must be an active product` {
		t.Errorf("an unknown product answered %s", unknown.Raw)
	}
	if answer := play(map[string]any{"name": "rich"}); strings.Join(answer.Fields(), "") != "name" {
		t.Errorf("another name answered %s", answer.Raw)
	}
	s.Exec(t, `UPDATE products SET active = false`)
	if answer := play(map[string]any{"name": "approved"}); answer.Status != http.StatusConflict ||
		answer.Message() != "there is no active product; ask the lender to set one up" {
		t.Errorf("without products it answered %s", answer.Raw)
	}
}

// TestFaultsAreThePartnersOwn orders, reads and withdraws faults, and can do none of it for
// another partner's subscription.
func TestFaultsAreThePartnersOwn(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	other := s.NewAccount("Other")
	own := s.SubscribeHome()
	order := func(as apptest.Account, body map[string]any) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/sandbox/faults", JSON: body, As: &as,
		})
	}
	for _, test := range []struct {
		as    apptest.Account
		body  map[string]any
		field string
	}{
		{other, map[string]any{"subscription_uid": own.UID, "fault": "duplicate"}, "subscription_uid"},
		{
			s.Home,
			map[string]any{"subscription_uid": uuid.New(), "fault": "delay", "delay_seconds": 1},
			"subscription_uid",
		},
		{s.Home, map[string]any{"subscription_uid": own.UID, "fault": "explode"}, "fault"},
		{s.Home, map[string]any{"subscription_uid": own.UID, "fault": "delay"}, "delay_seconds"},
		{
			s.Home,
			map[string]any{"subscription_uid": own.UID, "fault": "delay", "delay_seconds": 3601},
			"delay_seconds",
		},
		{
			s.Home,
			map[string]any{"subscription_uid": own.UID, "fault": "reorder", "delay_seconds": 5},
			"delay_seconds",
		},
		{s.Home, map[string]any{"subscription_uid": own.UID, "fault": "reorder", "count": 101}, "count"},
		{s.Home, map[string]any{"subscription_uid": own.UID, "fault": "reorder", "count": "2"}, "count"},
		{
			s.Home,
			map[string]any{
				"subscription_uid": own.UID, "fault": "explode", "count": 1.5, "delay_seconds": "x",
			},
			"fault count delay_seconds",
		},
	} {
		answer := order(test.as, test.body)
		if answer.Status != http.StatusBadRequest ||
			strings.Join(answer.Fields(), " ") != test.field {
			t.Errorf("%v answered %s", test.body, answer.Raw)
		}
	}
	placed := order(s.Home, map[string]any{
		"subscription_uid": own.UID, "fault": "delay", "count": 3, "delay_seconds": 60,
	})
	uid := placed.Text("fault_uid")
	if placed.Status != http.StatusCreated || placed.Data()["remaining"] != 3.0 {
		t.Fatalf("answered %s", placed.Raw)
	}
	for account, want := range map[apptest.Account]int{s.Home: 1, other: 0} {
		answer := s.Do(apptest.Call{Method: http.MethodGet, Path: "/v2/sandbox/faults", As: &account})
		if got := len(answer.Data()["faults"].([]any)); got != want {
			t.Errorf("answered %s, want %d", answer.Raw, want)
		}
	}
	withdraw := func(as apptest.Account) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodDelete, Path: "/v2/sandbox/faults/" + uid, As: &as,
			Header: map[string]string{"Idempotency-Key": "back"},
		})
	}
	if answer := withdraw(other); answer.Status != http.StatusNotFound {
		t.Errorf("another partner's answered %s", answer.Raw)
	}
	for range 2 { // the second one is a replay
		if answer := withdraw(s.Home); answer.Status != http.StatusOK || answer.Text("fault_uid") != uid {
			t.Errorf("taking it back answered %s", answer.Raw)
		}
	}
}

// faultGroup is a partner with three merchants.
type faultGroup struct {
	// whole may act for all of them, pair for the first two.
	whole, pair apptest.Account
	members     []apptest.Account
	// second and third are the subscriptions of those merchants.
	second, third uuid.UUID
}

func newFaultGroup(s *apptest.Server) faultGroup {
	s.T.Helper()
	var g faultGroup
	g.whole, g.members = s.NewGroup("Group", 3)
	s.InTx(func(tx *postgres.Tx) error {
		issued, err := s.Partners.CreateClient(s.T.Context(), tx, partner.NewClient{
			PartnerUID: g.whole.PartnerUID, Group: true,
			MerchantUIDs: []uuid.UUID{g.members[0].MerchantUID, g.members[1].MerchantUID},
		})
		g.pair.ClientID, g.pair.Secret = issued.ClientID, issued.Secret
		return err
	})
	on := *s.Harness
	on.Partner = g.whole.PartnerUID
	covering := func(member apptest.Account) uuid.UUID {
		return on.Subscribe(s.T, func(settings *subscription.Settings) {
			settings.Merchants = []uuid.UUID{member.MerchantUID}
		}).UID
	}
	g.second, g.third = covering(g.members[1]), covering(g.members[2])
	return g
}

// duplicate orders a fault.
func duplicate(s *apptest.Server, as apptest.Account, to uuid.UUID) apptest.Answer {
	s.T.Helper()
	return call(s, as, http.MethodPost, "/v2/sandbox/faults",
		map[string]any{"subscription_uid": to, "fault": "duplicate"})
}

// TestFaultsOfAGroup lets group clients that name no merchant order, read and withdraw
// faults of subscriptions that cover one of their merchants, and of no others.
func TestFaultsOfAGroup(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	g := newFaultGroup(s)
	second, third := duplicate(s, g.pair, g.second), duplicate(s, g.whole, g.third)
	if second.Status != http.StatusCreated || third.Status != http.StatusCreated {
		t.Fatalf("ordering answered %s and %s", second.Raw, third.Raw)
	}
	uid, other := second.Text("fault_uid"), third.Text("fault_uid")
	pending := func(as apptest.Account) (uids []string) {
		answer := call(s, as, http.MethodGet, "/v2/sandbox/faults", nil)
		for _, one := range answer.Data()["faults"].([]any) {
			uids = append(uids, one.(map[string]any)["fault_uid"].(string))
		}
		return uids
	}
	for name, test := range map[string]struct {
		as   apptest.Account
		want []string
	}{
		"the whole group":  {g.whole, []string{uid, other}},
		"two merchants":    {g.pair, []string{uid}},
		"the merchant":     {g.members[1], []string{uid}},
		"another merchant": {g.members[0], nil},
	} {
		if diff := cmp.Diff(test.want, pending(test.as)); diff != "" {
			t.Errorf("%s reads (-want +got):\n%s", name, diff)
		}
	}
	for i, test := range []struct {
		as   apptest.Account
		uid  string
		want int
	}{
		{g.pair, other, http.StatusNotFound},
		{g.members[0], uid, http.StatusNotFound},
		{g.pair, uid, http.StatusOK},
		{g.whole, uid, http.StatusNotFound}, // it was deleted
		{g.whole, other, http.StatusOK},
	} {
		s.DB.SetMaxOpenConns(1) // calls that wait for one and hold one would wait for each other
		answer := call(s, test.as, http.MethodDelete, "/v2/sandbox/faults/"+test.uid, nil)
		if answer.Status != test.want {
			t.Errorf("withdrawal %d answered %s, want %d", i, answer.Raw, test.want)
		}
	}
	if left := pending(g.whole); len(left) > 0 {
		t.Errorf("taken back, %v still wait", left)
	}
}

// TestFaultsNeedACoveringSubscription uses a subscription that covers none of the merchants
// of the request.
func TestFaultsNeedACoveringSubscription(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	g := newFaultGroup(s)
	for name, refused := range map[string]apptest.Answer{
		"a merchant, another's":       duplicate(s, g.members[0], g.second),
		"two merchants, the third's":  duplicate(s, g.pair, g.third),
		"a group, another partner's":  duplicate(s, g.whole, s.SubscribeHome().UID),
		"a group, nobody's":           duplicate(s, g.whole, uuid.New()),
		"another partner, the second": duplicate(s, s.Home, g.second),
		"a group for its first merchant, the second's": s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/sandbox/faults", As: &g.whole,
			JSON: map[string]any{"subscription_uid": g.second, "fault": "duplicate"},
			Header: map[string]string{
				"x-service-merchant-uid": g.members[0].MerchantUID.String(),
			},
		}),
	} {
		if refused.Status != http.StatusBadRequest || refused.Code() != "VALIDATION_ERROR" ||
			strings.Join(refused.Fields(), " ") != "subscription_uid" {
			t.Errorf("%s: answered %s", name, refused.Raw)
		}
	}
}
