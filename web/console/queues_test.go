package console_test

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/views/paths"
)

// riverConsole stands for the queue library's console: it says what it was asked.
func (r *harness) riverConsole(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.Errorf("reading a call: %v", err)
	}
	_, _ = w.Write([]byte(q.Method + " " + q.URL.Path + " " + string(body)))
}

// addJob adds a job in a state and returns its id.
func (r *harness) addJob(queue, state string) int64 {
	r.Helper()
	finalized := "NULL"
	if state == "discarded" || state == "cancelled" {
		finalized = "now()"
	}
	var id int64
	r.must(r.DB.GetContext(r.Context(), &id, `
		INSERT INTO river_job (kind, queue, state, args, max_attempts, attempt, finalized_at, errors)
		VALUES ('deliver', $1, $2, '{"delivery_uid": "`+uuid.NewString()+`"}', 3, 1, `+finalized+`,
		        ARRAY[jsonb_build_object('at', now(), 'attempt', 1, 'error', 'planted <b>cause</b>',
		                                 'trace', '')])
		RETURNING id`, queue, state))
	return id
}

func TestQueues(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for _, state := range []string{"available", "available", "retryable", "discarded"} {
		r.addJob("webhook", state)
	}
	page := r.signedIn().get(paths.Queues).wantStatus(t, http.StatusOK)
	row := page.text("tr#queue-webhook")
	if !strings.HasPrefix(row, "No worker Deliveries") || !strings.Contains(row, "2 0 1 0 1") {
		t.Errorf("the queue is shown as %q", row)
	}
	if page.find("main form").Length() != 0 {
		t.Error("support is offered changes")
	}
}

func TestQueuesArePausedAndResumed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	b.post(paths.To(paths.QueueAct, "webhook", "pause"), nil).wantStatus(t, http.StatusNotFound)
	_, err := r.DB.ExecContext(r.Context(), `INSERT INTO river_queue (name, created_at, updated_at)
		VALUES ('webhook', now(), now())`)
	r.must(err)
	paused := func() bool {
		var is bool
		r.must(r.DB.Get(&is, `SELECT paused_at IS NOT NULL FROM river_queue WHERE name = 'webhook'`))
		return is
	}
	for _, act := range []string{"pause", "resume"} {
		action, there := b.get(paths.Queues).find("tr#queue-webhook form").Attr("action")
		if !there || !strings.HasSuffix(action, "/"+act) {
			t.Fatalf("the page offers %q, want to %s", action, act)
		}
		b.post(action, nil).wantStatus(t, http.StatusSeeOther)
		if paused() != (act == "pause") || r.audits("queue."+act) != 1 {
			t.Errorf("%s: paused = %v, %d audit entries", act, paused(), r.audits("queue."+act))
		}
	}
	b.post(paths.To(paths.QueueAct, "*", "pause"), nil).wantStatus(t, http.StatusNotFound)
	b.post(paths.To(paths.QueueAct, "webhook", "empty"), nil).wantStatus(t, http.StatusNotFound)
	if paused() || r.audits("queue.empty") != 0 {
		t.Error("a refused change changed something")
	}
}

func TestJobsAreRetriedAndCancelled(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	failed, waiting := r.addJob("email", "discarded"), r.addJob("email", "available")
	list := b.get(paths.JobsOf("discarded", "email")).wantStatus(t, http.StatusOK)
	if got := list.find("tr[id^=job-]").Length(); got != 1 {
		t.Fatalf("%d jobs were given up, want 1", got)
	}
	page := b.get(paths.ToID(paths.Job, failed)).wantStatus(t, http.StatusOK)
	if !strings.Contains(page.text("main"), "planted <b>cause</b>") {
		t.Error("the page does not show the error")
	}
	about := page.find(`[aria-labelledby=args-title] a[href^="` + paths.Deliveries + `/"]`)
	if got := about.Text(); got != "The delivery" {
		t.Errorf("the link to what the job delivers reads %q", got)
	}
	if got := page.text("main aside"); !strings.HasPrefix(got, "Kind deliver Queue E-mails") {
		t.Errorf("the facts are %q", got)
	}
	state := func(id int64) (state string) {
		r.must(r.DB.Get(&state, `SELECT state FROM river_job WHERE id = $1`, id))
		return state
	}
	retry, cancel := paths.ToID(paths.Job, failed)+"/retry", paths.ToID(paths.Job, waiting)+"/cancel"
	b.post(retry, nil).wantStatus(t, http.StatusSeeOther)
	b.post(cancel, nil).wantStatus(t, http.StatusSeeOther)
	if state(failed) != "available" || state(waiting) != "cancelled" {
		t.Errorf("the jobs are %s and %s", state(failed), state(waiting))
	}
	b.post(retry, nil).wantStatus(t, http.StatusConflict)
	b.post(cancel, nil).wantStatus(t, http.StatusConflict)
	if r.audits("job.retry") != 1 || r.audits("job.cancel") != 1 {
		t.Error("the audit log does not tell of exactly what was done")
	}
	for _, path := range []string{paths.ToID(paths.Job, 1<<40), paths.Jobs + "/x"} {
		b.get(path).wantStatus(t, http.StatusNotFound)
	}
	for _, wrong := range []string{"?state=asleep", "?cursor=x"} {
		b.get(paths.Jobs+wrong).wantStatus(t, http.StatusBadRequest)
	}
}

func TestJobsByPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	for range 55 {
		r.addJob("webhook", "discarded")
	}
	path, seen := paths.JobsOf("discarded", "webhook"), map[string]bool{}
	for path != "" {
		page := b.get(path).wantStatus(t, http.StatusOK)
		for _, row := range page.find("tr[id^=job-]").EachIter() {
			id, _ := row.Attr("id")
			seen[id] = true
		}
		path, _ = page.find("a[rel=next]").Attr("href")
	}
	if len(seen) != 55 {
		t.Errorf("the pages list %d jobs, want 55", len(seen))
	}
}

// TestTheEmbeddedConsoleIsGuarded holds that the queue library's own console is
// for admins, checks the origin of changes and leaves them in the audit log.
func TestTheEmbeddedConsoleIsGuarded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	sam, b := r.signedIn(), r.admin()
	const call = paths.JobConsole + "/api/jobs/retry"
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete,
	} {
		sam.send(method, call, url.Values{}).wantStatus(t, http.StatusForbidden)
	}
	page := b.get(paths.JobConsole+"/").wantStatus(t, http.StatusOK)
	if page.Raw != "GET "+paths.JobConsole+"/ " {
		t.Errorf("it was asked %q", page.Raw)
	}
	policy := page.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "style-src 'self' 'unsafe-inline'") ||
		strings.Contains(strings.Replace(policy, "'unsafe-inline'", "", 1), "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
	if r.audits("river.call") != 0 {
		t.Error("looking is in the audit log")
	}
	b.header.Set("Origin", "https://planted.example")
	b.send(http.MethodPut, call, nil).wantStatus(t, http.StatusForbidden)
	b.header.Set("Origin", r.URL)
	b.header.Set("Content-Type", "application/json")
	done := b.send(http.MethodPut, call, url.Values{"ids": {strconv.Itoa(7)}})
	if !strings.HasSuffix(done.Raw, "ids=7") || r.audits("river.call") != 1 {
		t.Errorf("a call arrived as %q, %d audit entries", done.Raw, r.audits("river.call"))
	}
}
