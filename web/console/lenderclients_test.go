package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	viewpaths "drawbridge/views/paths"
)

// calls reports whether credentials of one of the lender's systems are accepted.
func (r *harness) calls(id, secret string) bool {
	r.Helper()
	_, err := r.Partners.AuthenticateLender(r.Context(),
		partner.Presented{ClientID: id, Secret: secret})
	if code := lending.ErrorCode(err); code != "" && code != lending.CodeUnauthorized {
		r.Fatal(err)
	}
	return err == nil
}

// auditEntry is a line of the audit log about a client.
type auditEntry struct {
	Actor, Reason, Before, After string
}

// entryOf returns the only audit entry of an action on a client.
func (r *harness) entryOf(action, client string) auditEntry {
	r.Helper()
	var entries []auditEntry
	r.must(r.DB.SelectContext(r.Context(), &entries, `
		SELECT actor, reason, coalesce(before::text, '') AS before, coalesce(after::text, '') AS after
		  FROM audit_log
		 WHERE action = $1
		   AND subject_kind = 'client'
		   AND subject = $2`, action, client))
	if len(entries) != 1 {
		r.Fatalf("the audit log has %d entries of %s on %s", len(entries), action, client)
	}
	return entries[0]
}

func TestRotateLenderClient(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	issued := r.issueLender()
	path := viewpaths.To(viewpaths.LenderClient, issued.ClientID)
	shown, values := b.fillIn(path+"/rotate", map[string]string{
		"overlap": "1h", "reason": "once a year",
	})
	fresh := shown.wantStatus(t, http.StatusOK).text("#secret")
	if !containsAll(shown.text("main"), []string{"the lender's system payments", "/lender/v1/"}) ||
		shown.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page with the secret says %q", shown.text("main"))
	}
	if !r.calls(issued.ClientID, issued.Secret) || !r.calls(issued.ClientID, fresh) {
		t.Error("not both secrets work in the overlap")
	}
	end := func(secret string) string { return secret[len(secret)-4:] }
	page := b.get(path).wantStatus(t, http.StatusOK)
	if notice := page.text("main .notice-warn"); page.text(".headline .chip") != "Rotating" ||
		!containsAll(notice, []string{"Two secrets work", end(issued.Secret), end(fresh)}) {
		t.Errorf("the overlap is shown as %q", notice)
	}
	row := b.get(viewpaths.Lender).wantStatus(t, http.StatusOK).text("#c-" + issued.ClientID)
	if !containsAll(row, []string{"Rotating", "payments", end(fresh)}) {
		t.Errorf("the list says %q", row)
	}
	entry := r.entryOf("client.rotate", issued.ClientID)
	if entry.Actor != adminEmail || entry.Reason != "once a year" ||
		!strings.Contains(entry.After, "previous_valid_until") {
		t.Errorf("audit log %+v", entry)
	}
	for _, text := range []string{entry.After, page.Raw} {
		if strings.Contains(text, fresh) || strings.Contains(text, issued.Secret) {
			t.Errorf("a secret stands in %.300q", text)
		}
	}
	// The same form again makes no third secret.
	again := b.post(path+"/rotate", values).wantStatus(t, http.StatusSeeOther)
	if again.Location != path || !r.calls(issued.ClientID, fresh) {
		t.Errorf("sent again, it leads to %q", again.Location)
	}
	r.entryOf("client.rotate", issued.ClientID)
	r.ahead.Store(int64(61 * time.Minute))
	if r.calls(issued.ClientID, issued.Secret) || !r.calls(issued.ClientID, fresh) {
		t.Error("after the overlap it is not the new secret alone that works")
	}
	if page := b.get(path); page.text(".headline .chip") != "Active" ||
		page.find(".notice-warn").Length() != 0 {
		t.Errorf("after the overlap: %q", page.text("main"))
	}
}

// TestRevokeLenderClient revokes a client in a rotation's overlap: neither secret works on.
func TestRevokeLenderClient(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	issued, other := r.issueLender(), r.issueLender()
	path := viewpaths.To(viewpaths.LenderClient, issued.ClientID)
	shown, _ := b.fillIn(path+"/rotate", map[string]string{"overlap": "24h"})
	fresh := shown.wantStatus(t, http.StatusOK).text("#secret")
	if !r.calls(issued.ClientID, issued.Secret) || !r.calls(issued.ClientID, fresh) {
		t.Fatal("not both secrets work in the overlap")
	}
	risk := b.get(path + "/revoke").text(".risk")
	if !strings.Contains(risk, "payments still needs it") {
		t.Errorf("the form of one that was just used says %q", risk)
	}
	answer, values := b.fillIn(path+"/revoke", map[string]string{"reason": "the payment run moves"})
	if answer.wantStatus(t, http.StatusSeeOther); answer.Location != path {
		t.Errorf("it leads to %q", answer.Location)
	}
	page := b.get(path).wantStatus(t, http.StatusOK)
	if page.text(".headline .chip") != "Revoked" ||
		!strings.HasPrefix(page.text("main > .notice"), "Revoked.") ||
		!strings.Contains(page.text(".facts"), "Revoked") ||
		page.find("main .page-acts [data-ask]").Length() != 0 ||
		page.find(".notice-warn").Length() != 0 {
		t.Errorf("after revoking: %q", page.text("main"))
	}
	list := b.get(viewpaths.Lender).wantStatus(t, http.StatusOK)
	for id, state := range map[string]string{issued.ClientID: "Revoked", other.ClientID: "Active"} {
		if row := list.text("#c-" + id); !strings.HasPrefix(row, state) {
			t.Errorf("the list says %q, want %s", row, state)
		}
	}
	if r.calls(issued.ClientID, issued.Secret) || r.calls(issued.ClientID, fresh) {
		t.Error("a secret of a revoked client works")
	}
	if !r.calls(other.ClientID, other.Secret) {
		t.Error("the other client of the same name is refused")
	}
	b.post(path+"/revoke", values).wantStatus(t, http.StatusSeeOther)
	entry := r.entryOf("client.revoke", issued.ClientID)
	if entry.Actor != adminEmail || entry.Reason != "the payment run moves" ||
		!strings.Contains(entry.Before, "false") || !strings.Contains(entry.After, "true") {
		t.Errorf("audit log %+v", entry)
	}
	_, values = b.get(path + "/rotate").formValues(t)
	b.post(path+"/rotate", values).wantStatus(t, http.StatusConflict)
}
