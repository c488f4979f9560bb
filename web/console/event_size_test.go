package console_test

import (
	"net/http"
	"strings"
	"testing"

	"drawbridge/views/paths"
)

// TestEventOfAThousandSubscriptions: the pages of an event that a thousand subscriptions got, and
// of one of its deliveries, stay small; the pages of the ledger name each subscription once.
func TestEventOfAThousandSubscriptions(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	const all, most = 1000, 100_000
	r.subscribe("http://127.0.0.1:9999/hooks")
	r.Exec(t, `
		INSERT INTO subscriptions
		SELECT (jsonb_populate_record(s, jsonb_build_object(
		           'subscription_uid', gen_random_uuid(), 'name', 'Endpoint ' || n,
		           'created_at', s.created_at + n % 7 * interval '1 ms'))).*
		  FROM subscriptions s
		 CROSS JOIN generate_series(2, $1) AS n`, all)
	sent := r.publish("Approved")
	if found := r.Count(t, `SELECT count(*) FROM deliveries`); found != all {
		t.Fatalf("%d deliveries of the event, want %d", found, all)
	}
	b := r.signedIn()
	next, named, pages := paths.To(paths.Event, sent[0].EventUID.String()), map[string]bool{}, 0
	for ; next != "" && pages < all; pages++ {
		page := b.get(next).wantStatus(t, http.StatusOK)
		if size := len(page.Raw); size > most {
			t.Errorf("page %d has %d bytes", pages+1, size)
		}
		for _, line := range page.find(".ledger a[href*='/subscriptions/']").EachIter() {
			subscription := line.AttrOr("href", "")
			if named[subscription] {
				t.Errorf("%s stands there twice", subscription)
			}
			named[subscription] = true
		}
		if pages == 0 && !strings.Contains(page.text("main"), "All of them") {
			t.Error("there is no way to all of the deliveries")
		}
		next = page.find(".ledger-foot a[rel=next]").AttrOr("href", "")
	}
	if len(named) != all {
		t.Errorf("on %d pages the ledger names %d subscriptions, want %d", pages, len(named), all)
	}
	one := b.get(paths.To(paths.Delivery, sent[0].UID.String())).wantStatus(t, http.StatusOK)
	if size := len(one.Raw); size > most || !strings.Contains(one.text("#ledger"), "All of them") {
		t.Errorf("the page of a delivery has %d bytes, and of the ledger %q", size, one.text("#ledger"))
	}
}
