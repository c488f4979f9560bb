package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/partner"
)

// TestTimesInEveryZone sends each time parameter in zones that the database does not have,
// which are accepted, and with absurd years, which are refused by field.
func TestTimesInEveryZone(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := s.NewSystem("reader", partner.Scopes()...)
	to := s.SubscribeHome().UID
	for path, test := range map[string]struct {
		as     apptest.Account
		fields []string
	}{
		"/v2/application":          {s.Home, []string{"created_since"}},
		"/v2/deliveries":           {s.Home, []string{"since", "until"}},
		"/v2/recoveries":           {s.Home, []string{"since", "until"}},
		"/lender/v1/applications":  {system, []string{"updated_since"}},
		"/lender/v1/disbursements": {system, []string{"requested_before"}},
	} {
		for _, field := range test.fields {
			ask := func(text string) apptest.Answer {
				call := apptest.Call{
					Method: http.MethodGet, As: &test.as,
					Path: path + "?" + url.Values{field: {text}}.Encode(),
				}
				if path == "/v2/recoveries" {
					body := map[string]any{
						"subscription_uid": to, "since": s.DB.Now().AddDate(0, 0, -20).Format(time.RFC3339),
					}
					maps.Copy(body, map[string]any{field: text})
					call.Method, call.Path, call.JSON = http.MethodPost, path, body
				}
				return s.Do(call)
			}
			for _, hours := range []int{-23, -16, 16, 23} {
				text := s.DB.Now().AddDate(0, 0, -10).
					In(time.FixedZone("", hours*int(time.Hour/time.Second))).Format(time.RFC3339)
				if answer := ask(text); answer.Status >= http.StatusMultipleChoices &&
					answer.Code() != "INVALID_STATE" { // nothing to recover
					t.Errorf("%s, %s %s answered %s", path, field, text, answer.Raw)
				}
			}
			for _, text := range []string{
				"0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00",
			} {
				if answer := ask(text); answer.Code() != "VALIDATION_ERROR" ||
					!slices.Equal(answer.Fields(), []string{field}) {
					t.Errorf("%s, %s %s answered %s", path, field, text, answer.Raw)
				}
			}
		}
	}
}
