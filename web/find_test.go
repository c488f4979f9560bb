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
)

// applications is a page of the list.
type applications struct {
	Applications []struct {
		UID       uuid.UUID `json:"thrive_application_uid"`
		Reference *string   `json:"external_reference"`
	} `json:"applications"`
	NextCursor *string `json:"next_cursor"`
}

// listed reads the list to its end and returns the uids and the number of pages.
func listed(
	s *apptest.Server, account apptest.Account, query url.Values, header map[string]string,
) (uids []uuid.UUID, pages int) {
	s.T.Helper()
	for {
		answer := s.Do(apptest.Call{
			Method: http.MethodGet, Path: "/v2/application?" + query.Encode(),
			As: &account, Header: header,
		})
		var page applications
		if err := json.Unmarshal(answer.Result.Data, &page); answer.Status != 200 || err != nil {
			s.T.Fatalf("answered %s", answer.Raw)
		}
		for _, app := range page.Applications {
			uids = append(uids, app.UID)
		}
		if pages++; page.NextCursor == nil {
			return uids, pages
		}
		query.Set("cursor", *page.NextCursor)
	}
}

func TestApplicationsAreFound(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	group, members := s.NewGroup("Group", 3)
	create := func(account apptest.Account, reference string) uuid.UUID {
		body := apptest.Borrow()
		body["external_reference"] = reference
		answer := s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/application", JSON: body, As: &account,
		})
		return uuid.MustParse(answer.Text("thrive_application_uid"))
	}
	foreign := create(s.Home, "CRM-1")
	first := create(members[0], "CRM-1")
	second := create(members[1], "CRM-1 b")
	var created time.Time
	if err := s.DB.GetContext(t.Context(), &created,
		`SELECT created_at FROM applications WHERE application_uid = $1`, second); err != nil {
		t.Fatal(err)
	}
	third := create(members[0], "CRM-2")
	s.InTx(func(tx *postgres.Tx) error {
		_, err := s.Applications.RunDecision(t.Context(), tx, apptest.Operator(), third)
		return err
	})
	of := func(account apptest.Account) map[string]string {
		return map[string]string{"x-service-merchant-uid": account.MerchantUID.String()}
	}
	for _, test := range []struct {
		name   string
		as     apptest.Account
		query  url.Values
		header map[string]string
		want   []uuid.UUID
		pages  int
	}{
		{"all of the group", group, url.Values{}, nil, []uuid.UUID{third, second, first}, 1},
		{
			"page by page", group,
			url.Values{"limit": {"1"}},
			nil,
			[]uuid.UUID{third, second, first},
			3,
		},
		{"of one merchant", group, url.Values{}, of(members[0]), []uuid.UUID{third, first}, 1},
		{"a plain client", members[1], url.Values{}, nil, []uuid.UUID{second}, 1},
		{"of nobody", members[2], url.Values{}, nil, nil, 1},
		{
			"a reference", group,
			url.Values{"external_reference": {"CRM-1"}},
			nil,
			[]uuid.UUID{first},
			1,
		},
		{"half a reference", group, url.Values{"external_reference": {"CRM"}}, nil, nil, 1},
		{
			"a stranger's reference", s.Home,
			url.Values{"external_reference": {"CRM-1"}},
			nil,
			[]uuid.UUID{foreign},
			1,
		},
		{
			"a status", group,
			url.Values{"status": {"Hard Pull Authorization"}},
			nil,
			[]uuid.UUID{third},
			1,
		},
		{
			"since, inclusive", group,
			url.Values{"created_since": {created.UTC().Format(time.RFC3339Nano)}},
			nil,
			[]uuid.UUID{third, second},
			1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, pages := listed(s, test.as, test.query, test.header)
			if diff := cmp.Diff(test.want, got); diff != "" || pages != test.pages {
				t.Errorf("%d pages, want %d: %s", pages, test.pages, diff)
			}
		})
	}
}

// Each wrong parameter is named, all of them at once.
func TestWrongListParametersAreNamed(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	foreign := "deliveries." + postgres.Cursor{At: time.Now(), UID: uuid.New()}.String()
	for query, fields := range map[string][]string{
		"limit=0":                         {"limit"},
		"limit=501":                       {"limit"},
		"limit=ten":                       {"limit"},
		"limit=":                          {"limit"},
		"limit=1&limit=2":                 {"limit"},
		"status=approved":                 {"status"},
		"status=Approved&status=Declined": {"status"},
		"created_since=yesterday":         {"created_since"},
		"created_since=2026-11-21T09:30:00+01:00": {"created_since"}, // + is a space
		"external_reference=":                     {"external_reference"},
		"external_reference=a%00b":                {"external_reference"},
		"cursor=x":                                {"cursor"},
		"cursor=applications.":                    {"cursor"},
		"cursor=applications.x":                   {"cursor"},
		"cursor=" + foreign:                       {"cursor"},
		"status=x&limit=0&cursor=1":               {"limit", "cursor", "status"},
	} {
		answer := s.Do(apptest.Call{Method: http.MethodGet, Path: "/v2/application?" + query})
		got := answer.Fields()
		slices.Sort(got)
		slices.Sort(fields)
		if diff := cmp.Diff(fields, got); answer.Code() != "VALIDATION_ERROR" || diff != "" {
			t.Errorf("%s: answered %s", query, answer.Raw)
		}
	}
	const want = `"external_reference" must not be empty; leave it out instead`
	for _, query := range []string{"external_reference=", "external_reference=%20"} {
		answer := s.Get("/v2/application?" + query)
		if answer.Message() != want {
			t.Errorf("%s: answered %s, want that it %s", query, answer.Raw, want)
		}
	}
	for _, query := range []string{"limit=500", "other=1&other=2"} {
		if answer := s.Get("/v2/application?" + query); answer.Status != http.StatusOK {
			t.Errorf("%s: answered %s", query, answer.Raw)
		}
	}
	alias := s.Do(apptest.Call{Method: http.MethodGet, Path: "/application"})
	if alias.Code() != "METHOD_NOT_ALLOWED" {
		t.Errorf("the list answers without a version: %s", alias.Raw)
	}
}
