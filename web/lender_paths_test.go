package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/partner"
)

// TestLenderMerchantHeaderIsIgnored sends the partners' merchant header, which has no effect here.
func TestLenderMerchantHeaderIsIgnored(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "servicing", partner.Scopes()...)
	uid := s.Loan("P404020").String()
	id := fmt.Sprint(apptest.DisbursementID(s.Draw(uuid.MustParse(uid), nil)))
	claim := map[string]any{"status": "FUNDING_PROCESSING", "reference": "run 1"}
	task := system.call(http.MethodPost, "/applications/"+uid+"/tasks",
		map[string]string{"title": "Proof of income"})
	task.Header = map[string]string{"Idempotency-Key": "task"}
	added := s.Do(task)
	done := map[string]string{"status": "Completed"}
	system.post("/tasks/"+added.Text("task_uid")+"/status", done)
	system.post("/disbursements/"+id+"/status", claim)
	merchants := []string{
		s.Home.MerchantUID.String(), s.NewAccount("Other").MerchantUID.String(), uuid.NewString(),
		"nonsense",
	}
	for _, call := range []apptest.Call{
		system.call(http.MethodGet, "/applications", nil),
		system.call(http.MethodGet, "/applications/"+uid, nil),
		system.call(http.MethodGet, "/disbursements", nil),
		system.call(http.MethodGet, "/disbursements/"+id, nil),
		system.call(http.MethodPost, "/applications/"+uid+"/status",
			map[string]string{"status": "Approved"}),
		system.call(http.MethodPost, "/tasks/"+added.Text("task_uid")+"/status", done),
		system.call(http.MethodPost, "/disbursements/"+id+"/status", claim),
		system.call(http.MethodPost, batch, fmt.Sprintf(`{"changes": [{
			"merchantDisbursementId": %s, "status": "FUNDING_PROCESSING"}]}`, id)),
	} {
		plain := s.Do(call)
		for _, merchant := range merchants {
			call.Header = map[string]string{"x-service-merchant-uid": merchant}
			answer := s.Do(call)
			if answer.Status != http.StatusOK || !bytes.Equal(answer.Result.Data, plain.Result.Data) {
				t.Errorf("%s %s for the merchant %s answered %s, else %s",
					call.Method, call.Path, merchant, answer.Raw, plain.Raw)
			}
		}
	}
	// A key belongs to the system, whatever merchant the repeated request names.
	for _, merchant := range merchants {
		task.Header["x-service-merchant-uid"] = merchant
		if again := s.Do(task); !bytes.Equal(again.Raw, added.Raw) {
			t.Errorf("under the key of %s, for the merchant %s: %s", added.Raw, merchant, again.Raw)
		}
	}
}

// lenderPage is a page of either of the lender's lists.
type lenderPage struct {
	Applications []struct {
		UID string `json:"thrive_application_uid"`
	} `json:"applications"`
	Disbursements []struct {
		ID int64 `json:"merchantDisbursementId"`
	} `json:"disbursements"`
	Next *string `json:"next_cursor"`
}

// names returns the uids or numbers of the page's entries.
func (p lenderPage) names() (names []string) {
	for _, app := range p.Applications {
		names = append(names, app.UID)
	}
	for _, draw := range p.Disbursements {
		names = append(names, fmt.Sprint(draw.ID))
	}
	return names
}

// pages reads a list to its end. The path must already have a query.
func (l lender) pages(path string) (all []lenderPage) {
	l.s.T.Helper()
	cursor := ""
	for {
		answer := l.get(path + cursor)
		var page lenderPage
		err := json.Unmarshal(answer.Result.Data, &page)
		if err != nil || answer.Status != http.StatusOK {
			l.s.T.Fatalf("%s answered %s", path, answer.Raw)
		}
		if all = append(all, page); page.Next == nil {
			return all
		}
		cursor = "&cursor=" + *page.Next
	}
}

// TestWorkListOfOneMerchant reads the draws of each merchant, which alternate.
func TestWorkListOfOneMerchant(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "payments", partner.ScopeFunding)
	other := *s
	other.Home = s.NewAccount("Other")
	want := map[uuid.UUID][]string{uuid.New(): nil} // one who drew nothing
	for _, merchant := range []*apptest.Server{s, &other, s, &other} {
		id := fmt.Sprint(draws(merchant, 1)[0]["merchantDisbursementId"])
		uid := merchant.Home.MerchantUID
		want[uid] = append(want[uid], id)
	}
	for merchant, ids := range want {
		for _, query := range []string{"", "&limit=1", "&limit=1&status=FUNDING_REQUESTED"} {
			var got []string
			for _, page := range system.pages(
				"/disbursements?merchant_uid=" + merchant.String() + query) {
				got = append(got, page.names()...)
			}
			if diff := cmp.Diff(ids, got); diff != "" {
				t.Errorf("of the merchant %s%s (-want +got):\n%s", merchant, query, diff)
			}
		}
	}
}

// TestLenderListsAreBounded reads lists longer than the default page, with equal times, and
// requests pages larger and smaller than allowed.
func TestLenderListsAreBounded(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "servicing", partner.ScopeRead)
	s.Create()
	s.Exec(t, `
		INSERT INTO applications
		SELECT (jsonb_populate_record(a, jsonb_build_object('application_uid', gen_random_uuid()))).*
		  FROM applications a
		 CROSS JOIN generate_series(1, 99) AS n`)
	s.Draw(s.Loan("P404020"), nil)
	s.Exec(t, `
		INSERT INTO disbursements (application_uid, disbursement_number, stage, kind, status,
		                           gross_amount, fee_amount, net_amount, fee_percentage,
		                           requested_by, requested_at, cancelled_at)
		SELECT application_uid, disbursement_number + n, stage, kind, 'CANCELLED', gross_amount,
		       fee_amount, net_amount, fee_percentage, requested_by, requested_at, requested_at
		  FROM disbursements
		 CROSS JOIN generate_series(1, 100) AS n`)
	for _, list := range []string{"/applications?", "/disbursements?"} {
		for query, want := range map[string][]int{
			"": {100, 1}, "limit=100": {100, 1}, "limit=500": {101},
		} {
			var counts []int
			var names []string
			for _, page := range system.pages(list + query) {
				counts = append(counts, len(page.names()))
				names = append(names, page.names()...)
			}
			slices.Sort(names)
			names = slices.Compact(names)
			if diff := cmp.Diff(want, counts); diff != "" || len(names) != 101 {
				t.Errorf("%s%s holds %d, by pages (-want +got):\n%s", list, query, len(names), diff)
			}
		}
		for _, limit := range []string{"0", "501"} {
			answer := system.get(list + "limit=" + limit)
			if answer.Code() != "VALIDATION_ERROR" || !slices.Equal(answer.Fields(), []string{"limit"}) {
				t.Errorf("%slimit=%s answered %s", list, limit, answer.Raw)
			}
		}
	}
}

// TestLenderChecksInOrder makes requests with several errors: the scope is checked first,
// then the path, the body and finally the rules.
func TestLenderChecksInOrder(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "everything", partner.Scopes()...)
	reader := newLender(s, "reader", partner.ScopeRead)
	uid := s.Create().String()
	task := system.post("/applications/"+uid+"/tasks", map[string]string{"title": "A"})
	done := task.Text("task_uid")
	if answer := system.post("/tasks/"+done+"/status",
		map[string]string{"status": "Completed"}); answer.Status != http.StatusOK {
		t.Fatalf("answered %s", answer.Raw)
	}
	id := fmt.Sprint(apptest.DisbursementID(s.Draw(s.Loan("P404020"), nil)))
	for _, test := range []struct {
		path, subject, absent, scope, named string
		// wrong is a body with a wrong field, against one that the rules refuse.
		wrong, field, against string
	}{
		{
			"/applications/%s/status", uid, uuid.NewString(), "applications", "uid",
			`{"status": "Hard Pull", "reason": 7}`, "reason", `{"status": "Hard Pull"}`,
		},
		{
			"/applications/%s/amount", uid, uuid.NewString(), "applications", "uid",
			`{"approved_amount": "much"}`, "approved_amount", `{"approved_amount": "9000.00"}`,
		},
		{
			"/applications/%s/terms", uid, uuid.NewString(), "applications", "uid",
			`{"term": 60}`, "term", `{"term": "60"}`,
		},
		{
			"/applications/%s/document", uid, uuid.NewString(), "documents", "uid",
			`{"status": "SIGNED"}`, "status", `{"status": "DOCUMENT_SIGNED"}`,
		},
		{
			"/tasks/%s/status", done, uuid.NewString(), "tasks", "task_uid",
			`{"status": "done"}`, "status", `{"status": "cancelled"}`,
		},
		{
			"/disbursements/%s/status", id, "999999", "funding", "merchantDisbursementId",
			`{"status": "RETURNED", "reason": "early", "method": "cash"}`, "method",
			`{"status": "RETURNED", "reason": "early"}`,
		},
	} {
		malformed := fmt.Sprintf(test.path, "nonsense")
		subject, absent := fmt.Sprintf(test.path, test.subject), fmt.Sprintf(test.path, test.absent)
		refused := reader.post(malformed, test.wrong)
		if refused.Code() != "FORBIDDEN" || !strings.Contains(refused.Message(), test.scope) {
			t.Errorf("%s without the scope answered %s", test.path, refused.Raw)
		}
		for _, check := range []struct{ path, body, code, field string }{
			{malformed, test.wrong, "VALIDATION_ERROR", test.named},
			{malformed, "no JSON", "VALIDATION_ERROR", test.named},
			{absent, test.wrong, "VALIDATION_ERROR", test.field},
			{subject, test.wrong, "VALIDATION_ERROR", test.field},
			{absent, test.against, "NOT_FOUND", ""},
			{subject, test.against, "INVALID_STATE", ""},
		} {
			answer := system.post(check.path, check.body)
			named := strings.Join(answer.Fields(), " ")
			if answer.Code() != check.code || named != check.field {
				t.Errorf("%s %s answered %s, want %s %s",
					check.path, check.body, answer.Raw, check.code, check.field)
			}
		}
	}
}

// TestLenderReadsCertificates expects those of a draw and those stored without one, newest
// first.
func TestLenderReadsCertificates(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	system := newLender(s, "papers", partner.ScopeRead)
	uid := s.Loan("P5050")
	send := func(operation string, form map[string]string, files ...string) apptest.Answer {
		call := apptest.Call{
			Method: http.MethodPost, Path: "/v2/loan/" + uid.String() + "/" + operation, Form: form,
			Files: map[string][]byte{},
		}
		for _, name := range files {
			call.Files[name] = apptest.PDF()
		}
		answer := s.Do(call)
		if answer.Status >= http.StatusMultipleChoices {
			t.Fatalf("%s answered %s", operation, answer.Raw)
		}
		return answer
	}
	type certificate struct {
		UID   string `json:"certificate_uid"`
		Draw  *int64 `json:"merchantDisbursementId"`
		Files []struct {
			UID  string `json:"file_uid"`
			Name string `json:"name"`
		} `json:"files"`
		Metadata map[string]any `json:"metadata"`
		At       string         `json:"created_at"`
	}
	read := func() (certificates []certificate) {
		var whole struct{ Certificates []certificate }
		answer := system.get("/applications/" + uid.String())
		if err := json.Unmarshal(answer.Result.Data, &whole); err != nil {
			t.Fatal(err)
		}
		return whole.Certificates
	}
	if found := read(); found == nil || len(found) > 0 {
		t.Errorf("before there is any, there are %v", found)
	}
	ahead := send("completion-cert-upload", map[string]string{"metadata": `{"inspector":"Ada"}`})
	s.DrawSettled(uid)
	draw := send("request-draw", documents, "a.pdf")
	after := send("completion-cert-upload", nil, "b.pdf")
	found := read()
	var got []string
	for _, one := range found {
		line := fmt.Sprint(one.Metadata)
		for _, file := range one.Files {
			line += " " + file.Name
		}
		if one.Draw != nil {
			line += fmt.Sprint(" of ", *one.Draw)
		}
		got = append(got, line)
	}
	want := []string{
		"map[] b.pdf",
		fmt.Sprint("map[projectName:New roof] a.pdf of ", apptest.DisbursementID(draw)),
		"map[inspector:Ada]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the certificates are (-want +got):\n%s", diff)
	}
	if found[0].UID != after.Text("certificate_uid") || found[2].UID != ahead.Text("certificate_uid") {
		t.Errorf("the certificates are %v", found)
	}
	if found[0].At < found[1].At || found[1].At < found[2].At {
		t.Errorf("they came at %s, %s and %s", found[0].At, found[1].At, found[2].At)
	}
}
