package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"drawbridge/internal/operator"
	"drawbridge/views/paths"
)

// uidOf returns the id of a user.
func (r *harness) uidOf(email string) string {
	r.Helper()
	users, _, err := r.Operators.Users(r.Context(), operator.UserFilter{Text: email})
	r.must(err)
	if len(users) != 1 {
		r.Fatalf("%d users are called %s", len(users), email)
	}
	return users[0].UID.String()
}

func TestPeople(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	page := b.get(paths.People).wantStatus(t, http.StatusOK)
	if got := page.find("tr[id^=person-]").Length(); got != 2 {
		t.Errorf("%d people are listed, want 2", got)
	}
	found := b.get(paths.People + "?q=SAM&role=support").find("tr[id^=person-]")
	if got := found.Length(); got != 1 {
		t.Errorf("%d people begin with sam, want 1", got)
	}
	none := b.get(paths.People+"?q=nobody").wantStatus(t, http.StatusOK)
	if !strings.Contains(none.text("main"), "Nobody matches") {
		t.Errorf("an empty list says %q", none.text("main"))
	}
	b.get(paths.People+"?role=king").wantStatus(t, http.StatusBadRequest)
	b.get(paths.To(paths.Person, "17")).wantStatus(t, http.StatusNotFound)
}

func TestAdminsChangePeople(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b, sam := r.admin(), r.signedIn()
	uid := r.uidOf(supportEmail)
	act := func(action string, form url.Values) answer {
		return b.post(paths.To(paths.Person, uid)+"/"+action, form)
	}
	act("role", url.Values{"role": {"operator"}}).wantStatus(t, http.StatusSeeOther)
	sam.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	page := b.get(paths.To(paths.Person, uid))
	if got := page.text("main .notice"); got != "The role is Operator now." {
		t.Errorf("notice %q", got)
	}
	act("role", url.Values{"role": {"king"}}).wantStatus(t, http.StatusBadRequest)
	act("role", url.Values{"role": {"operator"}}).wantStatus(t, http.StatusSeeOther) // changes nothing

	sam = r.signedIn()
	for range 2 { // the second time changes nothing
		act("access", url.Values{"access": {"disabled"}}).wantStatus(t, http.StatusSeeOther)
	}
	sam.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	r.stranger().signIn(supportEmail, password).wantStatus(t, http.StatusUnauthorized)
	act("access", url.Values{"access": {"enabled"}}).wantStatus(t, http.StatusSeeOther)
	sam = r.signedIn()

	listed := b.get(paths.To(paths.Person, uid)).find("tr[id^=session-] form")
	one, _ := listed.Attr("action")
	b.post(one, nil).wantStatus(t, http.StatusSeeOther)
	sam.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	sam = r.signedIn()
	act("sessions/end", nil).wantStatus(t, http.StatusSeeOther)
	sam.get(paths.Home).wantStatus(t, http.StatusSeeOther)

	once := act("password", nil).wantStatus(t, http.StatusOK).text(".shown-once code")
	r.stranger().signIn(supportEmail, password).wantStatus(t, http.StatusUnauthorized)
	r.stranger().signIn(supportEmail, once).wantStatus(t, http.StatusSeeOther)
	for action, want := range map[string]int{
		"user.role": 1, "user.disable": 1, "user.enable": 1, "user.session_end": 1,
		"user.sessions_end": 1, "user.password_reset": 1,
	} {
		if got := r.audits(action); got != want {
			t.Errorf("%d entries of %s, want %d", got, action, want)
		}
	}
}

func TestAdminsResetASecondFactor(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.still()
	b, sam := r.admin(), r.signedIn()
	sam.enrol()
	page := b.get(paths.To(paths.Person, r.uidOf(supportEmail)))
	action, there := page.find("form[action$='/second-factor']").Attr("action")
	if !there {
		t.Fatal("the page offers no reset")
	}
	b.post(action, nil).wantStatus(t, http.StatusSeeOther)
	sam.get(paths.Home).wantStatus(t, http.StatusSeeOther)
	if in := r.stranger().signIn(supportEmail, password); in.Location != paths.Home {
		t.Errorf("after the reset the password leads to %q", in.Location)
	}
}

func TestNobodyLocksThemselvesOut(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	uid := r.uidOf(adminEmail)
	for action, form := range map[string]url.Values{
		"role": {"role": {"support"}}, "access": {"access": {"disabled"}}, "password": nil,
		"second-factor": nil, "sessions/end": nil,
	} {
		b.post(paths.To(paths.Person, uid)+"/"+action, form).wantStatus(t, http.StatusConflict)
	}
	page := b.get(paths.To(paths.Person, uid))
	if got := page.find("main form[action*='/people/']").Length(); got != 0 {
		t.Errorf("the own page offers %d forms", got)
	}
}

func TestAuditLogPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	r.signedIn()
	uid := r.uidOf(supportEmail)
	b.post(paths.To(paths.PersonRole, uid), url.Values{"role": {"operator"}})
	for filter, want := range map[string]int{
		"":                                    3,
		"?actor=" + adminEmail:                2,
		"?action=user.role":                   1,
		"?action=user.":                       3,
		"?kind=user&subject=" + supportEmail:  2,
		"?kind=delivery":                      0,
		"?since=2020-01-01T00:00":             3,
		"?until=2020-01-01T00:00":             0,
		"?actor=" + adminEmail + "&action=x.": 0,
	} {
		page := b.get(paths.Audit+filter).wantStatus(t, http.StatusOK)
		if got := page.find("tr[id^=entry-]").Length(); got != want {
			t.Errorf("%q lists %d entries, want %d", filter, got, want)
		}
	}
	if b.get(paths.Audit).find("select[name=kind] option[value=bulk_resend]").Length() != 1 {
		t.Error("what was done to bulk re-sends cannot be chosen")
	}
	for _, wrong := range []string{"?since=yesterday", "?cursor=x", "?cursor=-1"} {
		b.get(paths.Audit+wrong).wantStatus(t, http.StatusBadRequest)
	}
	href, _ := b.get(paths.Audit + "?action=user.role").find("tr[id^=entry-] a.lead").Attr("href")
	entry := b.get(href).wantStatus(t, http.StatusOK)
	if got := entry.text("tr[id='field-role']"); got != "role before support after operator changed" {
		t.Errorf("the change is shown as %q", got)
	}
	if got := entry.text("tr[id='field-name']"); !strings.HasSuffix(got, "same") {
		t.Errorf("what stayed is shown as %q", got)
	}
	b.get(paths.ToID(paths.AuditEntry, 1<<40)).wantStatus(t, http.StatusNotFound)
	b.get(paths.Audit+"/x").wantStatus(t, http.StatusNotFound)
	file := b.get(paths.AuditCSV+"?action=user.role").wantStatus(t, http.StatusOK)
	lines := strings.Split(strings.TrimSpace(file.Raw), "\n")
	if len(lines) != 2 || !strings.Contains(lines[1], supportEmail) ||
		r.audits("audit_log.export") != 1 {
		t.Errorf("the file is %q", file.Raw)
	}
}

func TestAuditLogByPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	r.exec(`
		INSERT INTO audit_log (at, actor, address, action, subject_kind, subject, after)
		SELECT $1, 'cli', '', 'bulk.test', 'partner', n::text,
		       '{"secret": "planted", "n": 12345678901234567890}'
		  FROM generate_series(1, 120) AS n`, r.DB.Now())
	path, seen := paths.Audit+"?action=bulk.test", map[string]bool{}
	for path != "" {
		page := b.get(path).wantStatus(t, http.StatusOK)
		for _, row := range page.find("tr[id^=entry-]").EachIter() {
			id, _ := row.Attr("id")
			if seen[id] {
				t.Fatalf("%s is listed twice", id)
			}
			seen[id] = true
		}
		path, _ = page.find("a[rel=next]").Attr("href")
	}
	if len(seen) != 120 {
		t.Errorf("the pages list %d entries, want 120", len(seen))
	}
	href, _ := b.get(paths.Audit + "?action=bulk.test").find("a.lead[href^='/console/audit/']").
		Attr("href")
	entry := b.get(href)
	if strings.Contains(entry.Raw, "planted") ||
		!strings.Contains(entry.text("tr[id='field-secret']"), "[hidden]") ||
		!strings.Contains(entry.text("tr[id='field-n']"), "12345678901234567890") {
		t.Errorf("the state is shown as %q", entry.text("main table"))
	}
	if file := b.get(paths.AuditCSV); strings.Contains(file.Raw, "planted") ||
		strings.Count(file.Raw, "bulk.test") != 120 {
		t.Error("the file holds a secret or lacks entries")
	}
}
