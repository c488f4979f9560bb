package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/postgres/pgtest"
	"drawbridge/views/paths"
)

// TestWhatIsNoTextIsRefused calls every route with values that the database cannot store,
// and with duplicate parameters.
func TestWhatIsNoTextIsRefused(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	before := pgtest.Dump(t, r.DB, "sessions", "users")
	check := func(method, path string, form url.Values, says string) {
		got := b.send(method, path, form)
		if got.Status != http.StatusBadRequest || !strings.Contains(got.text("body"), says) {
			t.Errorf("%s %s answers %d %.200q, want 400 for %s", method, path, got.Status,
				got.text("main"), says)
		}
	}
	for _, route := range r.Console.Routes() {
		path := fill(route.Path)
		if route.Method != http.MethodGet {
			if strings.HasPrefix(route.Path, paths.JobConsole) {
				continue // it takes no forms
			}
			for _, value := range []string{"a\x00b", "caf\xe9"} {
				check(route.Method, path, url.Values{
					"token": {uuid.NewString()}, "reason": {value},
				}, "UTF-8 text without NUL")
			}
			continue
		}
		if strings.HasSuffix(path, "/live") {
			continue
		}
		check(route.Method, path+"?q=a%00b", nil, `"q" must be UTF-8 text`)
		check(route.Method, path+"?filter=q%3Da%2500b", nil, `"q" must be UTF-8 text`)
		check(route.Method, path+"?state=%FF", nil, `"state" must be UTF-8 text`)
		if route.Path != paths.JobConsoles {
			check(route.Method, path+"?state=a&state=a", nil, `"state" must be given once`)
		}
	}
	timeline := paths.To(paths.Application, r.application.String())
	b.get(timeline+"?show=events&show=mails").wantStatus(t, http.StatusOK)
	call, err := b.client.Post(r.URL+paths.JobConsole+"/api/jobs/retry", "application/json",
		strings.NewReader("{\"ids\": [\x00]}"))
	r.must(err)
	r.must(call.Body.Close())
	if call.StatusCode != http.StatusBadRequest {
		t.Errorf("a call of the queue library's console with a NUL answers %d", call.StatusCode)
	}
	if changed := pgtest.Dump(t, r.DB, "sessions", "users").Differs(before); len(changed) > 0 {
		t.Errorf("refused forms changed %v", changed)
	}
}

// TestNamesAreNoLinks creates things whose names mails would turn into links.
func TestNamesAreNoLinks(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	page, _ := b.fillIn(paths.ApplicationNew+"?merchant="+r.Merchant.String(),
		map[string]string{
			"requested_amount": "12500.00", "borrower.first_name": "http://x",
			"borrower.last_name": "Www.example.com", "borrower.email": "bo@example.com",
			"project.name": "HTTPS://x",
		})
	page.wantStatus(t, http.StatusBadRequest)
	for _, field := range []string{"borrower.first_name", "borrower.last_name", "project.name"} {
		if got := page.text("[id='ask-" + field + "-fault']"); !strings.Contains(got, "leave out") {
			t.Errorf("%s: %q", field, got)
		}
	}
	page, _ = b.fillIn(changePath(r.application, "task"), map[string]string{"title": "See www.x"})
	if got := page.wantStatus(t, http.StatusBadRequest).text("#ask-title-fault"); got == "" {
		t.Error("the title of a task has no fault")
	}
	person := b.post(paths.PersonNew, url.Values{
		"email": {"x@lender.example"}, "name": {"http://x"}, "role": {"support"},
	}).wantStatus(t, http.StatusBadRequest)
	if got := person.text("#ask-name-fault"); !strings.Contains(got, "leave out") {
		t.Errorf("the name of a user: %q", got)
	}
}
