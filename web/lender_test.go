package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/web"
)

// lender is one of the lender's systems.
type lender struct {
	apptest.Account

	s *apptest.Server
}

func newLender(s *apptest.Server, name string, scopes ...partner.Scope) lender {
	return lender{s.NewSystem(name, scopes...), s}
}

func (l lender) call(method, path string, body any) apptest.Call {
	return apptest.Call{Method: method, Path: "/lender/v1" + path, JSON: body, As: &l.Account}
}

func (l lender) get(path string) apptest.Answer {
	l.s.T.Helper()
	return l.s.Do(l.call(http.MethodGet, path, nil))
}

func (l lender) post(path string, body any) apptest.Answer {
	l.s.T.Helper()
	return l.s.Do(l.call(http.MethodPost, path, body))
}

// batch is the path on which many draws are moved.
const batch = "/disbursements/status"

// fillPath replaces a route's path parameters by well-formed values.
func fillPath(path string) string {
	path = strings.TrimPrefix(path, apptest.BasePath)
	return strings.NewReplacer(":uid", uuid.NewString(), ":id", "7").Replace(path)
}

// TestKindsOfClientsStayApart calls every route of either API with the credentials of the
// other: it must answer 404, with and without a merchant.
func TestKindsOfClientsStayApart(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "everything", partner.Scopes()...)
	seen := map[web.Access]int{}
	for _, route := range web.Table(web.Options{
		API: s.API, BasePath: apptest.BasePath, Metrics: http.NotFoundHandler(),
	}) {
		wrong := s.Home
		switch route.Access {
		case web.AccessPartner:
			wrong = system.Account
		case web.AccessLender:
		default:
			continue
		}
		seen[route.Access]++
		for _, header := range []map[string]string{
			nil,
			{"x-service-merchant-uid": s.Home.MerchantUID.String()},
			{"x-service-merchant-uid": "nonsense"},
		} {
			for _, method := range []string{route.Method, http.MethodPatch} {
				answer := s.Do(apptest.Call{
					Method: method, Path: fillPath(route.Path), As: &wrong, Header: header,
					Departs: method != route.Method, // the documents name no other method
				})
				if answer.Status != http.StatusNotFound || answer.Code() != "NOT_FOUND" {
					t.Errorf("%s %s answered the other kind %s", method, route.Path, answer.Raw)
				}
			}
		}
		stranger := s.Do(apptest.Call{
			Method: http.MethodPatch, Path: fillPath(route.Path), Anonymous: true,
		})
		if stranger.Status != http.StatusUnauthorized || stranger.Header.Get("Allow") != "" {
			t.Errorf("PATCH %s answered a stranger %s", route.Path, stranger.Raw)
		}
	}
	// Only clients of a path's own API learn that it does not have the method.
	for path, own := range map[string]apptest.Account{
		"/lender/v1/disbursements/status": system.Account, "/v2/recoveries": s.Home,
	} {
		answer := s.Do(apptest.Call{Method: http.MethodGet, Path: path, As: &own})
		if answer.Status != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != "POST" {
			t.Errorf("GET %s answered its own kind %s", path, answer.Raw)
		}
	}
	if seen[web.AccessPartner] < 20 || seen[web.AccessLender] != 14 {
		t.Errorf("called %v", seen)
	}
}

// TestLenderScopes calls each operation with each single scope: without its own scope the
// operation is refused whatever the path names, and the answer names what is missing.
func TestLenderScopes(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	systems := map[partner.Scope]lender{}
	for _, scope := range partner.Scopes() {
		systems[scope] = newLender(s, string(scope), scope)
	}
	needs := map[string][]partner.Scope{
		"GET /applications":                {partner.ScopeRead},
		"GET /applications/:uid":           {partner.ScopeRead},
		"POST /applications/:uid/status":   {partner.ScopeApplications},
		"POST /applications/:uid/amount":   {partner.ScopeApplications},
		"POST /applications/:uid/terms":    {partner.ScopeApplications},
		"POST /applications/:uid/document": {partner.ScopeDocuments},
		"POST /applications/:uid/tasks":    {partner.ScopeTasks},
		"POST /tasks/:uid/status":          {partner.ScopeTasks},
		"GET /disbursements":               {partner.ScopeRead, partner.ScopeFunding},
		"GET /disbursements/:id":           {partner.ScopeRead, partner.ScopeFunding},
		"GET /files/:uid":                  {partner.ScopeDocuments},
		"POST /disbursements/:id/status":   {partner.ScopeFunding},
		"POST /disbursements/status":       {partner.ScopeFunding},
	}
	for _, route := range s.API.Routes() {
		if !route.IsLender() {
			continue
		}
		name := route.Method + " " + strings.TrimPrefix(route.Path, "/lender/v1")
		wanted, known := needs[name]
		if !known {
			t.Errorf("%s is not in the table", name)
		}
		for scope, system := range systems {
			for _, path := range []string{
				fillPath(route.Path), strings.NewReplacer(":uid", "x", ":id", "x").Replace(route.Path),
			} {
				answer := s.Do(apptest.Call{Method: route.Method, Path: path, As: &system.Account})
				allowed := slices.Contains(wanted, scope)
				if allowed == (answer.Code() == "FORBIDDEN") {
					t.Errorf("%s with the scope %s answered %s", name, scope, answer.Raw)
				}
				if !allowed && !strings.Contains(answer.Message(), string(wanted[0])) {
					t.Errorf("%s does not name the scope: %s", name, answer.Message())
				}
			}
		}
	}
}

// TestLenderClientsCallFromTheirNetworks calls from an address that the client may not use.
func TestLenderClientsCallFromTheirNetworks(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	for from, want := range map[string]int{
		"127.0.0.0/8": http.StatusOK, "127.0.0.1": http.StatusOK, "::ffff:127.0.0.1": http.StatusOK,
		"203.0.113.0/24": http.StatusUnauthorized, "::1": http.StatusUnauthorized,
	} {
		var issued partner.Issued
		s.InTx(func(tx *postgres.Tx) (err error) {
			issued, err = s.Partners.CreateLenderClient(t.Context(), tx, partner.NewLenderClient{
				Name: "office", Scopes: []string{"read"}, From: []string{from},
			})
			return err
		})
		system := lender{apptest.Account{ClientID: issued.ClientID, Secret: issued.Secret}, s}
		answer := system.get("/applications")
		if answer.Status != want {
			t.Errorf("from %s: answered %s", from, answer.Raw)
		}
		if want == http.StatusUnauthorized {
			answer := s.Do(apptest.Call{
				Method: http.MethodGet, Path: "/v2/application", As: &system.Account,
			})
			if answer.Status != want {
				t.Errorf("a partner's path tells that the secret is right: %s", answer.Raw)
			}
		}
	}
}

// TestLenderMovesAnApplication moves an application to its end, and expects each step in
// the whole object, the list by changes, the events and the audit log.
func TestLenderMovesAnApplication(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "servicing", partner.Scopes()...)
	actor := "servicing (" + system.ClientID + ")"
	uid := s.Loan("P404020")
	path := "/applications/" + uid.String()
	before := s.Count(t, `SELECT max(sequence) FROM events WHERE application_uid = $1`, uid)
	mailed := s.Count(t, `SELECT count(*) FROM emails WHERE application_uid = $1`, uid)
	post := func(below string, body map[string]string, status int) apptest.Answer {
		t.Helper()
		answer := system.post(below, body)
		if answer.Status != status {
			t.Fatalf("%s answered %s", below, answer.Raw)
		}
		return answer
	}
	post(path+"/amount", map[string]string{"approved_amount": "9000.00"}, http.StatusOK)
	for range 2 {
		post(path+"/terms", map[string]string{"term": "60"}, http.StatusOK)
	}
	post(path+"/document", map[string]string{"status": "DOCUMENT_SENT"}, http.StatusOK)
	task := post(path+"/tasks", map[string]string{"title": "Proof"}, http.StatusCreated)
	post("/tasks/"+task.Text("task_uid")+"/status", map[string]string{"status": "Completed"},
		http.StatusOK)
	if answer := s.Draw(uid, nil); answer.Status != http.StatusOK {
		t.Fatalf("the draw answered %s", answer.Raw)
	}
	whole := post(path+"/status",
		map[string]string{"status": "Pend Clearance", "reason": "Title is unclear"}, http.StatusOK)
	var shown struct {
		Status string
		Loan   struct {
			Amount        string `json:"loan_amount"`
			Disbursements []struct{ Status string }
		}
		Tasks []struct{ Title, Status string }
		Sent  string `json:"document_status"`
	}
	if err := json.Unmarshal(whole.Result.Data, &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Status != "Pend Clearance" || shown.Loan.Amount != "9000.00" ||
		len(shown.Loan.Disbursements) != 1 || shown.Sent != "DOCUMENT_SENT" ||
		len(shown.Tasks) != 1 || shown.Tasks[0].Status != "Completed" {
		t.Errorf("the application is %s", whole.Raw)
	}
	read := system.get(path)
	if diff := cmp.Diff(whole.Data(), read.Data()); diff != "" {
		t.Errorf("read after the change (-answered +read):\n%s", diff)
	}
	var actions []string
	err := s.DB.SelectContext(t.Context(), &actions, `
		SELECT action || CASE WHEN reason <> '' THEN ': ' || reason ELSE '' END
		  FROM audit_log WHERE actor = $1 ORDER BY entry_id`, actor)
	want := []string{
		"application.amount", "application.terms", "application.document", "task.create",
		"task.status", "application.status: Title is unclear",
	}
	if diff := cmp.Diff(want, actions); diff != "" || err != nil {
		t.Errorf("the audit log has (-want +got) %v:\n%s", err, diff)
	}
	var former string
	err = s.DB.GetContext(t.Context(), &former, `
		SELECT before::jsonb->>'status' FROM audit_log
		 WHERE actor = $1 AND action = 'task.status'`, actor)
	if err != nil || former != "Pending" {
		t.Errorf("the task was %q before (%v)", former, err)
	}
	var recorded []string
	err = s.DB.SelectContext(t.Context(), &recorded, `
		SELECT kind || ' ' || status
		  FROM events
		 WHERE application_uid = $1
		   AND sequence > $2
		 ORDER BY sequence`, uid, before)
	want = []string{
		"application.amount.update Loan Amount Updated", "application.offer.update Terms Updated",
		"document.sent DOCUMENT_SENT", "task.created Pending", "task.updated Completed",
		"disbursement.funding.status-changed FUNDING_REQUESTED",
		"application.status.update Pend Clearance",
	}
	if diff := cmp.Diff(want, recorded); diff != "" || err != nil {
		t.Errorf("the events are (-want +got) %v:\n%s", err, diff)
	}
	var mails []string
	err = s.DB.SelectContext(t.Context(), &mails, `
		SELECT kind FROM emails WHERE application_uid = $1 ORDER BY created_at, kind OFFSET $2`,
		uid, mailed)
	want = []string{"task", "stipulation"}
	if diff := cmp.Diff(want, mails); diff != "" || err != nil {
		t.Errorf("the mails are (-want +got) %v:\n%s", err, diff)
	}
}

// TestLenderFollowsChanges reads pages in the order of the last change; each kind of change
// moves an application to the end.
func TestLenderFollowsChanges(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "origination", partner.Scopes()...)
	uids := []uuid.UUID{s.Loan("P404020"), s.Loan("P404020"), s.Loan("P100")}
	order := func(query string) (found []string) {
		t.Helper()
		cursor := ""
		for {
			answer := system.get("/applications?limit=1" + query + cursor)
			var page struct {
				Applications []struct {
					UID string `json:"thrive_application_uid"`
				}
				Next *string `json:"next_cursor"`
			}
			if err := json.Unmarshal(answer.Result.Data, &page); err != nil || answer.Status != 200 {
				t.Fatalf("answered %s", answer.Raw)
			}
			for _, app := range page.Applications {
				found = append(found, app.UID)
			}
			if page.Next == nil {
				return found
			}
			cursor = "&cursor=" + *page.Next
		}
	}
	last := func(what string, uid uuid.UUID, answer apptest.Answer) {
		t.Helper()
		if answer.Status >= 300 {
			t.Fatalf("%s answered %s", what, answer.Raw)
		}
		found := order("")
		if len(found) != 3 || found[2] != uid.String() {
			t.Errorf("after %s of %s the order is %v", what, uid, found)
		}
	}
	path, other := "/applications/"+uids[0].String(), "/applications/"+uids[1].String()
	for i, change := range []struct {
		below string
		body  map[string]string
	}{
		{"/amount", map[string]string{"approved_amount": "9000.00"}},
		{"/terms", map[string]string{"term": "60"}},
		{"/document", map[string]string{"status": "DOCUMENT_SENT"}},
		{"/status", map[string]string{"status": "Pend Clearance"}},
		{"/status", map[string]string{"status": "Approved"}},
	} {
		last(change.below, uids[0], system.post(path+change.below, change.body))
		last(fmt.Sprint("another amount ", i), uids[1], system.post(other+"/amount",
			map[string]string{"approved_amount": fmt.Sprintf("%d.00", 9000-i)}))
	}
	task := system.post(path+"/tasks", map[string]string{"title": "A"})
	last("a task", uids[0], task)
	draw := s.Draw(uids[1], nil)
	last("a draw", uids[1], draw)
	last("a task's end", uids[0], system.post(
		"/tasks/"+task.Text("task_uid")+"/status", map[string]string{"status": "cancelled"}))
	last("money", uids[1], system.post(
		fmt.Sprintf("/disbursements/%v/status", draw.Data()["merchantDisbursementId"]),
		map[string]string{"status": "FUNDING_PROCESSING"}))
	last("a certificate", uids[2], s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/loan/" + uids[2].String() + "/completion-cert-upload",
		Files: map[string][]byte{"a.pdf": apptest.PDF()},
	}))
	whole := system.get("/applications/" + uids[2].String())
	since := whole.Text("updated_at")
	if found := order("&updated_since=" + since); len(found) != 1 || found[0] != uids[2].String() {
		t.Errorf("since %s there are %v", since, found)
	}
	if found := order("&status=Declined"); len(found) != 0 {
		t.Errorf("declined are %v", found)
	}
	if found := order("&merchant_uid=" + s.Home.MerchantUID.String()); len(found) != 3 {
		t.Errorf("of the merchant are %v", found)
	}
	for _, nobody := range []string{uuid.NewString(), uuid.Nil.String()} {
		if found := order("&merchant_uid=" + nobody); len(found) != 0 {
			t.Errorf("of nobody are %v", found)
		}
		draws := system.get("/disbursements?merchant_uid=" + nobody)
		if found, _ := draws.Data()["disbursements"].([]any); draws.Status != 200 || len(found) != 0 {
			t.Errorf("draws of nobody: %s", draws.Raw)
		}
	}
}

// TestPageOfManyCertificates lists loans whose certificates would make a full page too
// large to answer: the page ends early, and the next one continues.
func TestPageOfManyCertificates(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "origination", partner.ScopeRead)
	var want, found []any
	for _, certificates := range []int{500, 1, 499, 0, 501, 0} {
		uid := s.Loan("P404020")
		want = append(want, uid.String())
		s.Exec(t, `
			INSERT INTO certificates (certificate_uid, application_uid, metadata, created_at)
			SELECT gen_random_uuid(), $1, '{"inspector": "A"}', now() FROM generate_series(1, $2)`,
			uid, certificates)
	}
	var pages []int
	for cursor := ""; ; {
		page := system.get("/applications?limit=3" + cursor).Data()
		listed, _ := page["applications"].([]any)
		for _, app := range listed {
			found = append(found, app.(map[string]any)["thrive_application_uid"])
		}
		pages = append(pages, len(listed))
		next, more := page["next_cursor"].(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("the pages hold (-want +got):\n%s", diff)
	}
	if !slices.Equal(pages, []int{1, 3, 1, 1}) {
		t.Errorf("the pages hold %v applications", pages)
	}
}

// TestLenderFileIsAttached downloads a certificate's file, which the audit log records.
func TestLenderFileIsAttached(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "papers", partner.ScopeDocuments)
	uid := s.Loan("P404020")
	stored := s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/loan/" + uid.String() + "/completion-cert-upload",
		Files: map[string][]byte{"a.pdf": apptest.PDF()},
	})
	var certificate struct {
		Files []struct {
			UID string `json:"file_uid"`
		}
	}
	if err := json.Unmarshal(stored.Result.Data, &certificate); err != nil {
		t.Fatal(err)
	}
	path := "/files/" + certificate.Files[0].UID
	body, header := s.Download(system.call(http.MethodGet, path, nil))
	if !bytes.Equal(body, apptest.PDF()) || header.Get("Content-Type") != "application/pdf" ||
		!strings.HasPrefix(header.Get("Content-Disposition"), "attachment") {
		t.Errorf("got %q under %v", body, header)
	}
	var noted int
	err := s.DB.GetContext(t.Context(), &noted, `
		SELECT count(*) FROM audit_log
		 WHERE action = 'document.download' AND subject = $1 AND actor LIKE 'papers (%'`, uid)
	if err != nil || noted != 1 {
		t.Errorf("the audit log has %d downloads, %v", noted, err)
	}
	if answer := system.get("/files/" + uuid.NewString()); answer.Status != 404 {
		t.Errorf("another file answered %s", answer.Raw)
	}
}

// TestTwoPayersClaimOneDraw lets workers claim the same draw at once, each with its own
// reference: only one may pay.
func TestTwoPayersClaimOneDraw(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "payments", partner.ScopeFunding)
	uid := s.Loan("P404020")
	id := fmt.Sprint(s.Draw(uid, nil).Data()["merchantDisbursementId"])
	path := "/disbursements/" + id + "/status"
	var workers sync.WaitGroup
	answers := make([]apptest.Answer, 8)
	for i := range answers {
		workers.Go(func() {
			var err error
			answers[i], err = s.Try(system.call(http.MethodPost, path, map[string]string{
				"status": "FUNDING_PROCESSING", "reference": fmt.Sprint("worker-", i),
			}))
			if err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	won := 0
	for _, answer := range answers {
		switch {
		case answer.Status == http.StatusOK && answer.Data()["changed"] == true:
			won++
		case answer.Code() != "INVALID_STATE":
			t.Errorf("answered %s", answer.Raw)
		}
	}
	events := 0
	for _, event := range s.Events(uid) {
		if strings.Contains(event, "FUNDING_PROCESSING") {
			events++
		}
	}
	if won != 1 || events != 1 {
		t.Errorf("%d won, %d events", won, events)
	}
	same := system.post(path, map[string]string{"status": "FUNDING_PROCESSING"})
	if same.Status != http.StatusOK || same.Data()["changed"] != false {
		t.Errorf("a repeat answered %s", same.Raw)
	}
	bare := system.post(path, map[string]string{"status": "CANCELLED"})
	if bare.Code() != "VALIDATION_ERROR" || !slices.Contains(bare.Fields(), "reason") {
		t.Errorf("without a reason it answered %s", bare.Raw)
	}
}

// TestBatchSettles moves the maximum number of draws, and again: nothing changes.
func TestBatchSettles(t *testing.T) {
	t.Parallel()
	// On a busy machine the race detector needs longer than the request timeout.
	s := apptest.NewServer(t, "DRAWBRIDGE_DATABASE_TIMEOUT", "1m").Furnish()
	system := newLender(s, "payments", partner.ScopeFunding)
	s.SubscribeHome()
	const count = 500
	changes := draws(s, count)
	call := system.call(http.MethodPost, batch, map[string]any{"changes": changes})
	call.Header = map[string]string{"Idempotency-Key": "run"}
	first := s.Do(call)
	results := batchResults(t, first)
	if len(results) != count {
		t.Fatalf("answered %.400s", first.Raw)
	}
	for i, r := range results {
		id := changes[i]["merchantDisbursementId"]
		if !r.Changed || r.Status != http.StatusOK || r.Error != nil || *r.ID != id {
			t.Fatalf("the result of %v is %+v", changes[i], r)
		}
	}
	if repeated := s.Do(call); !bytes.Equal(repeated.Raw, first.Raw) {
		t.Error("the key was not replayed as a whole")
	}
	call.Header = nil
	for i, r := range batchResults(t, s.Do(call)) {
		id := changes[i]["merchantDisbursementId"]
		if r.Changed || r.Status != http.StatusOK || *r.ID != id {
			t.Fatalf("the repeat of %v is %+v", changes[i], r)
		}
	}
	for what, query := range map[string]string{
		"events": `
			SELECT count(DISTINCT (application_uid, subject)) + count(*) FROM events
			 WHERE kind = 'disbursement.funding.status-changed' AND status = 'FUNDING_PROCESSING'`,
		"deliveries": `
			SELECT count(DISTINCT event_uid) + count(*) FROM deliveries
			 WHERE event = 'disbursement.funding.status-changed' AND status = 'FUNDING_PROCESSING'`,
		"entries of the audit log": `
			SELECT count(DISTINCT subject) + count(*) FROM audit_log WHERE actor LIKE 'payments (%'`,
		"changes": `
			SELECT count(DISTINCT merchant_disbursement_id) + count(*) FROM disbursement_changes`,
	} {
		if each := s.Count(t, query); each != 2*count {
			t.Errorf("%g %s of each draw", float64(each)/(2*count), what)
		}
	}
}

// TestBatchIsMadeWholeOrNotAtAll ends the database session in the middle of a batch, as a
// crash would: nothing is kept, and repeating the request makes the whole batch.
func TestBatchIsMadeWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "payments", partner.ScopeFunding)
	const count, lock = 6, 4711
	changes := draws(s, count)
	s.Exec(t, fmt.Sprintf(`
		CREATE FUNCTION stop_here() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM pg_advisory_xact_lock(%d);
			RETURN NEW;
		END $$`, lock))
	s.Exec(t, fmt.Sprintf(`
		CREATE TRIGGER stop_here BEFORE INSERT ON disbursement_changes FOR EACH ROW
		WHEN (NEW.merchant_disbursement_id = %v AND NEW.status = 'FUNDING_PROCESSING')
		EXECUTE FUNCTION stop_here()`, changes[count/2]["merchantDisbursementId"]))
	call := system.call(http.MethodPost, batch, map[string]any{"changes": changes})
	call.Header = map[string]string{"Idempotency-Key": "run"}
	moved := func() int {
		return s.Count(t, `SELECT count(*) FROM events WHERE status = 'FUNDING_PROCESSING'`) +
			s.Count(t, `SELECT count(*) FROM disbursement_changes WHERE status = 'FUNDING_PROCESSING'`)
	}
	s.Harness.Do(t, func(_ context.Context, tx *postgres.Tx) error {
		if _, err := tx.Exec(`SELECT pg_advisory_xact_lock($1)`, lock); err != nil {
			return err
		}
		answered := make(chan apptest.Answer, 1)
		go func() {
			answer, err := s.Try(call)
			if err != nil {
				t.Error(err)
			}
			answered <- answer
		}()
		for ended := 0; ended == 0 && len(answered) == 0; {
			ended = s.Count(t, `
				SELECT count(pg_terminate_backend(pid))
				  FROM pg_locks
				 WHERE locktype = 'advisory'
				   AND objid = $1
				   AND NOT granted
				   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
				lock)
		}
		if answer := <-answered; answer.Status < 500 {
			t.Errorf("a call whose session ended answered %s", answer.Raw)
		}
		return nil
	})
	if found := moved(); found != 0 {
		t.Errorf("after half a batch %d rows stand", found)
	}
	s.Exec(t, `DROP TRIGGER stop_here ON disbursement_changes`)
	for _, r := range batchResults(t, s.Do(call)) {
		if !r.Changed {
			t.Errorf("made again, of the batch: %+v", r)
		}
	}
	if found := moved(); found != 2*count {
		t.Errorf("%d rows stand in the end, want %d", found, 2*count)
	}
}

// TestTwoSystemsSettleTheSameDraws settles draws from two systems at once, half of them by
// batches in opposite order: each draw is settled once, and no request fails.
func TestTwoSystemsSettleTheSameDraws(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	systems := []lender{
		newLender(s, "payments", partner.ScopeFunding), newLender(s, "ledger", partner.ScopeFunding),
	}
	changes := draws(s, 12)
	batchResults(t, systems[0].post(batch, map[string]any{"changes": changes}))
	single, together := changes[:6], changes[6:]
	for _, change := range changes {
		change["status"], change["effective_date"] = "FUNDING_SETTLED", "2026-11-23"
	}
	type sent struct {
		id     any // nil for a batch
		answer apptest.Answer
	}
	answers := make(chan sent, 2*len(changes))
	var workers sync.WaitGroup
	send := func(id any, call apptest.Call) {
		workers.Go(func() {
			answer, err := s.Try(call)
			if err != nil {
				t.Error(err)
			}
			answers <- sent{id, answer}
		})
	}
	for i, system := range systems {
		for _, change := range single {
			one := maps.Clone(change)
			delete(one, "merchantDisbursementId")
			id := change["merchantDisbursementId"]
			send(id, system.call(http.MethodPost, fmt.Sprintf("/disbursements/%v/status", id), one))
		}
		ordered := slices.Clone(together)
		if i > 0 {
			slices.Reverse(ordered)
		}
		send(nil, system.call(http.MethodPost, batch, map[string]any{"changes": ordered}))
	}
	workers.Wait()
	close(answers)
	won := make(map[string]int)
	for sent := range answers {
		if sent.id != nil {
			if sent.answer.Status != http.StatusOK {
				t.Errorf("draw %v answered %s", sent.id, sent.answer.Raw)
			} else if sent.answer.Data()["changed"] == true {
				won[fmt.Sprint(sent.id)]++
			}
			continue
		}
		for _, r := range batchResults(t, sent.answer) {
			if r.Status != http.StatusOK {
				t.Errorf("of a batch: %+v", r)
			} else if r.Changed {
				won[fmt.Sprint(*r.ID)]++
			}
		}
	}
	for _, change := range changes {
		id := fmt.Sprint(change["merchantDisbursementId"])
		for what, found := range map[string]int{
			"times that it was changed": won[id],
			"events that it is settled": s.Count(t, `
				SELECT count(*) FROM events
				 WHERE status = 'FUNDING_SETTLED'
				   AND application_uid = (SELECT application_uid FROM disbursements
				                           WHERE merchant_disbursement_id = $1)`, id),
			"changes that are kept": s.Count(t, `
				SELECT count(*) FROM disbursement_changes
				 WHERE merchant_disbursement_id = $1 AND status = 'FUNDING_SETTLED'`, id),
			"entries of the audit log": s.Count(t, `
				SELECT count(*) FROM audit_log
				 WHERE action = 'draw.status' AND after ->> 'merchant_disbursement_id' = $1
				   AND after ->> 'status' = 'FUNDING_SETTLED'`, id),
		} {
			if found != 1 {
				t.Errorf("draw %s: %d %s", id, found, what)
			}
		}
	}
}

// draws requests draws, and returns the changes that start their funding.
func draws(s *apptest.Server, count int) []map[string]any {
	home := *s.Harness
	home.Partner, home.Merchant = s.Home.PartnerUID, s.Home.MerchantUID
	product := home.NewProduct(s.T, "B"+uuid.NewString()[:8], "40,40,20")
	changes := make([]map[string]any, 0, count)
	for range count {
		draw := home.Draw(s.T, home.Loan(s.T, product).UID, loan.DrawInput{})
		changes = append(changes, map[string]any{
			"merchantDisbursementId": draw.ID,
			"status":                 "FUNDING_PROCESSING", "reference": "run 1", "method": "ach",
			"effective_date": "2026-11-21",
		})
	}
	return changes
}

type result struct {
	ID      *int64 `json:"merchantDisbursementId"`
	Status  int    `json:"statusCode"`
	Changed bool   `json:"changed"`
	Error   *struct {
		Code, Message string
	} `json:"error"`
}

func batchResults(t *testing.T, answer apptest.Answer) []result {
	t.Helper()
	var data struct{ Results []result }
	err := json.Unmarshal(answer.Result.Data, &data)
	if err != nil || answer.Status != http.StatusOK {
		t.Fatalf("answered %s", answer.Raw)
	}
	return data.Results
}

// TestBatchNamesWhatIsGivenTwice sends duplicate names together with more wrong entries
// than an answer names: the whole batch is refused, whatever is wrong within it.
func TestBatchNamesWhatIsGivenTwice(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "payments", partner.ScopeFunding)
	change, err := json.Marshal(draws(s, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Repeat(`{"a":"\u0000","b":1,"b":1},`, 25)
	good := "[" + string(change) + "]"
	for body, field := range map[string]string{
		`{"changes":[` + wrong + string(change) + `],"changes":` + good + `}`:         "changes",
		`{"changes":[` + wrong + string(change) + `],"x":{"y":1,"y":1}}`:              "x.y",
		`{"":{"changes":[{"y":1,"y":1}]},"changes":[` + wrong + string(change) + `]}`: "changes[0].y",
		`{"changes[0]":1,"changes[0]":1,"changes":` + good + `}`:                      "changes[0]",
	} {
		answer := system.post(batch, body)
		if answer.Code() != "VALIDATION_ERROR" || !slices.Equal(answer.Fields(), []string{field}) {
			t.Errorf("%s answered %s", field, answer.Raw)
		}
	}
	alone := system.call(http.MethodPost, batch, `{"changes":[`+wrong+string(change)+`]}`)
	alone.Departs = true
	results := batchResults(t, s.Do(alone))
	if len(results) != 26 || !results[25].Changed || results[0].Status != http.StatusBadRequest {
		t.Errorf("the entries answered %+v", results)
	}
}

// TestBatchRefusesAlone mixes valid and invalid changes: each invalid one fails alone.
func TestBatchRefusesAlone(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "payments", partner.ScopeFunding)
	uid := s.Loan("P404020")
	id := int64(s.Draw(uid, nil).Data()["merchantDisbursementId"].(float64))
	body := fmt.Sprintf(`{"changes": [
		{"merchantDisbursementId": %[1]d, "status": "FUNDING_PROCESSING"},
		{"merchantDisbursementId": %[1]d, "status": "RETURNED", "reason": "too early"},
		{"merchantDisbursementId": 999999, "status": "FUNDING_SETTLED"},
		{"merchantDisbursementId": %[1]d, "status": "PAID"},
		{"merchantDisbursementId": "%[1]d", "status": "FUNDING_SETTLED"},
		{"status": "FUNDING_SETTLED"},
		{"merchantDisbursementId": %[1]d, "status": "FUNDING_SETTLED", "reference": "a\u0000b"},
		7,
		{"merchantDisbursementId": %[1]d, "status": "FUNDING_SETTLED", "status": "CANCELLED"},
		{"merchantDisbursementId": %[1]d, "status": "FUNDING_SETTLED", "method": "ach"},
		{"merchantDisbursementId": %[1]d, "status": "FUNDING_SETTLED", "method": "wire"}
	]}`, id)
	call := system.call(http.MethodPost, batch, body)
	call.Departs, call.Header = true, map[string]string{"Idempotency-Key": "run"}
	first := s.Do(call)
	var got []string
	for _, r := range batchResults(t, first) {
		line := fmt.Sprint(r.Status, r.Changed, r.ID != nil)
		if r.Error != nil {
			line += " " + r.Error.Code
		}
		got = append(got, line)
	}
	want := []string{
		"200 true true", "409 false true INVALID_STATE", "404 false true NOT_FOUND",
		"400 false true VALIDATION_ERROR", "400 false false VALIDATION_ERROR",
		"400 false false VALIDATION_ERROR", "400 false true VALIDATION_ERROR",
		"400 false false VALIDATION_ERROR", "400 false true VALIDATION_ERROR",
		"200 true true", "409 false true INVALID_STATE",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// By now the change that was too early would succeed: the replay must not make it.
	again := s.Do(call)
	if !bytes.Equal(again.Raw, first.Raw) || first.Header.Get("Idempotency-Replayed") != "" ||
		again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the key was not replayed as a whole: %s", again.Raw)
	}
	events := s.Events(uid)
	if len(events) < 3 || !strings.HasSuffix(events[len(events)-1], " FUNDING_SETTLED") {
		t.Errorf("the events are %v", events)
	}
	late := system.post(fmt.Sprintf("/disbursements/%d/status", id),
		map[string]string{"status": "RETURNED", "reason": "too early"})
	if late.Data()["changed"] != true {
		t.Errorf("in a call of its own the return answered %s", late.Raw)
	}
	for _, wrong := range []string{
		`{}`, `{"changes": null}`, `{"changes": []}`, `{"changes": {}}`,
		`{"changes": [` + strings.Repeat("1,", 500) + `1]}`,
	} {
		answer := system.post(batch, wrong)
		if answer.Status != http.StatusBadRequest || !slices.Contains(answer.Fields(), "changes") {
			t.Errorf("%.40s answered %s", wrong, answer.Raw)
		}
	}
	long := `{"changes": [` + strings.Repeat(" ", 3<<20) +
		`{"merchantDisbursementId": 1, "status": "CANCELLED", "reason": "x"}]}`
	if answer := system.post(batch, long); answer.Status != http.StatusOK {
		t.Errorf("3 MiB answered %d", answer.Status)
	}
	longer := `{"changes": [` + strings.Repeat(" ", 4<<20) + `]}`
	if answer := system.post(batch, longer); answer.Code() != string(lending.CodePayloadTooLarge) {
		t.Errorf("more than 4 MiB answered %d", answer.Status)
	}
}

// TestWorkList reads the waiting draws, oldest first.
func TestWorkList(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "payments", partner.ScopeFunding)
	var ids []string
	for range 5 {
		ids = append(ids, fmt.Sprint(s.Draw(s.Loan("P404020"), nil).Data()["merchantDisbursementId"]))
	}
	list := func(query string) (found []string) {
		t.Helper()
		cursor := ""
		for {
			answer := system.get("/disbursements?limit=2" + query + cursor)
			var page struct {
				Disbursements []struct {
					ID int64 `json:"merchantDisbursementId"`
				}
				Next *string `json:"next_cursor"`
			}
			if err := json.Unmarshal(answer.Result.Data, &page); err != nil || answer.Status != 200 {
				t.Fatalf("answered %s", answer.Raw)
			}
			for _, draw := range page.Disbursements {
				found = append(found, fmt.Sprint(draw.ID))
			}
			if page.Next == nil {
				return found
			}
			cursor = "&cursor=" + *page.Next
		}
	}
	if diff := cmp.Diff(ids, list("&status=FUNDING_REQUESTED")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	third := system.get("/disbursements/" + ids[2])
	if diff := cmp.Diff(ids[:2], list("&requested_before="+third.Text("requestedAt"))); diff != "" {
		t.Errorf("before the third (-want +got):\n%s", diff)
	}
	if found := list("&status=CANCELLED"); len(found) != 0 {
		t.Errorf("cancelled are %v", found)
	}
	wrong := system.get(
		"/disbursements?status=x&merchant_uid=y&requested_before=z&limit=501&cursor=q")
	if len(wrong.Fields()) != 5 {
		t.Errorf("wrong parameters are named as %v", wrong.Fields())
	}
}
