package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"drawbridge/internal/lending"
	"drawbridge/views/paths"
)

const nothingChanged = "Nothing was changed."

// A form for the present state says that nothing changed, and leaves no audit entry.
func TestWhatIsSoAlreadyIsNoChange(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	product := r.NewProduct(t, "SOLAR", "50,50")
	app := r.Loan(t, product)
	offer, _ := lending.SelectedOffer(r.Get(t, app.UID).Offers, product.UID)
	r.exec(`UPDATE sign_in_settings
		SET second_factor_roles = '{operator,support}'`)
	recorded := r.recorded(app.UID)
	for _, test := range []struct {
		name, path string
		fields     map[string]string
	}{
		{"the amount", changePath(app.UID, "amount"), nil},
		{
			"the terms", changePath(app.UID, "terms"),
			map[string]string{"term": offer.Term, "interest_rate": offer.InterestRate.String()},
		},
		{
			"the limit of a client", paths.To(paths.Client, r.issue(false).ClientID) + "/rate", nil,
		},
		{"when a subscription fails", paths.SettingsHealth, nil},
	} {
		entries := r.count(`SELECT count(*) FROM audit_log`)
		answer, _ := b.fillIn(test.path, test.fields)
		answer.wantStatus(t, http.StatusSeeOther)
		if got := b.get(answer.Location).text("main > .notice"); got != nothingChanged {
			t.Errorf("%s as before says %q", test.name, got)
		}
		if more := r.count(`SELECT count(*) FROM audit_log`) - entries; more != 0 {
			t.Errorf("%s as before leaves %d entries in the audit log", test.name, more)
		}
	}
	answer := b.post(paths.SettingsSignIn, url.Values{"roles": {"support", "operator"}})
	answer.wantStatus(t, http.StatusSeeOther)
	if got := b.get(answer.Location).text("main > .notice"); got != nothingChanged ||
		r.audits("settings.sign_in") != 0 {
		t.Errorf("the same roles say %q, with %d entries", got, r.audits("settings.sign_in"))
	}
	if got := r.recorded(app.UID); !slices.Equal(got, recorded) {
		t.Errorf("recorded %v, want %v", got, recorded)
	}
}

// Accepting the same product again is no change, unless it closes another application.
func TestAcceptingAgain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	product := r.NewProduct(t, "SOLAR", "50,50")
	app, rival := r.Application(t), r.Application(t)
	for _, test := range []struct{ linked, want string }{
		{"", "Accepted."},
		{"", nothingChanged},
		{rival.UID.String(), "Accepted."},
		{rival.UID.String(), nothingChanged},
	} {
		entries := r.audits("application.accept_offer")
		answer, _ := b.fillIn(changePath(app.UID, "accept"), map[string]string{
			"product": product.UID, "linked": test.linked,
		})
		answer.wantStatus(t, http.StatusSeeOther)
		if got := b.get(answer.Location).text("main > .notice"); got != test.want {
			t.Errorf("accepting with %q says %q, want %q", test.linked, got, test.want)
		}
		more := r.audits("application.accept_offer") - entries
		if changed := test.want != nothingChanged; changed != (more == 1) {
			t.Errorf("accepting with %q left %d entries", test.linked, more)
		}
	}
}
