package console_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/secret"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/views/paths"
	"drawbridge/web/console/action"
)

// The effects that a form states are true when it acts: the state that they depend on has
// not changed meanwhile. A form without that state is taken to have seen the present one.
func TestAChangeHasTheEffectsThatItNamed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	roof := r.NewProduct(t, "ROOF", "100")
	decided, approved := lending.StatusHardPullAuthorization, lending.StatusApproved
	accept := func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
		_, err := r.Applications.AcceptOffer(ctx, tx, apptest.Operator(), application.Acceptance{
			ApplicationUID: uid, ProductUID: uuid.MustParse(roof.UID),
		})
		return err
	}
	reduce := func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
		_, err := r.Applications.ChangeAmount(ctx, tx, apptest.Operator(), uid,
			apptest.Money("3000"))
		return err
	}
	for _, test := range []struct {
		in        lending.ApplicationStatus
		form      []string
		fields    map[string]string
		meanwhile func(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error
		was, is   string
	}{
		{approved, []string{"accept"}, nil, reduce, "ROOF 10000.00", "ROOF 3000.00"},
		{
			approved,
			[]string{"amount"},
			map[string]string{"approved_amount": "4000"},
			accept,
			"nothing selected", "ROOF selected",
		},
		{
			approved,
			[]string{"terms"},
			map[string]string{"term": "60"},
			accept,
			"nothing selected", "ROOF selected",
		},
		{
			decided,
			[]string{"status", "to", "Pend Clearance"},
			nil, accept,
			"communications paused", "communications enabled",
		},
		{
			lending.StatusHardPull,
			[]string{"status", "to", "Approved"},
			nil, accept,
			"nothing selected", "a loan of 10000.00 opens",
		},
		{
			lending.StatusPendingReview,
			[]string{"decision"},
			nil, accept,
			"communications paused", "communications enabled",
		},
		{
			decided,
			[]string{"task"},
			map[string]string{"title": "Call"},
			accept,
			"communications paused", "communications enabled",
		},
	} {
		uid := r.Application(t, apptest.In(test.in)).UID
		to, values := b.get(changePath(uid, test.form[0], test.form[1:]...)).formValues(t)
		for name, value := range test.fields {
			values.Set(name, value)
		}
		r.do(func(ctx context.Context, tx *postgres.Tx) error { return test.meanwhile(ctx, tx, uid) })
		before := len(r.recorded(uid))
		said := b.post(to, values).wantStatus(t, http.StatusConflict).text("main .notice-bad")
		_, difference, _ := strings.Cut(said, "it was ")
		was, is, _ := strings.Cut(difference, " and is ")
		if !strings.Contains(was, test.was) || !strings.Contains(is, test.is) {
			t.Errorf("%v says %q, want that it was %q and is %q", test.form, said, test.was, test.is)
		}
		if got := r.recorded(uid)[before:]; len(got) != 0 {
			t.Errorf("%v recorded %v", test.form, got)
		}
		values.Del(action.SeenField)
		b.post(to, values).wantStatus(t, http.StatusSeeOther)
	}
}

// Merchants that another operator added meanwhile stay in force after a save that changed
// something else, and can be removed by a user who sees them.
func TestAStaleEditOfASubscriptionsMerchants(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		began, theirs []string
		// yours are the ticked merchants, nil for the initial ones; the conflict shows them.
		yours []string
		// unticks is removed after the conflict was shown.
		unticks, want string
	}{
		{
			name: "exchanged", began: []string{"Solar"}, theirs: []string{"Windows"},
			want: "Windows",
		},
		{
			name: "added", began: []string{"Solar"}, theirs: []string{"Solar", "Windows"},
			want: "Solar Windows",
		},
		{
			name: "added and taken away again", began: []string{"Solar"},
			theirs: []string{"Solar", "Windows"}, want: "Solar", unticks: "Windows",
		},
		{
			name: "taken away", began: []string{"Solar", "Windows"}, theirs: []string{"Solar"},
			want: "Solar",
		},
		{
			name: "changed by both", began: []string{"Solar"}, theirs: []string{"Windows"},
			yours: []string{"Roofs", "Solar"}, want: "Roofs Solar",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			b := r.asOperator()
			named := make(map[string]string)
			for _, name := range []string{"Roofs", "Solar", "Windows"} {
				named[name] = r.NewMerchant(t, r.Partner, name).String()
			}
			uids := func(names []string) (texts []string) {
				for _, name := range names {
					texts = append(texts, named[name])
				}
				return texts
			}
			made, _ := r.subscribe("https://hooks.example/")
			r.do(func(ctx context.Context, tx *postgres.Tx) error {
				patch := subscription.Patch{}
				for _, text := range uids(test.began) {
					patch.Merchants = append(patch.Merchants, uuid.MustParse(text))
				}
				_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, made.UID, patch, "test")
				return err
			})
			path := paths.To(paths.SubscriptionEdit, made.UID.String())
			mine, theirs := edit(b.get(path)), edit(b.get(path))
			theirs["merchant"] = uids(test.theirs)
			b.post(path, theirs).wantStatus(t, http.StatusSeeOther)
			mine.Set("name", "Renamed")
			if test.yours != nil {
				mine["merchant"] = uids(test.yours)
			}
			conflict := b.post(path, mine).wantStatus(t, http.StatusConflict)
			yours := strings.Join(test.yours, ", ")
			if yours == "" {
				yours = "not changed by you: theirs stays"
			}
			if got := conflict.text("#conflict tbody tr:first-child td:last-child"); got != yours {
				t.Errorf("what was typed is shown as %q, want %q", got, yours)
			}
			if strings.Contains(conflict.text("#form-region"), "more are chosen and stay so") {
				t.Error("a merchant is chosen that the form does not show")
			}
			again := edit(conflict)
			again["merchant"] = slices.DeleteFunc(again["merchant"], func(uid string) bool {
				return uid == named[test.unticks]
			})
			b.post(path, again).wantStatus(t, http.StatusSeeOther)
			saved := r.onlySubscription()
			if got := r.merchantNames(saved.Merchants); got != test.want || saved.Name != "Renamed" {
				t.Errorf("%q covers %q, want %q", saved.Name, got, test.want)
			}
		})
	}
}

// merchantNames returns the names of merchants in order.
func (r *harness) merchantNames(uids []uuid.UUID) string {
	r.Helper()
	names := make([]string, 0, len(uids))
	for _, uid := range uids {
		merchant, err := r.Partners.Merchant(r.Context(), uid)
		r.must(err)
		names = append(names, merchant.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// A user who marks a draw after somebody else did keeps the input, and sees whose payment
// counts; a user who enters the same is redirected.
func TestADrawIsPaidByTwo(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	a, b := r.asOperator(), r.admin()
	app := r.Loan(t, r.NewProduct(t, "SOLAR", "50,50"))
	draw := strconv.FormatInt(r.Draw(t, app.UID, loan.DrawInput{}).ID, 10)
	path := changePath(app.UID, "funding", "draw", draw, "to", "FUNDING_PROCESSING")
	to, second := b.get(path).wantStatus(t, http.StatusOK).formValues(t)
	_, third := b.get(path).wantStatus(t, http.StatusOK).formValues(t)
	paid, _ := a.fillIn(path, map[string]string{"reference": "WIRE-1", "method": "wire"})
	paid.wantStatus(t, http.StatusSeeOther)
	second.Set("reference", "WIRE-2")
	for range 2 { // also after it has been read
		refused := b.post(to, second).wantStatus(t, http.StatusConflict)
		if said := refused.text("main"); !containsAll(said, []string{
			"Draw #" + draw + " is processing already", operatorEmail, "WIRE-1",
		}) {
			t.Errorf("the refusal says %q", said)
		}
		if kept := refused.find("[name=reference]").AttrOr("value", ""); kept != "WIRE-2" {
			t.Errorf("what was typed became %q", kept)
		}
		_, second = refused.formValues(t)
	}
	b.post(to, third).wantStatus(t, http.StatusConflict) // it names no payment
	third.Set("reference", "WIRE-1")
	third.Set("method", "wire")
	if led := b.post(to, third).wantStatus(t, http.StatusSeeOther); led.Location !=
		paths.To(paths.Application, app.UID.String()) {
		t.Errorf("saying the same leads to %q", led.Location)
	}
	if got := r.count(`SELECT count(*) FROM disbursement_changes`); got != 1 {
		t.Errorf("%d changes were recorded", got)
	}
}

// A second rotation would end the secret for which the first promised an overlap: a form that
// was opened before the first is refused once, and says what another rotation would do.
func TestTwoRotateTheSecretOfAClient(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	a, b := r.asOperator(), r.admin()
	issued := r.issue(false)
	path := paths.To(paths.ClientRotate, issued.ClientID)
	to, stale := a.get(path).wantStatus(t, http.StatusOK).formValues(t)
	shown, _ := b.fillIn(path, nil)
	fresh := shown.wantStatus(t, http.StatusOK).text("#secret")
	refused := a.post(to, stale).wantStatus(t, http.StatusConflict)
	if !strings.Contains(refused.text("main .notice-bad"), "while you were looking") ||
		!strings.Contains(refused.text(".risk"), "stops at once") {
		t.Errorf("the refusal says %q", refused.text("main"))
	}
	if !r.login(issued.ClientID, issued.Secret) || !r.login(issued.ClientID, fresh) {
		t.Error("a secret stopped for which an overlap was promised")
	}
	_, again := refused.formValues(t)
	a.post(to, again).wantStatus(t, http.StatusOK)
	if r.login(issued.ClientID, issued.Secret) || !r.login(issued.ClientID, fresh) {
		t.Error("whoever read the warning cannot rotate")
	}
}

func TestTwoRotateTheSecretOfASubscription(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	a, b := r.asOperator(), r.admin()
	made, original := r.subscribe("https://hooks.example/")
	path := paths.To(paths.SubscriptionRotate, made.UID.String())
	form := func(page answer) url.Values {
		values := url.Values{"secret_mode": {"generate"}, "overlap": {"24h0m0s"}}
		page.find("form.dialog-body input[type=hidden]").Each(
			func(_ int, field *goquery.Selection) {
				values.Set(field.AttrOr("name", ""), field.AttrOr("value", ""))
			})
		return values
	}
	first := a.get(path).wantStatus(t, http.StatusOK)
	if first.find(".risk").Length() != 0 {
		t.Errorf("without a rotation the form warns %q", first.text(".risk"))
	}
	stale := form(first)
	b.post(path, form(b.get(path))).wantStatus(t, http.StatusSeeOther)
	matches := func(want secret.Match) {
		t.Helper()
		r.do(func(ctx context.Context, tx *postgres.Tx) error {
			match, err := r.Webhooks.Subscriptions.CompareSecret(ctx, tx, made.UID, original)
			if match.Match != want {
				t.Errorf("the first secret is %q, want %q", match.Match, want)
			}
			return err
		})
	}
	refused := a.post(path, stale).wantStatus(t, http.StatusConflict)
	if !strings.Contains(refused.text("main .notice-bad"), adminEmail[1:]) ||
		!strings.Contains(refused.text(".risk"), "stops signing at once") {
		t.Errorf("the refusal says %q", refused.text("main"))
	}
	matches(secret.MatchPrevious)
	// A corrected form is still one that was filled in before.
	stale.Set("secret_mode", "paste")
	stale = form(a.post(path, stale).wantStatus(t, http.StatusBadRequest))
	a.post(path, stale).wantStatus(t, http.StatusConflict)
	matches(secret.MatchPrevious)
	a.post(path, form(refused)).wantStatus(t, http.StatusSeeOther)
	matches(secret.MatchNone)
}

// TestTheSecretInForceIsNotRotated: pasting the current secret is reported as no change.
func TestTheSecretInForceIsNotRotated(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	made, original := r.subscribe("https://hooks.example/")
	path := paths.To(paths.SubscriptionRotate, made.UID.String())
	values := url.Values{
		"secret_mode": {"paste"}, "secret": {original.Reveal()}, "overlap": {"24h0m0s"},
	}
	b.get(path).find("form.dialog-body input[type=hidden]").Each(
		func(_ int, field *goquery.Selection) {
			values.Set(field.AttrOr("name", ""), field.AttrOr("value", ""))
		})
	page := b.post(path, values).wantStatus(t, http.StatusBadRequest)
	if text := page.text("main"); !strings.Contains(text, "The secret is already in force") {
		t.Errorf("the page says %q", text)
	}
	if after := r.onlySubscription(); after.Version != made.Version || after.PreviousUntil != nil {
		t.Errorf("it is %+v", after)
	}
}

// A button does to a subscription exactly what its form announces: not the same at another
// address, nor to a version that somebody put in force meanwhile. A user who sees the
// present state and decides again is not refused again.
func TestASubscriptionChangesBeforeADecision(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern, query string
		typed          url.Values
		// paused is the state before, says what the refusal and its form say, and state the state
		// after the second decision.
		paused bool
		says   []string
		state  subscription.State
	}{
		{
			paths.SubscriptionResume, "", nil, true,
			[]string{"Test changed the url", "goes to Sandbox (hooks.example/new) at once"},
			subscription.StateActive,
		},
		{
			paths.SubscriptionPause, "", nil, false,
			[]string{"Test changed the url"},
			subscription.StatePaused,
		},
		{
			paths.SubscriptionDelete, "",
			url.Values{"confirm": {"Sandbox"}},
			false,
			[]string{"Test changed the url", "Nothing more is sent to Sandbox (hooks.example/new)"},
			subscription.StateDeleted,
		},
		{
			paths.SubscriptionRestore, "version=1", nil, false,
			[]string{"Test changed the url", "https://hooks.example/new"},
			subscription.StateActive,
		},
	} {
		t.Run(test.pattern, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t)
			b := r.asOperator()
			made, _ := r.subscribe("https://hooks.example/old")
			r.publish("Approved")
			amend := func(patch subscription.Patch) {
				r.do(func(ctx context.Context, tx *postgres.Tx) error {
					_, _, err := r.Webhooks.Subscriptions.Amend(ctx, tx, made.UID, patch, "test")
					return err
				})
			}
			amend(subscription.Patch{Name: new("Sandbox")})
			path := paths.To(test.pattern, made.UID.String())
			move := func(to string) answer {
				return b.post(paths.To(to, made.UID.String()), nil).wantStatus(t, http.StatusSeeOther)
			}
			if test.paused {
				move(paths.SubscriptionPause)
			}
			fill := func(page answer) url.Values {
				values := url.Values{}
				page.find("main form input[type=hidden]").Each(func(_ int, field *goquery.Selection) {
					values.Add(field.AttrOr("name", ""), field.AttrOr("value", ""))
				})
				for name := range test.typed {
					values[name] = test.typed[name]
				}
				return values
			}
			form := fill(b.get(path+"?"+test.query).wantStatus(t, http.StatusOK))
			if !test.paused { // which nobody who decides has to know
				move(paths.SubscriptionPause)
				move(paths.SubscriptionResume)
			}
			amend(subscription.Patch{URL: new("https://hooks.example/new")})
			refused := b.post(path, form).wantStatus(t, http.StatusConflict)
			if said := refused.text("main"); !containsAll(said, test.says) {
				t.Errorf("the refusal says %q, want %q", said, test.says)
			}
			b.post(path, fill(refused)).wantStatus(t, http.StatusSeeOther)
			if got, err := r.Webhooks.Subscriptions.Get(t.Context(), made.UID); err != nil ||
				got.State != test.state {
				t.Errorf("it is %q (%v), want %q", got.State, err, test.state)
			}
		})
	}
}

// The later of two admins overwrites nothing that the other saved meanwhile.
func TestTwoSaveTheSettings(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	for _, test := range []struct {
		path         string
		theirs, mine [2]string // a field and its value
		broken       string    // a wrong value of mine, refused before anything else; may be empty
		says         []string
		// audited is the audit action of the change.
		audited string
	}{
		{
			paths.MailSettings,
			[2]string{"alert_to", "night@lender.example"},
			[2]string{"lender_name", "Meadow Lending"},
			"",
			[]string{"it was alerts to every operator and admin", "is alerts to night@lender.example now"},
			"mail_settings.update",
		},
		{
			paths.Settings,
			[2]string{"body_days", "30"},
			[2]string{"email_body_days", "30"},
			"x",
			[]string{"it was 90 days of bodies", "is 30 days of bodies now"},
			"settings.retention",
		},
		{
			paths.SettingsHealth,
			[2]string{"failing_events", "9"},
			[2]string{"failing_minutes", "90"},
			"x",
			[]string{"is at least 9 events tried now"},
			"health_settings.update",
		},
		{
			paths.To(paths.ClientRate, r.issue(false).ClientID),
			[2]string{"rate", "20"},
			[2]string{"burst", "40"},
			"",
			[]string{"it was 50 requests a second", "is 20 requests a second now"},
			"client.rate",
		},
	} {
		open := func() url.Values {
			values := url.Values{}
			b.get(test.path).find("main form").First().Find("input, textarea").Each(
				func(_ int, field *goquery.Selection) {
					values.Set(field.AttrOr("name", ""), field.AttrOr("value", field.Text()))
				})
			return values
		}
		save := func(values url.Values) answer {
			if test.path != paths.Settings {
				return b.post(test.path, values)
			}
			values.Set("confirm", "yes")
			return b.post(paths.SettingsRetention, values)
		}
		mine, theirs := open(), open()
		theirs.Set(test.theirs[0], test.theirs[1])
		save(theirs).wantStatus(t, http.StatusSeeOther)
		// A corrected form is still one that was filled in before.
		if mine.Set(test.mine[0], test.broken); test.broken != "" {
			wrong := save(mine).wantStatus(t, http.StatusBadRequest)
			mine.Set(action.SeenField, wrong.find("[name=seen]").AttrOr("value", ""))
		}
		mine.Set(test.mine[0], test.mine[1])
		refused := save(mine).wantStatus(t, http.StatusConflict)
		if said := refused.text("main [role=alert]"); !containsAll(said, test.says) {
			t.Errorf("%s says %q", test.path, said)
		}
		if kept := refused.find("[name="+test.mine[0]+"]").AttrOr("value", ""); kept != test.mine[1] {
			t.Errorf("%s: what was typed became %q", test.path, kept)
		}
		if got := r.audits(test.audited); got != 1 {
			t.Errorf("%s was saved %d times", test.path, got)
		}
		mine.Set(action.SeenField, refused.find("[name=seen]").AttrOr("value", ""))
		mine.Del("token")
		save(mine).wantStatus(t, http.StatusSeeOther)
	}
}
