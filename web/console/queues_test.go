package console_test

import (
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"drawbridge/views/paths"
)

// riverConsole stands for River's own console: it echoes the request.
func (r *harness) riverConsole(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.Errorf("reading a call: %v", err)
	}
	_, _ = w.Write([]byte(q.Method + " " + q.URL.Path + " " + string(body)))
}

// addJob adds a job of deliveries in a state.
func (r *harness) addJob(state string) {
	r.Helper()
	r.exec(`
		INSERT INTO river_job (kind, queue, state, args, max_attempts, attempt, finalized_at)
		VALUES ('deliver', 'webhook', $1, '{}', 3, 1,
		        CASE WHEN $1::river_job_state = 'discarded' THEN now() END)`, state)
}

func TestQueues(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for _, state := range []string{"available", "available", "retryable", "discarded"} {
		r.addJob(state)
	}
	page := r.signedIn().get(paths.Queues).wantStatus(t, http.StatusOK)
	row := page.text("tr#queue-webhook")
	if !strings.HasPrefix(row, "No worker Deliveries") ||
		!strings.Contains(row, "due 2 running 0 retrying 1 later 0 given up 1") {
		t.Errorf("the queue is shown as %q", row)
	}
	if page.find("main form").Length() != 0 || page.find("main a").Length() != 0 {
		t.Error("support is offered changes, or led to the job console")
	}
	href, _ := r.admin().get(paths.Queues).find("tr#queue-webhook td:nth-child(7) a").Attr("href")
	if want := paths.JobConsole + "/jobs?queue=webhook&state=discarded"; href != want {
		t.Errorf("the jobs that were given up are at %q, want %q", href, want)
	}
}

func TestQueuesArePausedAndResumed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.admin()
	b.post(paths.To(paths.QueueAct, "webhook", "pause"), nil).wantStatus(t, http.StatusNotFound)
	r.exec(`INSERT INTO river_queue (name, created_at, updated_at)
		VALUES ('webhook', now(), now())`)
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

// TestTheEmbeddedConsoleIsGuarded checks that River's own console is for admins, checks the
// origin of changes and writes them to the audit log.
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
