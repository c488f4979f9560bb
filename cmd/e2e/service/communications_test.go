package service

import (
	"fmt"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drawbridge/cmd/e2e/e2etest"
)

// subjects waits for the expected number of e-mails, and then until none has arrived
// for a while, and returns the sorted subjects of those to one borrower.
func (m *mailServer) subjects(t *testing.T, expected int, to string) []string {
	t.Helper()
	var found []string
	for {
		wait := time.Minute
		if len(found) >= expected {
			wait = 2 * time.Second
		}
		select {
		case text := <-m.mails:
			message, err := mail.ReadMessage(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			recipients, err := message.Header.AddressList("To")
			if err != nil {
				t.Fatal(err)
			}
			if recipients[0].Address == to {
				found = append(found, message.Header.Get("Subject"))
			}
		case <-time.After(wait):
			slices.Sort(found)
			return found
		}
	}
}

// TestCommunicationsFollowTheOffer follows the rows of specification section 3.2
// through the public API and counts the e-mails that reach a real mail server.
func TestCommunicationsFollowTheOffer(t *testing.T) {
	t.Parallel()
	w, m := e2etest.New(t), newMailServer(t)
	w.Env["DRAWBRIDGE_SMTP_URL"] = "smtp://" + m.address
	data := w.DemoData()
	base := w.Serve().URL + "/api/v2"
	const borrower = "nora@borrower.example"
	create := func() string {
		made := e2etest.Send(t, data, http.MethodPost, base+"/application", map[string]any{
			"requested_amount": "25000.00",
			"borrower": map[string]any{
				"first_name": "Nora", "last_name": "Müller, \"N\" 😀", "email": borrower,
			},
			"project": map[string]any{"name": "Roof"},
		})
		return fmt.Sprint(made["thrive_application_uid"])
	}
	mine, sibling := create(), create()
	sandbox := func(uid, what string, body map[string]any) {
		e2etest.Send(t, data, http.MethodPost, base+"/sandbox/application/"+uid+"/"+what, body)
	}
	// Paused: the decision would send a stipulation e-mail, the task a task e-mail.
	for _, uid := range []string{mine, sibling} {
		e2etest.Send(t, data, http.MethodPost, base+"/application/create-run-decision",
			map[string]any{"thrive_application_uid": uid})
		sandbox(uid, "task", map[string]any{"title": "Too early"})
	}
	if got := m.subjects(t, 0, borrower); len(got) != 0 {
		t.Errorf("while paused, these mails arrived: %q", got)
	}
	for range 2 {
		e2etest.Send(t, data, http.MethodPut, base+"/application/accept-offer", map[string]any{
			"thrive_application_uid":  mine,
			"selected_product_uid":    data.Products[0].UID,
			"linked_application_uids": []string{sibling},
		})
	}
	welcome := m.subjects(t, 1, borrower)
	if len(welcome) != 1 || strings.Contains(welcome[0], "Too early") {
		t.Fatalf("accept-offer sent %q, want one welcome", welcome)
	}
	linked := e2etest.Send(t, data, http.MethodGet, base+"/application/"+sibling, nil)
	if linked["status"] != "Closed" {
		t.Errorf("the linked application is %v", linked["status"])
	}
	// Enabled: e-mails for stipulations and tasks arrive, the suppressed ones do not.
	sandbox(mine, "task", map[string]any{"title": "Proof of income"})
	sandbox(mine, "status", map[string]any{"status": "Pend Clearance"})
	later := m.subjects(t, 2, borrower)
	if len(later) != 2 {
		t.Errorf("a task and a stipulation sent %q", later)
	}
	db := w.Open(t)
	e2etest.WaitForMails(t, db) // the server has an e-mail before the sender has its response
	var states []string
	err := db.SelectContext(t.Context(), &states, `
		SELECT kind || ' ' || state
		  FROM emails
		 WHERE application_uid = $1
		 ORDER BY created_at, email_uid`, mine)
	want := []string{
		"stipulation suppressed", "task suppressed", "welcome sent", "task sent", "stipulation sent",
	}
	if diff := cmp.Diff(want, states); err != nil || diff != "" {
		t.Errorf("the e-mail log differs, %v:\n%s", err, diff)
	}
}
