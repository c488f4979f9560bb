package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/views/paths"
)

// A picker finds one of more merchants than a form has room for, while one types and
// without script, and saving changes what was shown and leaves the rest.
func TestAPickerSearches(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	r.Exec(t, `
		INSERT INTO merchants (merchant_uid, partner_uid, name, created_at)
		SELECT gen_random_uuid(), $1, 'Branch ' || to_char(n, 'FM00000'), now()
		  FROM generate_series(1, 10000) AS n`, r.Partner)
	filters := b.get(paths.Deliveries)
	if text := filters.text("#filter-merchant option[disabled]"); text !=
		"50 of 10,001: type a part of the name" {
		t.Errorf("the filter says %q", text)
	}
	found := b.fragment().get("/console/pick/merchant?field=merchant&none=All&merchant_q=09999").
		wantStatus(t, http.StatusOK)
	if got := found.text("option:not([disabled])"); got != "All Branch 09999, "+r.partnerName(t) {
		t.Errorf("while typing it offers %q", got)
	}
	plain := b.get(paths.Where(paths.Deliveries, "merchant_q", "09999"))
	if plain.find("#filters[open]").Length() != 1 ||
		plain.find("#filter-merchant option").Length() != 3 {
		t.Errorf("without script it offers %q", plain.text("#filter-merchant"))
	}
	b.get("/console/pick/user?field=x").wantStatus(t, http.StatusNotFound)

	// A subscription for 600 of them is edited in a form that shows 500.
	subscribed, _ := r.subscribe("https://hooks.example.com/many")
	uid := subscribed.UID.String()
	r.Exec(t, `UPDATE subscriptions SET all_merchants = false WHERE subscription_uid = $1`, uid)
	r.Exec(t, `
		INSERT INTO subscription_merchants (subscription_uid, merchant_uid, partner_uid)
		SELECT $1, merchant_uid, partner_uid FROM merchants
		 WHERE partner_uid = $2 ORDER BY name LIMIT 600`, uid, r.Partner)
	edit := paths.To(paths.SubscriptionEdit, uid)
	form := values(b.get(edit).find("form.subscription-form"))
	if shown := len(form["merchant"]); shown != 500 {
		t.Fatalf("the form shows %d chosen merchants", shown)
	}
	form.Set("merchant_q", "09999")
	form.Set("act", "merchants")
	sought := b.fragment().post(edit, form).wantStatus(t, http.StatusOK)
	form = values(sought.find("form.subscription-form"))
	added, _ := sought.find(`label:contains("Branch 09999") input`).Attr("value")
	if len(form["merchant"]) != 500 || added == "" {
		t.Fatalf("the search left %d ticked and found %q", len(form["merchant"]), added)
	}
	form["merchant"] = append(form["merchant"][1:], added)
	form.Set("act", "save")
	b.post(edit, form).wantStatus(t, http.StatusSeeOther)
	if n := r.count(`SELECT count(*) FROM subscription_merchants WHERE subscription_uid = $1`,
		uid); n != 600 {
		t.Errorf("after one was added and one removed %d are covered, want 600", n)
	}
	if n := r.count(`SELECT count(*) FROM subscription_merchants
		WHERE subscription_uid = $1 AND merchant_uid = $2`, uid, added); n != 1 {
		t.Error("what was found was not added")
	}
}

func (r *harness) partnerName(t *testing.T) (name string) {
	t.Helper()
	r.must(r.DB.Get(&name, `SELECT name FROM partners WHERE partner_uid = $1`, r.Partner))
	return name
}

// values are what a browser sends of a form as it is shown, without its buttons.
func values(form *goquery.Selection) url.Values {
	sent := url.Values{}
	for _, field := range form.Find("input, select, textarea").EachIter() {
		kind, _ := field.Attr("type")
		_, checked := field.Attr("checked")
		name := field.AttrOr("name", "")
		switch {
		case name == "" || (kind == "checkbox" || kind == "radio") && !checked:
		case goquery.NodeName(field) == "select":
			sent.Add(name, field.Find("option[selected]").AttrOr("value", ""))
		default:
			sent.Add(name, field.AttrOr("value", field.Text()))
		}
	}
	return sent
}
