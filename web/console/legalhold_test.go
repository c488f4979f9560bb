package console_test

import (
	"net/http"
	"strings"
	"testing"

	"drawbridge/views/paths"
)

func TestLegalHold(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	uid := r.application.String()
	page, form := paths.To(paths.Application, uid), paths.To(paths.LegalHold, uid)
	support := r.signedIn()
	if text := support.get(page).text(".facts"); !strings.Contains(text, "Legal hold") ||
		strings.Contains(text, "Place a legal hold") {
		t.Errorf("support reads %q", text)
	}
	support.get(form).wantStatus(t, http.StatusForbidden)
	b := r.admin()
	empty, _ := b.fillIn(form, map[string]string{"reason": " "})
	empty.wantStatus(t, http.StatusBadRequest)
	const reason = "Court order <b>12</b>"
	placed, values := b.fillIn(form, map[string]string{"reason": reason})
	shown := b.get(placed.wantStatus(t, http.StatusSeeOther).Location)
	if text := shown.text(".facts"); !strings.Contains(text, reason) ||
		!strings.Contains(text, "Nothing of it is removed") {
		t.Errorf("after placing it reads %q", text)
	}
	// The same form again, and another that arrives late, do not release it.
	b.post(form, values).wantStatus(t, http.StatusSeeOther)
	values.Set("token", "0190b6f0-0000-7000-8000-000000000001")
	b.post(form, values).wantStatus(t, http.StatusConflict)
	count := r.count(`SELECT count(*) FROM application_holds WHERE released_at IS NULL`)
	if count != 1 {
		t.Fatalf("%d holds are in force, want 1", count)
	}
	// The release of a hold that was followed by another one leaves that.
	shown = b.get(form)
	if text := shown.text(".dialog-body"); !containsAll(text, []string{reason, adminEmail[1:]}) {
		t.Errorf("the release of a hold says %q", text)
	}
	_, stale := shown.formValues(t)
	stale.Set("reason", "Settled")
	b.fillIn(form, map[string]string{"reason": "Settled"})
	b.fillIn(form, map[string]string{"reason": "SUBPOENA"})
	refused := b.post(form, stale).wantStatus(t, http.StatusConflict)
	if text := refused.text("main"); !containsAll(text, []string{reason, "and is", "SUBPOENA"}) {
		t.Errorf("the refusal says %q", text)
	}
	count = r.count(`SELECT count(*) FROM application_holds WHERE released_at IS NULL`)
	if count != 1 {
		t.Fatalf("the second hold is released by the form of the first")
	}
	released, _ := b.fillIn(form, map[string]string{"reason": "Order lifted"})
	shown = b.get(released.wantStatus(t, http.StatusSeeOther).Location)
	if text := shown.text(".facts"); !strings.Contains(text, "Place a legal hold") {
		t.Errorf("after releasing it reads %q", text)
	}
	if r.audits("application.hold") != 2 || r.audits("application.release") != 2 {
		t.Error("placing and releasing are not in the audit log once for each hold")
	}
}
