package console_test

import (
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/views/paths"
	site "drawbridge/web/console/page"
)

// sending is a filled-in form and its sender.
type sending struct {
	by   *browser
	path string
	form url.Values
}

// desk fills in forms, each about its own objects.
type desk struct {
	*harness
	admin    *browser
	endpoint string
	made     int
}

// next returns a unique name, at a unique time.
func (d *desk) next(word string) string {
	d.made++
	d.pass(time.Second)
	return word + strconv.Itoa(d.made)
}

// filledIn opens a page and fills in the selected form.
func (d *desk) filledIn(by *browser, path, selector string, typed ...string) sending {
	d.Helper()
	form := by.get(path).wantStatus(d.T, http.StatusOK).find(selector).First()
	if form.Length() == 0 {
		d.Fatalf("%s has no %s", path, selector)
	}
	values := url.Values{}
	for _, field := range form.Find("input, textarea, select").EachIter() {
		kind := field.AttrOr("type", "")
		if _, ticked := field.Attr("checked"); (kind == "radio" || kind == "checkbox") && !ticked {
			continue
		}
		value := field.AttrOr("value", field.Text())
		if goquery.NodeName(field) == "select" {
			chosen := field.Find("option[selected]").AddSelection(field.Find("option")).First()
			value = chosen.AttrOr("value", "")
		}
		values.Add(field.AttrOr("name", ""), value)
	}
	for i := 0; i+1 < len(typed); i += 2 {
		values.Set(typed[i], typed[i+1])
	}
	return sending{by, form.AttrOr("action", path), values}
}

// asks fills in a confirmation form.
func (d *desk) asks(path string, typed ...string) sending {
	d.Helper()
	return d.filledIn(d.admin, path, "main form[method=post]", typed...)
}

// sends is a form that a page shows among others.
func (d *desk) sends(path string, typed ...string) sending {
	form := url.Values{}
	for i := 0; i+1 < len(typed); i += 2 {
		form.Set(typed[i], typed[i+1])
	}
	return sending{d.admin, path, form}
}

func (d *desk) subscription() string {
	d.Helper()
	made, _ := d.subscribe(d.endpoint + "/" + d.next("hook"))
	return paths.To(paths.Subscription, made.UID.String())
}

func (d *desk) delivery() string {
	d.Helper()
	d.subscription()
	return d.publish(d.next("Step "))[0].UID.String()
}

func (d *desk) draft() string {
	d.Helper()
	d.subscription()
	return d.admin.begin(url.Values{"delivery": {d.failures(1)[0].UID.String()}})
}

func (d *desk) running() string {
	d.Helper()
	page := d.draft()
	d.admin.post(page+"/confirm", url.Values{"planned": {"1"}, "reason": {"outage"}}).
		wantStatus(d.T, http.StatusSeeOther)
	return page
}

// colleague is another user, signed in.
func (d *desk) colleague() (by *browser, uid string) {
	d.Helper()
	address := d.next("user") + "@lender.example"
	d.addUser(address, operator.RoleSupport)
	by = d.stranger()
	by.signIn(address, password).wantStatus(d.T, http.StatusSeeOther)
	return by, d.uidOf(address)
}

// as is a form of a new colleague about their own account.
func (d *desk) as(prepare func(by *browser), path string, typed ...string) sending {
	d.Helper()
	by, _ := d.colleague()
	if prepare != nil {
		prepare(by)
	}
	sent := d.sends(path, typed...)
	sent.by = by
	return sent
}

func (d *desk) about(action string, typed ...string) sending {
	d.Helper()
	by, uid := d.colleague()
	if action == "second-factor" {
		by.enrol()
	}
	return d.sends(paths.To(paths.Person, uid)+"/"+action, typed...)
}

// repeatable are the routes whose form may be sent twice, by the prefix of their name, with
// the reason.
var repeatable = map[string]string{
	"console.signIn": "each shows who sent it, and the browser needs the cookie of the answer " +
		"that it sees",
	"console.signOut":      "a session ends once",
	"console.confirm":      "it only notes when somebody has shown who they are",
	"console.factor.begin": "begun again it stays what it was",
	"console.preferences":  "cookies are set to what the form says",
	"console.doctor":       "it is a question; the audit log notes each",
	"console.subscription.check": "it is a question, and no form: script asks it while somebody " +
		"types an address",
	"console.subscription.compare": "it is a question; the audit log notes each",
	"console.river.": "the queue library's own console has no forms; what it does to a job is done " +
		"once by the job's state",
}

func mayRepeat(name string) bool {
	for start := range repeatable {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return strings.HasSuffix(name, ".csv") // a file is a read; the audit log has each
}

// lendingForms are the forms about applications, partners, products and people.
func (d *desk) lendingForms() map[string]func() sending {
	// An earlier form may have replaced the desk's partner.
	partner := func(act string) string { return paths.To(paths.Partner, d.Partner.String()) + act }
	client := func(act string, typed ...string) sending {
		return d.asks(paths.To(paths.Client, d.issue(true).ClientID)+"/"+act, typed...)
	}
	system := func(act string, typed ...string) sending {
		return d.asks(paths.To(paths.LenderClient, d.issueLender().ClientID)+"/"+act, typed...)
	}
	return map[string]func() sending{
		"console.application.create": func() sending {
			return d.asks(paths.ApplicationNew+"?merchant="+d.Merchant.String(),
				"requested_amount", "12500.00", "borrower.first_name", "Bo",
				"borrower.last_name", "Weiß", "borrower.email", "bo@example.com",
				"project.name", d.next("Roof "))
		},
		"console.application.change.submit": func() sending {
			return d.asks(changePath(d.application, "task"), "title", d.next("Call "))
		},
		"console.application.hold.submit": func() sending {
			d.seed(d.next("Partner "), d.next("Merchant "))
			return d.asks(paths.To(paths.LegalHold, d.application.String()), "reason", "court")
		},
		"console.product.create": func() sending {
			return d.asks(paths.ProductNew, "code", d.next("SOLAR"), "name", "Solar",
				"term", "120", "rate", "7.99", "fee", "3.75", "schedule", "40,40,20",
				"min", "1000", "max", "100000")
		},
		"console.product.switch.submit": func() sending {
			made := d.NewProduct(d.T, d.next("ROOF"), "50,50")
			return d.asks(paths.To(paths.ProductActive, made.UID))
		},
		"console.product.overdue.submit": func() sending {
			made := d.NewProduct(d.T, d.next("WIND"), "50,50")
			return d.asks(paths.To(paths.ProductOverdue, made.UID), "overdue_hours", "24")
		},
		"console.partner.create": func() sending {
			return d.asks(paths.PartnerNew, "name", d.next("Windward "))
		},
		"console.partner.rename": func() sending {
			return d.asks(partner("/rename"), "name", d.next("Renamed "))
		},
		"console.partner.contact.save": func() sending {
			return d.asks(partner("/contact"), "contact", d.next("integration")+"@sunvolt.example")
		},
		"console.merchant.create": func() sending {
			return d.asks(partner("/merchants/new"), "name", d.next("Boise "))
		},
		"console.merchant.rename": func() sending {
			return d.asks(paths.To(paths.Merchant, d.Merchant.String())+"/rename", "name", d.next("Reno "))
		},
		"console.client.issue": func() sending {
			return d.asks(partner("/clients/new"), "merchant", d.Merchant.String())
		},
		"console.client.rotate": func() sending { return client("rotate") },
		"console.client.limit.save": func() sending {
			return client("rate", "rate", "7", "burst", "9")
		},
		"console.client.revoke": func() sending {
			return d.asks(paths.To(paths.Client, d.issue(true).ClientID) + "/revoke")
		},
		"console.lender.issue": func() sending {
			return d.asks(paths.LenderNew, "name", d.next("payments "), "scope", "funding")
		},
		"console.lender.rotate": func() sending { return system("rotate") },
		"console.lender.limit.save": func() sending {
			return system("rate", "rate", "7", "burst", "9")
		},
		"console.lender.revoke": func() sending {
			return d.asks(paths.To(paths.LenderClient, d.issueLender().ClientID) + "/revoke")
		},
		"console.person.invite": func() sending {
			return d.asks(paths.PersonNew, "email", d.next("new")+"@lender.example",
				"name", "New", "role", "support")
		},
		"console.person.role":         func() sending { return d.about("role", "role", "operator") },
		"console.person.access":       func() sending { return d.about("access", "access", "disabled") },
		"console.person.password":     func() sending { return d.about("password") },
		"console.person.factor":       func() sending { return d.about("second-factor") },
		"console.person.sessions.end": func() sending { return d.about("sessions/end") },
		"console.person.session.end": func() sending {
			_, uid := d.colleague()
			return d.filledIn(d.admin, paths.To(paths.Person, uid), "tr[id^=session-] form")
		},
	}
}

// sendingForms are the forms about subscriptions, deliveries and e-mails.
func (d *desk) sendingForms() map[string]func() sending {
	return map[string]func() sending{
		"console.subscription.create": func() sending {
			form := d.filled(d.endpoint + "/" + d.next("new"))
			return sending{d.admin, paths.SubscriptionNew, form}
		},
		"console.subscription.change": func() sending {
			return d.asks(d.subscription()+"/edit", "act", "save", "rate", "7")
		},
		"console.subscription.test.send": func() sending { return d.asks(d.subscription() + "/test") },
		"console.subscription.rotated":   func() sending { return d.asks(d.subscription() + "/rotate") },
		"console.subscription.restored": func() sending {
			path := d.subscription()
			edit := d.asks(path+"/edit", "act", "save", "rate", "9")
			d.admin.post(edit.path, edit.form).wantStatus(d.T, http.StatusSeeOther)
			return d.asks(path + "/restore?version=1")
		},
		"console.subscription.paused": func() sending { return d.asks(d.subscription() + "/pause") },
		"console.subscription.resumed": func() sending {
			path := d.subscription()
			d.admin.post(path+"/pause", nil).wantStatus(d.T, http.StatusSeeOther)
			return d.asks(path + "/resume")
		},
		"console.subscription.deleted": func() sending {
			path, address := d.subscription(), ""
			d.must(d.DB.Get(&address, `SELECT url FROM subscriptions WHERE subscription_uid = $1`,
				path[strings.LastIndex(path, "/")+1:]))
			return d.asks(path+"/delete", "confirm", endpointOf(address))
		},
		"console.resend.submit": func() sending {
			return d.asks(paths.To(paths.Delivery, d.delivery())+"/resend", "reason", "it is back")
		},
		"console.deliveries.cancel": func() sending {
			return d.sends(paths.DeliveriesCancel, "delivery", d.delivery(), "confirmed", "yes",
				"reason", "not wanted")
		},
		"console.savedViews": func() sending {
			return d.sends(paths.SavedViews, "path", paths.Deliveries, "filter", "state=failed",
				"name", d.next("View "))
		},
		"console.email.resend.submit": func() sending {
			uid := d.mail(email.KindWelcome, nil)
			d.deliver(nil, "Hello")
			return d.asks(paths.To(paths.EmailResend, uid.String()), "reason", "lost")
		},
		"console.emails.resend": func() sending {
			uid := d.mail(email.KindWelcome, nil)
			d.deliver(nil, "Hello")
			return d.sends(paths.EmailsResend, "email", uid.String(), "confirmed", "yes",
				"reason", "lost")
		},
		"console.bulk.draft": func() sending {
			d.subscription()
			return d.sends(paths.BulkNew, "delivery", d.failures(1)[0].UID.String())
		},
		"console.bulk.options": func() sending { return d.sends(d.draft()+"/options", "pace", "5") },
		"console.bulk.confirm": func() sending {
			return d.sends(d.draft()+"/confirm", "planned", "1", "reason", "outage")
		},
		"console.bulk.pause": func() sending { return d.sends(d.running() + "/pause") },
		"console.bulk.resume": func() sending {
			page := d.running()
			d.admin.post(page+"/pause", nil).wantStatus(d.T, http.StatusSeeOther)
			return d.sends(page + "/resume")
		},
		"console.bulk.cancel": func() sending { return d.sends(d.draft() + "/cancel") },
		"console.attention.act": func() sending {
			d.subscribe(d.receiver(status(http.StatusServiceUnavailable)).URL)
			d.useUp("Approved")
			d.admin.post(paths.Confirm, url.Values{"password": {password}}). // it took long
												wantStatus(d.T, http.StatusSeeOther)
			var item string
			d.must(d.DB.GetContext(d.Context(), &item,
				`SELECT item_uid FROM attention_items WHERE owner = '' ORDER BY opened_at DESC LIMIT 1`))
			return d.sends(paths.To(paths.Alert, item), "act", "take")
		},
	}
}

// serverForms are the forms about the server and the user's own account.
func (d *desk) serverForms() map[string]func() sending {
	const newPassword = "another long phrase 7"
	enrolled := func(by *browser) { by.enrol() }
	return map[string]func() sending{
		"console.password.submit": func() sending {
			return d.as(nil, paths.Password, "current", password, "password", newPassword,
				"again", newPassword)
		},
		"console.factor.on": func() sending {
			var code string
			sent := d.as(func(by *browser) {
				by.post(paths.SecondBegin, nil).wantStatus(d.T, http.StatusSeeOther)
				code = d.appCode(by.get(paths.SecondFactor).text(".shown-once code"))
			}, paths.SecondFactor)
			sent.form.Set("code", code)
			return sent
		},
		"console.factor.off":    func() sending { return d.as(enrolled, paths.SecondOff) },
		"console.recoveryCodes": func() sending { return d.as(enrolled, paths.RecoveryCodes) },
		"console.session.end": func() sending {
			by, uid := d.colleague()
			d.stranger().signIn(d.addressOf(uid), password).wantStatus(d.T, http.StatusSeeOther)
			return d.filledIn(by, paths.Account, "tr[id^=session-] form, li[id^=session-] form")
		},
		"console.sessions.end": func() sending { return d.as(nil, paths.SessionsEnd) },
		"console.settings.signIn": func() sending {
			return d.sends(paths.SettingsSignIn)
		},
		"console.settings.retention": func() sending {
			return d.sends(paths.SettingsRetention, "metadata_months", "24", "body_days", "30",
				"email_body_days", "30", "api_request_days", "30", "confirm", "yes")
		},
		"console.settings.health.submit": func() sending {
			return d.asks(paths.SettingsHealth, "failing_minutes", d.next("6"))
		},
		"console.mailSettings.save": func() sending {
			return d.asks(paths.MailSettings, "lender_name", d.next("Lender "))
		},
		"console.queue.act": func() sending {
			name := d.next("queue")
			d.exec(`INSERT INTO river_queue (name, created_at, updated_at)
				VALUES ($1, now(), now())`, name)
			return d.sends(paths.To(paths.QueueAct, name, "pause"))
		},
		"console.receiver.set": func() sending { return d.asks(paths.Receiver) },
		"console.receiver.secret": func() sending {
			return d.sends(paths.ReceiverSecret, "secret", "x")
		},
		"console.receiver.clear": func() sending { return d.sends(paths.ReceiverClear) },
		"console.receiver.subscribe": func() sending {
			return d.sends(paths.ReceiverSubscribe, "partner", d.Partner.String(), "target", "plain")
		},
	}
}

func (d *desk) addressOf(uid string) (address string) {
	d.Helper()
	d.must(d.DB.GetContext(d.Context(), &address, `SELECT email FROM users WHERE user_uid = $1`, uid))
	return address
}

// content returns the content of all tables, except sessions.
func (d *desk) content() pgtest.Content {
	d.Helper()
	return pgtest.Dump(d.T, d.DB, "sessions")
}

// added returns how many rows the tables have gained, by table.
func added(before, after pgtest.Content) map[string]int {
	found := map[string]int{}
	for table, digest := range after {
		if more := rowsIn(digest) - rowsIn(before[table]); more != 0 {
			found[table] = more
		}
	}
	return found
}

// rowsIn parses the count at the start of a table's digest.
func rowsIn(digest string) int {
	count, _, _ := strings.Cut(digest, " ")
	rows, _ := strconv.Atoi(count)
	return rows
}

func (s sending) post(token string) answer {
	s.by.Helper()
	form := maps.Clone(s.form)
	form.Set("token", token)
	return s.by.post(s.path, form)
}

// TestEveryFormActsOnce posts every changing route of the route table twice: one after the
// other, and at the same moment. Two submissions have the effect of one.
func TestEveryFormActsOnce(t *testing.T) {
	t.Parallel()
	d := &desk{harness: newHarness(t)}
	d.still()
	d.admin, d.endpoint = d.harness.admin(), d.harness.receiver().URL
	forms := d.lendingForms()
	maps.Copy(forms, d.sendingForms())
	maps.Copy(forms, d.serverForms())
	for _, route := range d.Console.Routes() {
		if route.Method == http.MethodGet || mayRepeat(route.Name) {
			continue
		}
		fill, known := forms[route.Name]
		if !known {
			t.Errorf("%s %s: fill in a form of %s here, or say why it may come twice",
				route.Method, route.Path, route.Name)
			continue
		}
		delete(forms, route.Name)
		once := d.oneAfterTheOther(route, fill())
		d.atOnce(route, fill(), once)
	}
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		t.Errorf("there is no route %s", name)
	}
}

func (d *desk) oneAfterTheOther(route site.Route, sent sending) map[string]int {
	d.Helper()
	token, before := uuid.NewString(), d.content()
	first := sent.post(token)
	if first.Status >= http.StatusBadRequest {
		d.Fatalf("%s answers %d: %s", route.Name, first.Status, first.text("main"))
	}
	after := d.content()
	once := added(before, after)
	if once["console_submissions"] != 1 {
		d.Errorf("%s changed something without its token: %v", route.Name, once)
	}
	second := sent.post(token)
	if second.Status != http.StatusSeeOther ||
		first.Location != "" && !sent.by.isOut(second) && second.Location != first.Location {
		d.Errorf("%s sent again answers %d to %q, the first led to %q", route.Name, second.Status,
			second.Location, first.Location)
	}
	if differs := d.content().Differs(after); len(differs) != 0 {
		d.Errorf("%s sent again changed %v", route.Name, differs)
	}
	return once
}

// isOut reports whether the form ended its sender's session.
func (b *browser) isOut(a answer) bool { return strings.HasPrefix(a.Location, paths.SignIn) }

func (d *desk) atOnce(route site.Route, sent sending, once map[string]int) {
	d.Helper()
	token, before := uuid.NewString(), d.content()
	var both sync.WaitGroup
	answers := make([]answer, 2)
	for i := range answers {
		both.Go(func() { answers[i] = sent.post(token) })
	}
	both.Wait()
	for _, each := range answers {
		if each.Status >= http.StatusBadRequest {
			d.Errorf("%s sent twice at once answers %d: %s", route.Name, each.Status, each.text("main"))
		}
	}
	if got := added(before, d.content()); !maps.Equal(got, once) {
		d.Errorf("%s sent twice at once adds %v, once it adds %v", route.Name, got, once)
	}
}

// TestRepeatableFormsDoNothingTwice checks the forms without a token.
func TestRepeatableFormsDoNothingTwice(t *testing.T) {
	t.Parallel()
	d := &desk{harness: newHarness(t)}
	d.admin = d.harness.admin()
	before := d.content()
	for range 2 {
		d.admin.send(http.MethodPost, paths.Preferences, url.Values{"theme": {"dark"}}).
			wantStatus(t, http.StatusSeeOther)
		d.admin.send(http.MethodPost, paths.Confirm, url.Values{"password": {password}}).
			wantStatus(t, http.StatusSeeOther)
	}
	if got := added(before, d.content()); len(got) != 0 {
		t.Errorf("preferences and proofs added %v", got)
	}
	for range 2 {
		d.admin.send(http.MethodPost, paths.SignOut, url.Values{}).
			wantStatus(t, http.StatusSeeOther)
	}
	if got := d.audits("user.sign_out"); got != 1 {
		t.Errorf("%d entries of one sign-out", got)
	}
}

// TestATrialIsSentOnce sends the test before saving twice. The first test is in the audit
// log while it is in progress.
func TestATrialIsSentOnce(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, endpoint := r.asOperator(), r.receiver(func(http.ResponseWriter, *http.Request) {
		if got := r.audits("subscription.try"); got != 1 {
			t.Errorf("%d tests are in the audit log as one arrives", got)
		}
	})
	form := r.filled(endpoint.URL)
	form.Set("token", uuid.NewString())
	form.Set("act", "try")
	b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusOK)
	again := b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusConflict)
	if got := len(endpoint.Received()); got != 1 || r.audits("subscription.try") != 1 {
		t.Errorf("%d tests arrived, %d are in the audit log", got, r.audits("subscription.try"))
	}
	if !strings.Contains(again.text("#test_event-fault, .field-fault"), "sent a moment ago") ||
		again.find("#url").AttrOr("value", "") != endpoint.URL {
		t.Errorf("the second is told %q", again.text("[role=alert]"))
	}
	form.Set("act", "save")
	b.post(paths.SubscriptionNew, form).wantStatus(t, http.StatusSeeOther)
}

// everyPage renders every page of the route table, the dialogs too.
func (d *desk) everyPage(look func(page answer, path string)) {
	d.Helper()
	product := d.NewProduct(d.T, "SOLAR", "50,50")
	running, delivery := d.running(), d.delivery()
	subscription, client := d.subscription(), d.issue(true).ClientID
	fills := map[string]string{
		paths.Deliveries: delivery, paths.Applications: d.application.String(),
		paths.Partners: d.Partner.String(), paths.Merchants: d.Merchant.String(),
		paths.Clients: client, paths.People: d.uidOf(supportEmail),
		paths.Emails:        d.mail(email.KindWelcome, nil).String(),
		paths.Bulks:         running[strings.LastIndex(running, "/")+1:],
		paths.Subscriptions: subscription[strings.LastIndex(subscription, "/")+1:],
		paths.Products:      product.UID,
	}
	look(d.stranger().get(paths.SignIn), paths.SignIn)
	for _, route := range d.Console.Routes() {
		if route.Method != http.MethodGet || strings.HasSuffix(route.Path, "/live") {
			continue
		}
		path := strings.Replace(route.Path, ":change", "task", 1)
		for list, id := range fills {
			if rest, below := strings.CutPrefix(path, list+"/:"); below {
				_, rest, _ = strings.Cut(rest, "/")
				path = strings.TrimSuffix(list+"/"+id+"/"+rest, "/")
			}
		}
		path += "?version=1"
		look(d.admin.get(path), path)
		look(d.admin.fragment().get(path), path)
	}
}

// TestEveryFormHasAToken checks every posted form.
func TestEveryFormHasAToken(t *testing.T) {
	t.Parallel()
	d := &desk{harness: newHarness(t)}
	d.admin, d.endpoint = d.harness.admin(), d.harness.receiver().URL
	seen := map[string]string{}
	d.everyPage(func(page answer, path string) {
		for _, form := range page.find("form[method=post]").EachIter() {
			tokens := form.Find("input[type=hidden][name=token]")
			token := tokens.AttrOr("value", "")
			if _, err := uuid.Parse(token); err != nil || tokens.Length() != 1 || seen[token] != "" {
				t.Errorf("%s: the form to %s has %d tokens, %q, of %q", path,
					form.AttrOr("action", ""), tokens.Length(), token, seen[token])
			}
			seen[token] = path
		}
	})
	if len(seen) < 60 {
		t.Errorf("only %d forms were looked at", len(seen))
	}
}

// TestNoAddressSaysOneThingTwice checks every form and link: a parameter that has one value
// is given once.
func TestNoAddressSaysOneThingTwice(t *testing.T) {
	t.Parallel()
	d := &desk{harness: newHarness(t)}
	d.admin, d.endpoint = d.harness.admin(), d.harness.receiver().URL
	asked := 0
	d.everyPage(func(page answer, path string) {
		for _, form := range page.find("form:not([method=post]):not([method=dialog])").EachIter() {
			asked++
			names := map[string]bool{}
			fields := form.Find("input:not([type=radio]):not([name=show]), select, textarea")
			for _, field := range fields.EachIter() {
				name := field.AttrOr("name", "")
				if name != "" && names[name] {
					t.Errorf("%s: a form asks for %q twice", path, name)
				}
				names[name] = true
			}
		}
		for _, link := range page.find("a[href^='/console'], a[href^='?']").EachIter() {
			address, err := url.Parse(link.AttrOr("href", ""))
			d.must(err)
			for name, values := range address.Query() {
				if len(values) > 1 && name != "show" {
					t.Errorf("%s: the link %s says %s twice", path, address, name)
				}
			}
		}
	})
	if asked < 10 {
		t.Errorf("only %d forms were looked at", asked)
	}
}

// TestChangesGoThroughTheEngine reads the sources: nothing under the console or the API
// begins its own transaction, and the console writes to the audit log only through the
// outcome of a change, and makes changes only through package action.
func TestChangesGoThroughTheEngine(t *testing.T) {
	t.Parallel()
	begins := regexp.MustCompile(`\.(InTx|BeginTxx?)\(`)
	audits := regexp.MustCompile(`\.Audit(Limited)?\(`)
	acts := regexp.MustCompile(`\bOperators\.Act\(`)
	refuse := func(path string, source []byte, what *regexp.Regexp, says string) {
		if at := what.FindIndex(source); at != nil {
			t.Errorf("%s:%d %s", path, bytes.Count(source[:at[0]], []byte("\n"))+1, says)
		}
	}
	for root, least := range map[string]int{".": 40, "../api": 15} {
		sources := 0
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			sources++
			source, err := os.ReadFile(path)
			refuse(path, source, begins, "begins a transaction; changes go through package action, "+
				"or through effect")
			if root == "." {
				refuse(path, source, audits, "writes an audit entry; return it as the outcome's")
				if filepath.Dir(path) != "action" {
					refuse(path, source, acts, "makes a change; changes go through package action")
				}
			}
			return err
		})
		if err != nil || sources < least {
			t.Fatalf("%s: %d sources, %v", root, sources, err)
		}
	}
}
