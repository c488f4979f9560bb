package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/views/paths"
)

// changePath is the address of a change's form.
func changePath(uid uuid.UUID, change string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return paths.With(paths.To(paths.ApplicationChange, uid.String(), change), query)
}

// recorded lists the kinds and statuses of an application's events, oldest first.
func (r *harness) recorded(uid uuid.UUID) []string {
	r.Helper()
	var words []string
	r.must(r.DB.SelectContext(r.Context(), &words, `SELECT kind || ' ' || status FROM events
		WHERE application_uid = $1 ORDER BY occurred_at`, uid))
	return words
}

// Each label of a dialog belongs to its field, whatever the name of its heading.
func TestDialogsLabelTheirFields(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	part := r.asOperator().fragment().get(changePath(r.application, "task")).
		wantStatus(t, http.StatusOK)
	labels := part.find("label[for]")
	if labels.Length() != 2 {
		t.Errorf("there are %d labels, want those of title and reason", labels.Length())
	}
	labels.Each(func(_ int, label *goquery.Selection) {
		if of := part.find("#" + label.AttrOr("for", "")); !of.First().Is("input") {
			t.Errorf("the label %q is that of a %s", label.Text(), goquery.NodeName(of))
		}
	})
}

// A form names what it acts on, on its page and in its dialog.
func TestFormsNameWhomTheyActOn(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	issued := r.issue(false)
	for path, want := range map[string]string{
		changePath(r.application, "task"):                         "Ana Lima · ",
		paths.To(paths.LegalHold, r.application.String()):         "Ana Lima · ",
		paths.To(paths.Client, issued.ClientID) + "/revoke":       issued.ClientID + " of ",
		paths.To(paths.Client, issued.ClientID) + "/rate":         issued.ClientID + " of ",
		paths.To(paths.Partner, r.Partner.String()) + "/rename":   "",
		paths.To(paths.Merchant, r.Merchant.String()) + "/rename": " of ",
	} {
		for name, as := range map[string]*browser{"page": b, "dialog": b.fragment()} {
			got := as.get(path).wantStatus(t, http.StatusOK).text(".about")
			if got == "" || !strings.Contains(got, want) {
				t.Errorf("the %s of %s is about %q, want %q", name, path, got, want)
			}
		}
	}
}

// The buttons match the transition table for each status, and each says what it causes.
func TestMoveButtonsAreTheTransitionTable(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	r.subscribe(r.receiver().URL)
	for _, status := range lending.AllApplicationStatuses() {
		r.exec(`UPDATE applications SET status = $2 WHERE application_uid = $1`,
			r.application, string(status))
		page := b.get(paths.To(paths.Application, r.application.String())).wantStatus(t, http.StatusOK)
		var want []string
		for _, to := range status.Next() {
			want = append(want, string(to))
		}
		got := page.find("[data-move]").Map(func(_ int, link *goquery.Selection) string {
			return link.AttrOr("data-move", "")
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s offers %v, want %v", status, got, want)
		}
		page.find("#actions li").Each(func(_ int, item *goquery.Selection) {
			to := lending.ApplicationStatus(item.Find("a").AttrOr("data-move", ""))
			note := item.Find(".soft").Text()
			if to == "" {
				return
			}
			if !containsAll(note, []string{
				"Sends “Application status changed” (application.status.update)", " to 1 subscription.",
			}) ||
				strings.Contains(note, "stipulation") != to.NeedsStipulation() {
				t.Errorf("%s to %s says %q", status, to, note)
			}
		})
		for _, to := range lending.AllApplicationStatuses() {
			answer := b.get(changePath(r.application, "status", "to", string(to)))
			want := http.StatusConflict
			switch {
			case to == status: // and redirected back
				want = http.StatusSeeOther
			case slices.Contains(status.Next(), to):
				want = http.StatusOK
			}
			if answer.Status != want {
				t.Errorf("%s to %s answers %d, want %d", status, to, answer.Status, want)
			}
		}
	}
}

// The decision may come after approval and acceptance: then it opens the loan.
func TestDecisionAfterApproval(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	product := r.NewProduct(t, "SOLAR", "50,50")
	uid := r.Application(t).UID
	r.Move(t, uid, lending.StatusApproved)
	for _, step := range []struct{ change, product, says string }{
		{"accept", product.UID, "The loan opens once the decision has made the product's offer."},
		{"decision", "", "The loan opens if the selected product makes an offer."},
	} {
		form := b.get(changePath(uid, step.change)).wantStatus(t, http.StatusOK)
		if !strings.Contains(form.text(".dialog-body"), step.says) {
			t.Errorf("%s says %q, want %q", step.change, form.text(".dialog-body"), step.says)
		}
		action, values := form.formValues(t)
		if step.product != "" {
			values.Set("product", step.product)
		}
		b.post(action, values).wantStatus(t, http.StatusSeeOther)
	}
	if got := r.recorded(uid); len(got) != 1 {
		t.Errorf("recorded %q, want the approval alone", got)
	}
	if got := r.GetLoan(t, uid).Amount().String(); got != "10000.00" {
		t.Errorf("the loan is one of %s", got)
	}
}

// Closing an application warns of money on the way, and its loan then promises nothing.
func TestClosingTellsOfTheDraw(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	uid := r.Harness.Loan(t, r.NewProduct(t, "SOLAR", "50,50")).UID
	draw := r.Draw(t, uid, loan.DrawInput{})
	form := b.get(changePath(uid, "status", "to", "Closed")).wantStatus(t, http.StatusOK)
	want := fmt.Sprintf("Draw #%d of USD 5,000.00 is under way (requested)", draw.ID)
	if got := form.text(".dialog-body"); !strings.Contains(got, want) {
		t.Errorf("closing says %q, want %q", got, want)
	}
	r.Move(t, uid, lending.StatusClosed)
	page := b.get(paths.To(paths.Application, uid.String()))
	if got := page.text(".panel-head"); !strings.Contains(got, "A draw is pending; none follows it") {
		t.Errorf("the closed application's loan: %q", got)
	}
	if got := page.text(".sums"); !strings.Contains(got, "never drawn") {
		t.Errorf("the closed application's sums: %q", got)
	}
}

// The decision on an application that was moved on says what it does without an offer, and does so.
func TestDecisionWithoutAnOffer(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	r.NewProduct(t, "SOLAR", "50,50")
	for _, test := range []struct {
		from, says string
		status     int
		want       lending.ApplicationStatus
	}{
		{
			"Hard Pull Authorization", "without any it goes to Declined, which is final",
			http.StatusSeeOther, "Declined",
		},
		{
			"Approved", "Without an offer the decision is refused",
			http.StatusConflict, "Approved",
		},
	} {
		uid := r.Application(t, apptest.LastName("Declined")).UID
		r.Move(t, uid, lending.ApplicationStatus(test.from))
		form := b.get(changePath(uid, "decision")).wantStatus(t, http.StatusOK)
		if !strings.Contains(form.text(".dialog-body"), test.says) {
			t.Errorf("%s says %q, want %q", test.from, form.text(".dialog-body"), test.says)
		}
		action, values := form.formValues(t)
		b.post(action, values).wantStatus(t, test.status)
		if got := r.Get(t, uid).Status; got != test.want {
			t.Errorf("%s became %s, want %s", test.from, got, test.want)
		}
	}
}

// An application's whole life in the console: every event is the one that the form announced.
func TestAnApplicationLivesInTheConsole(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	subscription, _ := r.subscribe(r.receiver().URL)
	product := r.NewProduct(t, "SOLAR", "50,50")
	form := paths.ApplicationNew + "?merchant=" + r.Merchant.String()
	created, _ := b.fillIn(form, map[string]string{
		"requested_amount": "12500.00", "borrower.first_name": "Bo", "borrower.last_name": "Weiß",
		"borrower.email": "bo@example.com", "project.name": "Roof", "product_uid": product.UID,
		"borrower.annual_income": "90000", "external_reference": "C-1",
	})
	created.wantStatus(t, http.StatusSeeOther)
	uid := uuid.MustParse(created.Location[strings.LastIndex(created.Location, "/")+1:])
	var source, mail string
	r.must(r.DB.Get(&source, `SELECT source || ' ' || communications FROM applications
		WHERE application_uid = $1`, uid))
	r.must(r.DB.Get(&mail, `SELECT kind || ' ' || state FROM emails WHERE application_uid = $1`, uid))
	if source != "console enabled" || mail != "welcome queued" {
		t.Errorf("created as %q with the mail %q", source, mail)
	}
	askable := func() {
		t.Helper()
		b.get(created.Location).find("#actions a").Each(func(_ int, action *goquery.Selection) {
			b.get(action.AttrOr("href", "")).wantStatus(t, http.StatusOK)
		})
	}
	step := func(want string, fields map[string]string, change string, pairs ...string) {
		t.Helper()
		form := b.get(changePath(uid, change, pairs...)).wantStatus(t, http.StatusOK)
		before := r.recorded(uid)
		announced := ""
		body := form.text(".dialog-body")
		_, after, found := strings.Cut(body, "Sends “")
		if !found {
			_, after, found = strings.Cut(body, "Records “")
		}
		if found {
			_, after, _ = strings.Cut(after, "” (")
			announced, _, _ = strings.Cut(after, ")")
		}
		action, values := form.formValues(t)
		for name, value := range fields {
			values.Set(name, value)
		}
		answer := b.post(action, values)
		if answer.Status != http.StatusSeeOther || answer.Location != created.Location {
			t.Fatalf("%s answers %d: %s", change, answer.Status, answer.text("main"))
		}
		got := r.recorded(uid)[len(before):]
		if strings.Join(got, ",") != want {
			t.Errorf("%s %v recorded %v, want %q", change, pairs, got, want)
		}
		if want != "" && announced != strings.Fields(want)[0] {
			t.Errorf("%s announced %q and recorded %q", change, announced, want)
		}
		askable()
		// The same form a second time changes nothing and says so.
		again := b.post(action, values).wantStatus(t, http.StatusSeeOther)
		notice := b.get(again.Location).text("main > .notice")
		if !strings.Contains(notice, "acted already") || len(r.recorded(uid)) != len(before)+len(got) {
			t.Errorf("%s sent twice says %q and recorded %v", change, notice, r.recorded(uid))
		}
	}
	const status = "application.status.update "
	step(status+"Hard Pull Authorization", nil, "decision")
	step("", map[string]string{"product": product.UID}, "accept")
	step(status+"Hard Pull", nil, "status", "to", "Hard Pull")
	step("application.offer.update Terms Updated", map[string]string{"term": "96"}, "terms")
	step(status+"Approved", nil, "status", "to", "Approved")
	step("application.amount.update Loan Amount Updated",
		map[string]string{"approved_amount": "12000"}, "amount")
	step("document.sent DOCUMENT_SENT", nil, "document", "to", "DOCUMENT_SENT")
	step("document.signed DOCUMENT_SIGNED", nil, "document", "to", "DOCUMENT_SIGNED")
	step("task.created Pending", map[string]string{"title": "Send a photo"}, "task")
	step("task.created Pending", map[string]string{"title": "Sign here"}, "task")
	tasks := map[string]string{}
	b.get(created.Location).find("#actions a[href*='task-status']").Each(
		func(_ int, link *goquery.Selection) {
			query, _ := url.Parse(link.AttrOr("href", ""))
			tasks[link.Text()] = query.Query().Get("task")
		})
	step("task.updated Completed", nil, "task-status", "to", "Completed", "task",
		tasks["Complete “Send a photo”"])
	step("task.updated cancelled", nil, "task-status", "to", "cancelled", "task",
		tasks["Cancel “Sign here”"])
	w := r
	first := fmt.Sprint(w.Draw(t, uid, loan.DrawInput{}).ID)
	step("disbursement.funding.status-changed FUNDING_PROCESSING", nil, "funding", "draw", first,
		"to", "FUNDING_PROCESSING")
	evidence := map[string]string{
		"reference": "ACH-4711", "method": "ach", "effective_date": "2026-11-21",
	}
	step("disbursement.funding.settled FUNDING_SETTLED", evidence, "funding", "draw", first,
		"to", "FUNDING_SETTLED")
	entry := b.get(created.Location).text("[id='moment-draw.settled-" + first + "']")
	var audited string
	r.must(r.DB.Get(&audited, `SELECT after::text FROM audit_log
		WHERE subject = $1 AND after ->> 'status' = 'FUNDING_SETTLED'`, uid.String()))
	for field, value := range evidence {
		if !strings.Contains(entry, value) || !strings.Contains(audited, value) {
			t.Errorf("the %s %q: the timeline says %q, the audit log %s", field, value, entry, audited)
		}
	}
	if !strings.Contains(entry, "by "+operatorEmail) {
		t.Errorf("the timeline does not say by whom: %q", entry)
	}
	found := b.get(paths.With(paths.Search, url.Values{"q": {"ACH-4711"}}))
	if found.Location != paths.Within(uid.String(), "draw", first) {
		t.Errorf("the search for a payment's reference leads to %q", found.Location)
	}
	second := fmt.Sprint(w.Draw(t, uid, apptest.Documented()).ID)
	askable()
	step("disbursement.funding.cancelled FUNDING_CANCELLED",
		map[string]string{"reason": "the roof is too small"}, "funding", "draw", second,
		"to", "CANCELLED")
	step(status+"Closed", nil, "status", "to", "Closed")
	page := b.get(created.Location)
	if got := page.text("main"); !containsAll(got, []string{
		"Closed", "12,000.00", "months 96", "Cancelled",
	}) {
		t.Errorf("in the end the page says %q", got)
	}
	deliveries := r.count(`SELECT count(*) FROM deliveries WHERE subscription_uid = $1`,
		subscription.UID)
	// A cancelled draw is sent only to subscriptions that name the event.
	if deliveries != len(r.recorded(uid))-1 {
		t.Errorf("%d deliveries of %d events", deliveries, len(r.recorded(uid)))
	}
	actions := r.count(`SELECT count(*) FROM audit_log WHERE subject = $1 AND actor = $2`,
		uid.String(), operatorEmail)
	if actions != 17 {
		t.Errorf("%d of 17 actions are in the audit log", actions)
	}
}

// Two operators have the same form open. The second is told what happened, and nothing
// happens twice.
func TestAChangeSeesWhatHappenedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	product := r.NewProduct(t, "SOLAR", "50,50")
	other := r.NewProduct(t, "ROOF", "100")
	app := r.Loan(t, product)
	for _, test := range []struct {
		name   string
		path   string
		fields map[string]string
		other  func()
		says   string
	}{
		{
			"an amount", changePath(app.UID, "amount"),
			map[string]string{"approved_amount": "9000"},
			func() {
				b.fillIn(changePath(app.UID, "amount"), map[string]string{"approved_amount": "8000"})
			},
			"8000.00",
		},
		{
			"terms", changePath(app.UID, "terms"),
			map[string]string{"term": "60"},
			func() { b.fillIn(changePath(app.UID, "terms"), map[string]string{"term": "72"}) },
			" 72 ",
		},
		{
			"a status that may still be left", changePath(app.UID, "status", "to", "Closed"), nil,
			func() { b.fillIn(changePath(app.UID, "status", "to", "Pend Clearance"), nil) },
			"Approved and is Pend Clearance",
		},
	} {
		action, values := b.get(test.path).wantStatus(t, http.StatusOK).formValues(t)
		test.other()
		before := r.recorded(app.UID)
		for name, value := range test.fields {
			values.Set(name, value)
		}
		answer := b.post(action, values).wantStatus(t, http.StatusConflict)
		_, said, _ := strings.Cut(answer.text("main"), "it was ")
		said, _, _ = strings.Cut(said, " now.")
		if !strings.Contains(said, test.says) || strings.Contains(said, other.Code) {
			t.Errorf("%s: says it was %q, want %q and nothing that is the same", test.name, said, test.says)
		}
		if got := r.recorded(app.UID); len(got) != len(before) {
			t.Errorf("%s recorded %v more", test.name, got[len(before):])
		}
		for name, value := range test.fields {
			if kept := answer.find("[name="+name+"]").AttrOr("value", ""); kept != value {
				t.Errorf("%s: %s became %q", test.name, name, kept)
			}
		}
	}
}

// What the rules refuse is explained beside the field in plain words.
func TestChangeErrors(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	app := r.Loan(t, r.NewProduct(t, "SOLAR", "50,50"))
	r.Draw(t, app.UID, loan.DrawInput{})
	for _, test := range []struct{ change, field, value, says string }{
		{"amount", "approved_amount", "x", "decimal number"},
		{"amount", "approved_amount", "24,999.99", "without commas, such as 24999.99"},
		{"amount", "approved_amount", "0", "greater than 0"},
		{"amount", "approved_amount", "1", "the amount already drawn"},
		{"amount", "approved_amount", "999999", "at most the max_amount of the offer"},
		{"terms", "term", "0", "months"},
		{"terms", "interest_rate", "101", ""},
		{"task", "title", " ", "required"},
		{"task", "title", strings.Repeat("x", 201), "at most 200"},
	} {
		answer, _ := b.fillIn(changePath(app.UID, test.change), map[string]string{test.field: test.value})
		answer.wantStatus(t, http.StatusBadRequest)
		problem := answer.text("#ask-" + test.field + "-fault")
		if problem == "" || !strings.Contains(problem, test.says) {
			t.Errorf("%s of %q: %q, want %q", test.field, test.value, problem, test.says)
		}
		if kept := answer.find("#ask-"+test.field).AttrOr("value", ""); kept != test.value {
			t.Errorf("%q became %q", test.value, kept)
		}
	}
	none, _ := b.fillIn(changePath(app.UID, "terms"), nil)
	none.wantStatus(t, http.StatusBadRequest)
	for _, path := range []string{
		changePath(app.UID, "nothing"), changePath(uuid.New(), "status", "to", "Closed"),
		changePath(app.UID, "task-status", "task", uuid.NewString(), "to", "Completed"),
		changePath(app.UID, "funding", "draw", "1", "to", "CANCELLED"),
		changePath(app.UID, "funding", "draw", "x", "to", "CANCELLED"),
	} {
		b.get(path).wantStatus(t, http.StatusNotFound)
	}
	for _, path := range []string{
		changePath(app.UID, "decision"), changePath(app.UID, "accept"),
		changePath(app.UID, "document", "to", "DOCUMENT_SIGNED"),
		changePath(r.application, "amount"), changePath(r.application, "terms"),
	} {
		b.get(path).wantStatus(t, http.StatusConflict)
	}
	b.get(changePath(app.UID, "status", "to", "Gone")).wantStatus(t, http.StatusBadRequest)
}

// Accepting closes competing applications of the same merchant, all or nothing.
func TestAcceptWithCompetitors(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	w := r
	product := w.NewProduct(t, "SOLAR", "50,50")
	app := w.Application(t, apptest.In(lending.StatusHardPullAuthorization))
	rival := w.Application(t)
	form := b.get(changePath(app.UID, "accept"))
	if got := form.text(".dialog-body"); !containsAll(got, []string{
		"Communications are enabled", "welcome e-mail at once",
		"records “Application status changed” (application.status.update)",
	}) {
		t.Errorf("the form says %q", got)
	}
	wrong, _ := b.fillIn(changePath(app.UID, "accept"), map[string]string{
		"linked": "x " + uuid.NewString(),
	})
	if got := wrong.wantStatus(t, http.StatusBadRequest).text("#ask-linked-fault"); got == "" {
		t.Error("a competitor that is no id goes unnoticed")
	}
	unknown, _ := b.fillIn(changePath(app.UID, "accept"), map[string]string{
		"linked": uuid.NewString(),
	})
	unknown.wantStatus(t, http.StatusBadRequest)
	answer, _ := b.fillIn(changePath(app.UID, "accept"), map[string]string{
		"product": product.UID, "linked": rival.UID.String(),
	})
	answer.wantStatus(t, http.StatusSeeOther)
	if got := w.Get(t, rival.UID).Status; got != lending.StatusClosed {
		t.Errorf("the competitor is %s", got)
	}
	if got := w.Get(t, app.UID); got.SelectedProductCode != "SOLAR" ||
		got.Communications != lending.CommunicationsEnabled {
		t.Errorf("accepted: %+v", got)
	}
}

// The form refuses what the API refuses, all of it at once, and keeps the input.
func TestNewApplicationErrors(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	typed := map[string]string{
		"requested_amount": "-1", "borrower.email": "nobody", "borrower.annual_income": "lots",
		"borrower.first_name": strings.Repeat("x", 101), "project.name": "",
	}
	page, _ := b.fillIn(paths.ApplicationNew, typed)
	page.wantStatus(t, http.StatusBadRequest)
	for _, field := range []string{
		"merchant_uid", "requested_amount", "borrower.annual_income", "borrower.first_name",
		"borrower.last_name", "borrower.email", "project.name",
	} {
		if got := page.text("[id='ask-" + field + "-fault']"); got == "" {
			t.Errorf("%s has no fault", field)
		}
		if page.find("[role=alert] a[href='#ask-"+field+"']").Length() != 1 {
			t.Errorf("the summary does not lead to %s", field)
		}
	}
	for field, want := range typed {
		if got := page.find("[name='"+field+"']").AttrOr("value", ""); got != want {
			t.Errorf("%s became %q", field, got)
		}
	}
	fixed := map[string]string{
		"merchant_uid": r.Merchant.String(), "requested_amount": "100", "borrower.email": "nobody",
		"borrower.first_name": "B", "borrower.last_name": "W", "project.name": "P",
	}
	page, _ = b.fillIn(paths.ApplicationNew, fixed)
	page.wantStatus(t, http.StatusBadRequest)
	if got := page.text("[id='ask-borrower.email-fault']"); !strings.Contains(got, "-mail address") {
		t.Errorf("the address: %q", got)
	}
	if r.count(`SELECT count(*) FROM applications`) != 1 {
		t.Error("a refused form made an application")
	}
	fixed["borrower.email"] = "b@example.com"
	answer, values := b.fillIn(paths.ApplicationNew, fixed)
	again := b.post(paths.ApplicationNew, values)
	if again.Location != answer.Location || r.count(`SELECT count(*) FROM applications`) != 2 {
		t.Errorf("sent twice: %q and %q", answer.Location, again.Location)
	}
}

func TestSupportChangesNoApplication(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	path := paths.To(paths.Application, r.application.String())
	page := b.get(path).wantStatus(t, http.StatusOK)
	if page.find("#actions, [data-ask]").Length() != 0 {
		t.Error("support is offered changes")
	}
	for _, path := range []string{
		paths.ApplicationNew, changePath(r.application, "status", "to", "Closed"),
	} {
		b.get(path).wantStatus(t, http.StatusForbidden)
		b.post(path, url.Values{"token": {uuid.NewString()}, "to": {"Closed"}, "seen": {"Approved"}}).
			wantStatus(t, http.StatusForbidden)
	}
	if got := r.recorded(r.application); len(got) != 0 {
		t.Errorf("recorded %v", got)
	}
}

// TestReturnedMoneyNeedsAReason records that settled money came back: the partner reads the
// reason, so it is required, and the form keeps its input until there is one.
func TestReturnedMoneyNeedsAReason(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	app := r.Loan(t, r.NewProduct(t, "SOLAR", "50,50"))
	drawn := r.Draw(t, app.UID, loan.DrawInput{})
	r.Settle(t, drawn.ID)
	form := changePath(app.UID, "funding", "draw", fmt.Sprint(drawn.ID), "to", "RETURNED")
	refused, _ := b.fillIn(form, map[string]string{"reference": "R01-7"})
	refused.wantStatus(t, http.StatusBadRequest)
	if got := refused.text(".field-fault"); !strings.Contains(got, "required") {
		t.Errorf("without a reason the field says %q", got)
	}
	if got := refused.find("[name=reference]").AttrOr("value", ""); got != "R01-7" {
		t.Errorf("the form kept the reference %q", got)
	}
	done, _ := b.fillIn(form, map[string]string{"reference": "R01-7", "reason": "No such account"})
	done.wantStatus(t, http.StatusSeeOther)
	page := b.get(paths.To(paths.Application, app.UID.String())).wantStatus(t, http.StatusOK)
	for _, want := range []string{"Returned", "R01-7", "No such account"} {
		if !strings.Contains(page.text("main"), want) {
			t.Errorf("the application does not say %q", want)
		}
	}
}
