package lists

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

// Page is a list of the console.
type Page struct {
	// Path is the path of the list, without a query.
	Path string
	// typed has the values for text fields, by parameter.
	typed map[string][]string
	// linked has the parameters that only links to the list set.
	linked map[string][]string
	// deep is the cursor of a page deep in the list, empty for none.
	deep string
}

// ids are identifiers read from the console's pages, for use as filter values.
type ids struct {
	application, event, merchant []string
}

// Pages returns every list of the console that has a filter or grows with use, for the rows that
// package seed made up to now.
func Pages(ctx context.Context, v *Visitor, now time.Time) ([]Page, error) {
	var found ids
	for _, each := range []struct {
		path, pattern string
		into          *[]string
	}{
		{"/console/applications", `/console/applications/([0-9a-f-]{36})[" >]`, &found.application},
		{"/console/events", `/console/events/([0-9a-f-]{36})[" >]`, &found.event},
		{"/console/deliveries", "", &found.merchant},
	} {
		page, err := v.Get(ctx, each.path)
		if err != nil {
			return nil, err
		}
		if each.pattern == "" {
			*each.into = merchantChoices(page)
		}
		for _, match := range regexp.MustCompile(each.pattern).FindAllStringSubmatch(page, 2) {
			if each.pattern != "" {
				*each.into = append(*each.into, match[1])
			}
		}
		if len(*each.into) == 0 {
			return nil, fmt.Errorf("%s names nothing to filter by: seed the database first", each.path)
		}
	}
	return pages(found, now), nil
}

func pages(found ids, now time.Time) []Page {
	ago := func(days int) string { return now.AddDate(0, 0, -days).UTC().Format(time.RFC3339) }
	since, until := []string{ago(150), ago(60)}, []string{ago(1), ago(30)}
	deep := postgres.Cursor{At: now.AddDate(0, 0, -75), UID: uuid.Max}.String()
	yesterday := postgres.Cursor{At: now.AddDate(0, 0, -15), UID: uuid.Max}.String()
	const everywhere = ""
	all := []Page{
		{Path: "/console/deliveries", deep: deep, typed: map[string][]string{
			"event_uid": found.event,
			"code":      {"503", "404", "418", "5xx", "2xx", "202", "204", "299"},
		}},
		{Path: "/console/events", deep: deep, linked: map[string][]string{"merchant": found.merchant}},
		{Path: "/console/applications", deep: deep, typed: map[string][]string{
			"q": {"SEED-17", "borrower17@seed.example", found.application[0], "17"},
		}},
		{Path: "/console/loans", deep: deep},
		{Path: "/console/draws", deep: everywhere},
		{Path: "/console/emails", deep: deep, typed: map[string][]string{
			"to": {"borrower17@seed.example", "nobody@seed.example"},
		}},
		{Path: "/console/requests", deep: yesterday, typed: map[string][]string{
			"request": {"seed-request-17"}, "client": {seedClient(1), seedClient(40)},
			"key": {"seed-key-17"}, "merchant": found.merchant,
		}, linked: map[string][]string{"route": {"/api/v2/application", "/api/v2/loan/:uid"}}},
		{Path: "/console/audit", deep: "1000", typed: map[string][]string{
			"actor":   {"sam@lender.example", "tom@lender.example", "nobody@lender.example"},
			"action":  {"delivery.resend", "settings.", "nothing."},
			"subject": {"retention"},
		}},
		{Path: "/console/attention", deep: deep},
		{Path: "/console/bulk-resends", deep: deep},
		{Path: "/console/subscriptions", deep: deep, typed: map[string][]string{
			"host": {"hooks1", "partner7.example", "nowhere"},
		}},
		{Path: "/console/partners", deep: everywhere, typed: map[string][]string{
			"name": {"sun", "Nothing of the kind"},
		}},
		{Path: "/console/statements", deep: deep, typed: map[string][]string{
			"merchant": found.merchant, "date": {now.AddDate(0, 0, -2).UTC().Format(time.DateOnly)},
		}},
		{Path: "/console/people", typed: map[string][]string{"q": {"a", "nobody"}}},
	}
	for i := range all {
		if all[i].typed == nil {
			all[i].typed = map[string][]string{}
		}
		all[i].typed["application"] = slices.Concat(found.application, []string{uuid.Max.String()})
		all[i].typed["since"], all[i].typed["until"] = since, until
	}
	return all
}

// Pickers are the kinds of things that the filters' pickers offer.
var Pickers = []string{"partner", "merchant", "product", "subscription"}

// PickerPath returns the path of a picker's answers.
func PickerPath(kind string) string { return "/console/pick/" + kind }

// Typed returns the addresses that a picker requests while the names of package seed are typed:
// for everything, many, few, one and none.
func Typed(path string) []string {
	var addresses []string
	for _, text := range []string{"", "e", "so", "solar", "energy 1", "nobody is called so"} {
		addresses = append(addresses, path+"?"+url.Values{"field": {"x"}, "x_q": {text}}.Encode())
	}
	return addresses
}

// seedClient returns the id of a client that the seed made.
func seedClient(n int) string { return fmt.Sprintf("dbc_5eed%028d", n) }
