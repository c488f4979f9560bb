package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"drawbridge/views/paths"
)

// A picker finds one of more merchants than fit into a form, while the user types and
// without script; saving changes only what was shown.
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
		"3 of 10,001: type a part of the name" {
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

// Partners and merchants with equal names are distinguished wherever one of them is chosen.
func TestWhatIsCalledTheSameIsToldApart(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	r.subscribe(r.receiver().URL)
	r.failures(1)
	first, name := r.Partner, r.partnerName(t)
	r.seed(name, "Solar")
	r.subscribe(r.receiver().URL)
	r.failures(1)
	r.NewMerchant(t, r.Partner, "Solar")
	r.NewMerchant(t, first, "Solar")
	asking := b.post(paths.BulkNew, url.Values{"all": {"1"}, "filter": {"state=failed"}}).Location
	for _, test := range []struct {
		path, options string
		count         int
	}{
		{"/console/pick/partner?field=partner&none=All&partner_q=" + url.QueryEscape(name), "option", 2},
		{"/console/pick/merchant?field=merchant&none=All&merchant_q=Solar", "option", 3},
		{paths.Applications, "#filter-merchant option", 3},
		{paths.Where(paths.SubscriptionNew, "partner", r.Partner.String()), "#partner option", 2},
		{
			paths.Where(paths.SubscriptionNew, "partner", r.Partner.String()),
			"label:has([name=merchant])", 2,
		},
		{paths.To(paths.ClientNew, r.Partner.String()), "label:has([name=merchant])", 2},
		{asking, "label:has([name=partner])", 2},
	} {
		labels := map[string]bool{}
		shown := b.get(test.path).wantStatus(t, http.StatusOK)
		for _, option := range shown.find(test.options).EachIter() {
			if strings.Contains(option.Text(), " …") {
				labels[option.Text()] = true
			}
		}
		if len(labels) != test.count {
			t.Errorf("%s: %v", test.path, labels)
		}
	}
}

func (r *harness) partnerName(t *testing.T) (name string) {
	t.Helper()
	r.must(r.DB.Get(&name, `SELECT name FROM partners WHERE partner_uid = $1`, r.Partner))
	return name
}

// values returns what a browser sends of a form, without its buttons.
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

// A client acts for any of a partner's merchants: the form finds those that do not fit into
// it, while the user types and without script, and ticked ones stay.
func TestAClientIsIssuedForAMerchantThatIsSearched(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	r.Exec(t, `
		INSERT INTO merchants (merchant_uid, partner_uid, name, created_at)
		SELECT gen_random_uuid(), $1, 'Branch ' || to_char(n, 'FM0000'), now()
		  FROM generate_series(1, 300) AS n`, r.Partner)
	form := paths.To(paths.ClientNew, r.Partner.String())
	if text := b.get(form).text("#ask-merchant [role=status]"); text !=
		"3 of 301: type a part of the name. What is ticked stays." {
		t.Errorf("the form says %q", text)
	}
	address, _ := b.get(form).find("[data-sought]").Attr("data-sought")
	found := b.fragment().get(address+"&merchant_q=0299&merchant="+r.Merchant.String()).
		wantStatus(t, http.StatusOK)
	if found.find("input").Length() != 2 || found.find("input[checked]").Length() != 1 {
		t.Errorf("while typing it offers %q", found.text("label"))
	}
	other, _ := found.find("input:not([checked])").Attr("value")
	ticked := "&merchant=" + other + "&merchant=" + r.Merchant.String()
	for name, offers := range map[string]answer{
		"while typing":   b.fragment().get(address + "&merchant_q=0150" + ticked),
		"without script": b.get(form + "?kind=group&merchant_q=0150" + ticked),
	} {
		offers.wantStatus(t, http.StatusOK)
		if n := offers.find("input[name=merchant][checked]").Length(); n != 2 {
			t.Errorf("%s, of two that are ticked %d stay", name, n)
		}
	}
	plain := b.get(form + "?kind=group&merchant_q=0299&merchant=" + r.Merchant.String())
	if plain.find("#ask-merchant input[type=checkbox]").Length() != 2 ||
		plain.find("#ask-kind option[selected]").AttrOr("value", "") != "group" {
		t.Errorf("without script it offers %q", plain.text("#ask-merchant"))
	}
	chosen := values(plain.find("form.dialog-form"))
	chosen.Add("merchant", plain.find("label:contains('Branch 0299') input").AttrOr("value", ""))
	b.post(form, chosen)
	if n := r.count(`SELECT count(*) FROM client_merchants`); n != 2 {
		t.Errorf("the client acts for %d merchants, want 2", n)
	}
}

// The value of a filter that only links set is named, too.
func TestLinkedFilterIsNamed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	page := r.signedIn().get(paths.Events + "?merchant=" + r.Merchant.String())
	var name string
	r.must(r.DB.GetContext(t.Context(), &name,
		`SELECT name FROM merchants WHERE merchant_uid = $1`, r.Merchant))
	if text := page.text(".filter-on"); !strings.Contains(text, "Merchant "+name) {
		t.Errorf("the filter in force is called %q, want the name %q in it", text, name)
	}
}
