package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
)

func TestLoanFromApplicationToLastDraw(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	uid := s.Loan("P5050")
	s.DrawSettled(uid)
	if answer := s.Draw(uid, documents); answer.Status != http.StatusOK {
		t.Fatalf("the final draw answered %s", answer.Raw)
	}
	loan := s.Get("/v2/loan/" + uid.String())
	for field, want := range map[string]string{
		"loan_amount": "25000.00", "drawn_amount": "25000.00", "balance": "0.00",
		"application_status": "Approved",
	} {
		if got := loan.Text(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	want := []string{
		"application.status.update Hard Pull Authorization",
		"application.status.update Approved",
		"disbursement.funding.status-changed FUNDING_REQUESTED",
		"disbursement.funding.status-changed FUNDING_PROCESSING",
		"disbursement.funding.settled FUNDING_SETTLED",
		"disbursement.funding.status-changed FUNDING_REQUESTED",
	}
	if diff := cmp.Diff(want, s.Events(uid)); diff != "" {
		t.Errorf("events:\n%s", diff)
	}
	// The stipulation came while communications were paused and is never sent.
	mails := []string{"stipulation suppressed", "welcome queued"}
	if diff := cmp.Diff(mails, s.Mails(uid)); diff != "" {
		t.Errorf("mails:\n%s", diff)
	}
}

func TestAcceptOffer(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	body := func(application, product any) map[string]any {
		return map[string]any{
			"thrive_application_uid": application, "selected_product_uid": product,
		}
	}
	roof := s.Products["P404020"]
	closed := s.Offered()
	s.Move(closed, "Closed")
	foreign := s.NewAccount("Foreign")
	theirs := s.CreateAs(foreign)
	mine := s.Offered()
	for _, test := range []struct {
		name   string
		body   any
		status int
		code   string
		says   string
		fields []string
	}{
		{
			name: "nothing", body: map[string]any{}, status: 400, code: "VALIDATION_ERROR",
			says:   `"thrive_application_uid" is required`,
			fields: []string{"thrive_application_uid", "selected_product_uid"},
		},
		{
			name: "no product", body: map[string]any{"thrive_application_uid": mine},
			status: 400, code: "VALIDATION_ERROR", says: `"selected_product_uid" is required`,
			fields: []string{"selected_product_uid"},
		},
		{
			name: "malformed", body: body("x", 7), status: 400, code: "VALIDATION_ERROR",
			fields: []string{"thrive_application_uid", "selected_product_uid"},
		},
		{
			name: "unknown application", body: body(uuid.New(), roof), status: 400,
			code: "APPLICATION_NOT_FOUND", says: "Could not find the specified application",
		},
		{
			name: "another merchant's", body: body(theirs, roof), status: 400,
			code: "APPLICATION_NOT_FOUND", says: "check the id submitted",
		},
		{
			name: "unknown product", body: body(mine, uuid.New()), status: 400,
			code: "PRODUCT_NOT_FOUND", says: "Could not find the specified product",
		},
		{name: "closed", body: body(closed, roof), status: 409, code: "INVALID_STATE"},
		{
			name: "linked to a foreign one", status: 400, code: "APPLICATION_NOT_FOUND",
			body: map[string]any{
				"thrive_application_uid": mine, "selected_product_uid": roof,
				"linked_application_uids": []uuid.UUID{theirs},
			},
		},
		{
			name: "linked to itself", status: 400, code: "APPLICATION_NOT_FOUND",
			body: map[string]any{
				"thrive_application_uid": mine, "selected_product_uid": roof,
				"linked_application_uids": []uuid.UUID{mine},
			},
		},
	} {
		answer := s.Do(apptest.Call{
			Method: http.MethodPut, Path: "/v2/application/accept-offer", JSON: test.body,
		})
		if answer.Status != test.status || answer.Code() != test.code ||
			!strings.Contains(answer.Message(), test.says) {
			t.Errorf("%s: answered %s", test.name, answer.Raw)
		}
		if diff := cmp.Diff(test.fields, answer.Fields()); test.fields != nil && diff != "" {
			t.Errorf("%s: fields:\n%s", test.name, diff)
		}
	}
	if diff := cmp.Diff([]string{"stipulation suppressed"}, s.Mails(mine)); diff != "" {
		t.Errorf("refused calls left mails:\n%s", diff)
	}
}

func TestAcceptOfferClosesLinkedOnce(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	mine, sibling := s.Offered(), s.Offered()
	for range 3 {
		answer := s.Accept(mine, "P404020", sibling, sibling)
		if answer.Status != http.StatusOK || answer.Data()["offer_selected"] != true ||
			answer.Text("thrive_application_uid") != mine.String() {
			t.Fatalf("answered %s", answer.Raw)
		}
	}
	app := s.Get("/v2/application/" + mine.String()).Data()
	variables := map[string]any{"offer_selected": true, "selected_product": "P404020"}
	if diff := cmp.Diff(variables, app["variables"]); diff != "" {
		t.Errorf("variables:\n%s", diff)
	}
	if app["communications"] != "enabled" {
		t.Errorf("communications are %v", app["communications"])
	}
	want := []string{
		"application.status.update Hard Pull Authorization", "application.status.update Closed",
	}
	if diff := cmp.Diff(want, s.Events(sibling)); diff != "" {
		t.Errorf("events of the sibling:\n%s", diff)
	}
	mails := []string{"stipulation suppressed", "welcome queued"}
	if diff := cmp.Diff(mails, s.Mails(mine)); diff != "" {
		t.Errorf("mails:\n%s", diff)
	}
}

func TestSimultaneousAcceptances(t *testing.T) {
	t.Parallel()
	// All wait for one row; on a busy machine the last one may exceed the request timeout.
	s := apptest.NewServer(t, "DRAWBRIDGE_DATABASE_TIMEOUT", "1m").Furnish()
	uid, sibling := s.Offered(), s.Offered()
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			answer, err := s.Try(apptest.Call{
				Method: http.MethodPut, Path: "/v2/application/accept-offer",
				Header: map[string]string{"Idempotency-Key": fmt.Sprintf("accept-%d", i)},
				JSON: map[string]any{
					"thrive_application_uid": uid, "selected_product_uid": s.Products["P404020"],
					"linked_application_uids": []uuid.UUID{sibling},
				},
			})
			if err != nil || answer.Status != http.StatusOK {
				t.Errorf("answered %s, %v", answer.Raw, err)
			}
		})
	}
	group.Wait()
	mails := []string{"stipulation suppressed", "welcome queued"}
	if diff := cmp.Diff(mails, s.Mails(uid)); diff != "" {
		t.Errorf("mails:\n%s", diff)
	}
	if got := len(s.Events(sibling)); got != 2 {
		t.Errorf("the sibling has %d events, want its decision and its closing", got)
	}
}

func TestDecisionOutcomes(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	decide := func(uid any) apptest.Answer {
		return s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/application/create-run-decision",
			JSON: map[string]any{"thrive_application_uid": uid},
		})
	}
	for name, want := range map[string]string{
		"Borrower": "Hard Pull Authorization", "Declined": "Declined",
		"Review": "Pending Review", "Clearance": "Pend Clearance",
	} {
		body := apptest.Borrow()
		body["borrower"].(map[string]any)["last_name"] = name
		created := s.Do(apptest.Call{Method: http.MethodPost, Path: "/application", JSON: body})
		if created.Status != http.StatusCreated || created.Text("status") != "Pending Review" ||
			created.Text("communications") != "paused" || created.Text("source") != "partner" {
			t.Fatalf("creating answered %s", created.Raw)
		}
		uid := created.Text("thrive_application_uid")
		if answer := decide(uid); answer.Status != http.StatusOK || answer.Text("status") != want {
			t.Errorf("%s: answered %s", name, answer.Raw)
		}
		again := decide(uid)
		if decided := want != "Pending Review"; decided != (again.Code() == "INVALID_STATE") {
			t.Errorf("%s: deciding again answered %s", name, again.Raw)
		}
	}
	if answer := decide(uuid.New()); answer.Code() != "APPLICATION_NOT_FOUND" {
		t.Errorf("an unknown application answered %s", answer.Raw)
	}
	poor := apptest.Borrow()
	poor["borrower"].(map[string]any)["annual_income"] = "2000.00"
	created := s.Do(apptest.Call{Method: http.MethodPost, Path: "/v2/application", JSON: poor})
	if answer := decide(created.Text("thrive_application_uid")); answer.Text("status") != "Declined" {
		t.Errorf("an income below every minimum answered %s", answer.Raw)
	}
}

func TestCreateApplicationNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	answer := s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/application",
		JSON: map[string]any{
			"requested_amount": 25000, "product_uid": "nope", "external_reference": []string{"x"},
			"borrower": map[string]any{
				"first_name": "", "last_name": "A\x00B", "email": "x", "annual_income": "-1",
			},
			"project": "a roof",
		},
	})
	want := []string{
		"requested_amount", "product_uid", "external_reference", "borrower.first_name",
		"borrower.last_name", "borrower.email", "borrower.annual_income", "project",
	}
	if diff := cmp.Diff(want, answer.Fields()); diff != "" || answer.Code() != "VALIDATION_ERROR" {
		t.Errorf("answered %s:\n%s", answer.Raw, diff)
	}
	unknown := apptest.Borrow()
	unknown["product_uid"] = uuid.New()
	unknown["surprise"] = true
	created := s.Do(apptest.Call{Method: http.MethodPost, Path: "/v2/application", JSON: unknown})
	if created.Code() != "PRODUCT_NOT_FOUND" {
		t.Errorf("an unknown product answered %s", created.Raw)
	}
}

func TestSandboxRecordsEvents(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	uid := s.Loan("P404020")
	path := "/v2/sandbox/application/" + uid.String()
	sandbox := func(path string, body map[string]any) apptest.Answer {
		return s.Do(apptest.Call{Method: http.MethodPost, Path: path, JSON: body})
	}
	for _, step := range []struct {
		path   string
		body   map[string]any
		status int
	}{
		{path + "/document", map[string]any{"status": "DOCUMENT_SIGNED"}, 409},
		{path + "/document", map[string]any{"status": "DOCUMENT_SENT"}, 200},
		{path + "/document", map[string]any{"status": "DOCUMENT_SENT"}, 200},
		{path + "/document", map[string]any{"status": "DOCUMENT_SIGNED"}, 200},
		{path + "/amount", map[string]any{"approved_amount": "20000.00"}, 200},
		{path + "/amount", map[string]any{"approved_amount": "20000.00"}, 200},
		{path + "/amount", map[string]any{"approved_amount": "99999.00"}, 400},
		{path + "/terms", map[string]any{"interest_rate": "6.5"}, 200},
		{path + "/terms", map[string]any{}, 400},
		{path + "/status", map[string]any{"status": "Approved"}, 200},
		{path + "/status", map[string]any{"status": "Hard Pull"}, 409},
		{path + "/status", map[string]any{"status": "Sleeping"}, 400},
	} {
		if answer := sandbox(step.path, step.body); answer.Status != step.status {
			t.Errorf("%s %v answered %s", step.path, step.body, answer.Raw)
		}
	}
	wrong := sandbox(path+"/terms", map[string]any{"term": 5, "interest_rate": "abc"})
	if diff := cmp.Diff([]string{"term", "interest_rate"}, wrong.Fields()); diff != "" {
		t.Errorf("wrong terms are named other than asked (-want +got):\n%s", diff)
	}
	task := sandbox(path+"/task", map[string]any{"title": "Upload <b>proof</b>"})
	if task.Status != http.StatusCreated || task.Text("status") != "Pending" {
		t.Fatalf("adding a task answered %s", task.Raw)
	}
	taskPath := "/v2/sandbox/task/" + task.Text("task_uid") + "/status"
	for _, step := range []struct {
		status string
		want   int
	}{{"Completed", 200}, {"Completed", 200}, {"Pending", 409}, {"cancelled", 409}} {
		answer := sandbox(taskPath, map[string]any{"status": step.status})
		if answer.Status != step.want {
			t.Errorf("moving the task to %s answered %s", step.status, answer.Raw)
		}
	}
	want := []string{
		"application.status.update Hard Pull Authorization", "application.status.update Approved",
		"document.sent DOCUMENT_SENT", "document.signed DOCUMENT_SIGNED",
		"application.amount.update Loan Amount Updated", "application.offer.update Terms Updated",
		"task.created Pending", "task.updated Completed",
	}
	if diff := cmp.Diff(want, s.Events(uid)); diff != "" {
		t.Errorf("events:\n%s", diff)
	}
	loan := s.Get("/v2/loan/" + uid.String())
	if loan.Text("loan_amount") != "20000.00" || loan.Text("original_amount") != "20000.00" {
		t.Errorf("the loan did not follow its amount: %s", loan.Raw)
	}
}

func TestPreviewAnswersWhatTheDrawWould(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	middle, final := s.Loan("P404020"), s.Loan("P5050")
	s.DrawSettled(final)
	preview := func(uid uuid.UUID, query string) apptest.Answer {
		return s.Get("/v2/loan/" + uid.String() + "/draw-preview" + query)
	}
	first := preview(middle, "").Data()
	want := map[string]any{
		"kind": "regular", "stage": 1.0, "gross_amount": "10000.00", "fee_amount": "375.00",
		"net_amount": "9625.00", "documents_required": false, "refusal": nil,
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("regular:\n%s", diff)
	}
	last := preview(final, "?updatedLoanAmount=20000.00").Data()
	if last["kind"] != "final" || last["gross_amount"] != "7500.00" ||
		last["documents_required"] != true {
		t.Errorf("final: %v", last)
	}
	refused := preview(middle, "?updatedDisbursementAmount=10000.00").Data()
	refusal, _ := refused["refusal"].(map[string]any)
	drawn := s.Draw(middle, map[string]string{"updatedDisbursementAmount": "10000.00"})
	if refusal["code"] != drawn.Code() || refusal["message"] != drawn.Message() ||
		refused["gross_amount"] != nil {
		t.Errorf("the preview refuses with %v, the draw with %s", refusal, drawn.Raw)
	}
	s.Draw(middle, nil)
	s.Move(final, "Pend Clearance")
	for _, test := range []struct {
		loan      uuid.UUID
		code      string
		kind      string
		documents bool
	}{{middle, "DRAW_PENDING", "regular", false}, {final, "APPLICATION_NOT_APPROVED", "final", true}} {
		next := preview(test.loan, "").Data()
		refusal, _ := next["refusal"].(map[string]any)
		if refusal["code"] != test.code || next["kind"] != test.kind || next["stage"] != 2.0 ||
			next["documents_required"] != test.documents || next["gross_amount"] != nil {
			t.Errorf("%s: the preview is %v", test.code, next)
		}
	}
	for _, query := range []string{
		"?updatedLoanAmount=x", "?projectCompletedEarly=maybe",
		"?updatedLoanAmount=1.00&updatedLoanAmount=2.00", "?updatedLoanAmount=%zz",
	} {
		if answer := preview(middle, query); answer.Code() != "VALIDATION_ERROR" {
			t.Errorf("%s answered %s", query, answer.Raw)
		}
	}
	offered := s.Offered()
	if answer := preview(offered, ""); answer.Status != 200 || answer.Data()["refusal"] == nil {
		t.Errorf("no loan: %s", answer.Raw)
	}
	if answer := s.Get("/v2/loan/" + offered.String()); answer.Code() != "NOT_FOUND" {
		t.Errorf("no loan: %s", answer.Raw)
	}
}

func TestCertificateUpload(t *testing.T) {
	t.Parallel()
	s := apptest.NewServer(t).Furnish()
	loan := s.Loan("P100")
	for _, path := range []string{"/v2/loan/", "/loan/"} {
		answer := s.Do(apptest.Call{
			Method: http.MethodPost, Path: path + loan.String() + "/completion-cert-upload",
			Form:  map[string]string{"metadata": `{"inspector":"I. Spect"}`},
			Files: map[string][]byte{"../../etc/Zertifikat ü.PDF": apptest.PDF()},
		})
		if answer.Status != http.StatusCreated {
			t.Fatalf("answered %s", answer.Raw)
		}
		file := answer.Data()["files"].([]any)[0].(map[string]any)
		if file["content_type"] != "application/pdf" || file["name"] != "Zertifikat ü.PDF" {
			t.Errorf("stored %v", file)
		}
	}
	// The fields of a draw are unknown here, however they are encoded.
	const part = "--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n"
	foreign := s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/loan/" + loan.String() + "/completion-cert-upload",
		JSON: fmt.Sprintf(part+part+part+part+part+"--b--\r\n", "updatedLoanAmount", "x",
			"updatedLoanAmount", "y", "updatedDisbursementAmount", "1.00",
			"projectCompletedEarly", "true", "metadata", `{"inspector":"Ada"}`),
		Header: map[string]string{"Content-Type": "multipart/form-data; boundary=b"},
	})
	if foreign.Status != http.StatusCreated {
		t.Errorf("parts of a draw answered %s", foreign.Raw)
	}
	empty := s.Do(apptest.Call{
		Method: http.MethodPost, Path: "/v2/loan/" + loan.String() + "/completion-cert-upload",
	})
	if empty.Code() != "COMPLETION_DOCUMENTS_REQUIRED" {
		t.Errorf("an empty upload answered %s", empty.Raw)
	}
	unselected := s.Offered()
	s.Move(unselected, "Approved")
	const path = "/v2/loan/{loanApplicationUid}/completion-cert-upload"
	operation := s.Contract.Document.Paths.Value(path)
	documented, _ := operation.Post.Extensions["x-errors"].([]any)
	for code, uid := range map[string]uuid.UUID{
		"APPLICATION_NOT_APPROVED": s.Offered(), "INVALID_STATE": unselected, "NOT_FOUND": uuid.New(),
	} {
		refused := s.Do(apptest.Call{
			Method: http.MethodPost, Path: "/v2/loan/" + uid.String() + "/completion-cert-upload",
			Form: documents,
		})
		if refused.Code() != code || !slices.Contains(documented, any(code)) {
			t.Errorf("answered %s, documented are %v", refused.Raw, documented)
		}
	}
	if answer := s.Draw(loan, nil); answer.Code() != "COMPLETION_DOCUMENTS_REQUIRED" {
		t.Errorf("the final draw must carry its own documents, it answered %s", answer.Raw)
	}
}
