package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/waittest"
	"drawbridge/views/paths"
)

// keyedRequest is a request with an Idempotency-Key, repeated until it is answered.
type keyedRequest struct {
	method, path, key string
	contentType       string
	body              []byte
}

// keyedResponse is the response to a keyed request.
type keyedResponse struct {
	status int
	body   string
}

// borrowers take loans through their lives over the API.
type borrowers struct {
	*load

	roof uuid.UUID
	// patient borrowers also repeat requests that were answered with 503, after Retry-After.
	patient bool
	// answered has the first response to each key, repeats counts further requests.
	answered sync.Map
	repeats  atomic.Int64
	// steps counts keyed requests that have been answered.
	steps atomic.Int64
	// lost counts requests without a response, and responses other than success or that the
	// key's first request is still in progress. firstLost describes the first of them.
	lost      atomic.Int64
	firstLost atomic.Pointer[string]
}

// newBorrowers prepares the demo data like newLoad.
func newBorrowers(w *e2etest.Harness, r *recordingReceiver) *borrowers {
	w.T.Helper()
	b := &borrowers{load: newLoad(w, r)}
	for _, product := range w.DemoData().Products {
		if product.Code == "ROOF-3" {
			b.roof = uuid.MustParse(product.UID)
		}
	}
	return b
}

// once sends a keyed request to one of the running servers.
func (b *borrowers) once(
	ctx context.Context, client *http.Client, w keyedRequest,
) (keyedResponse, error) {
	urls := *b.apis.Load()
	api := urls[int(b.next.Add(1))%len(urls)]
	request, err := http.NewRequestWithContext(ctx, w.method, api+"/api"+w.path,
		bytes.NewReader(w.body))
	if err != nil {
		return keyedResponse{}, err
	}
	if w.contentType != "" {
		request.Header.Set("Content-Type", w.contentType)
	}
	request.Header.Set("Idempotency-Key", w.key)
	request.Header.Set("x-service-client-id", b.client.ID)
	request.Header.Set("x-service-client-secret", b.client.Secret)
	response, err := client.Do(request)
	if err != nil {
		return keyedResponse{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return keyedResponse{response.StatusCode, string(body)}, err
}

// sendTwice sends a keyed request from two callers until both have final and equal responses.
func (b *borrowers) sendTwice(w keyedRequest) keyedResponse {
	b.t.Helper()
	answers := make([]keyedResponse, 2)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			client := &http.Client{Timeout: 30 * time.Second}
			defer client.CloseIdleConnections()
			for b.t.Context().Err() == nil {
				got, err := b.once(b.t.Context(), client, w)
				b.note(w, got, err)
				if err == nil && !b.again(got.status) {
					answers[i] = got
					return
				}
				b.repeats.Add(1)
				<-time.After(repeatAfter)
			}
		})
	}
	group.Wait()
	if answers[0] != answers[1] {
		b.t.Errorf("%s was answered %+v and %+v", w.key, answers[0], answers[1])
	}
	b.answered.Store(w.key, exchange{w, answers[0]})
	b.steps.Add(1)
	return answers[0]
}

// again reports whether a status means that the request is to be repeated.
func (b *borrowers) again(status int) bool {
	return status == http.StatusConflict || b.patient && status == http.StatusServiceUnavailable
}

// note counts a lost request.
func (b *borrowers) note(w keyedRequest, got keyedResponse, err error) {
	if err == nil && (got.status < http.StatusMultipleChoices || got.status == http.StatusConflict) {
		return
	}
	b.lost.Add(1)
	b.fails()
	text := fmt.Sprintf("%s %s: %d %s %v", w.method, w.path, got.status, got.body, err)
	b.firstLost.CompareAndSwap(nil, &text)
}

// exchange is a keyed request and its first response.
type exchange struct {
	keyedRequest
	keyedResponse
}

// data decodes the result of a response, which must be a success.
func (g keyedResponse) data(into any) error {
	var envelope struct {
		Result struct {
			Data json.RawMessage `json:"data"`
		} `json:"result"`
	}
	if g.status >= http.StatusMultipleChoices {
		return fmt.Errorf("it was answered %d %s", g.status, g.body)
	}
	return errors.Join(json.Unmarshal([]byte(g.body), &envelope),
		json.Unmarshal(envelope.Result.Data, into))
}

// jsonRequest is a keyed request with a JSON body.
func jsonRequest(method, path, key, body string) keyedRequest {
	return keyedRequest{method, path, key, "application/json", []byte(body)}
}

// certified is the body of a draw with a certificate.
func certified() (body []byte, contentType string) {
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	part, _ := form.CreateFormFile("files", "certificate.pdf") // writing to a buffer cannot fail
	_, _ = io.WriteString(part, pdf)
	_ = form.WriteField("metadata", `{"projectName":"Roof","completionDate":"2026-01-31"}`)
	_ = form.Close()
	return text.Bytes(), form.FormDataContentType()
}

// pdf is a minimal PDF.
const pdf = "%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF\n"

// live takes the loan of one application to its last draw.
func (b *borrowers) live(i int) error {
	name := fmt.Sprintf("draws-%d", i)
	var made struct {
		UID string `json:"thrive_application_uid"`
	}
	err := b.sendTwice(jsonRequest(http.MethodPost, "/v2/application", "create-"+name, `{
		"requested_amount": "10000.01", "external_reference": "`+name+`",
		"borrower": {"first_name": "Ada", "last_name": "Moreno", "email": "ada@example.com",
		             "annual_income": "180000.00"},
		"project": {"name": "Roof"}}`)).data(&made)
	if err != nil {
		return err
	}
	for _, next := range []keyedRequest{
		jsonRequest(http.MethodPost, "/v2/application/create-run-decision", "decide-"+made.UID,
			`{"thrive_application_uid":"`+made.UID+`"}`),
		jsonRequest(http.MethodPut, "/v2/application/accept-offer", "accept-"+made.UID,
			fmt.Sprintf(`{"thrive_application_uid":%q,"selected_product_uid":%q}`, made.UID, b.roof)),
		jsonRequest(http.MethodPost, "/v2/sandbox/application/"+made.UID+"/status", "approve-"+made.UID,
			`{"status":"Approved"}`),
	} {
		if got := b.sendTwice(next); got.status != http.StatusOK {
			return fmt.Errorf("%s was answered %d %s", next.key, got.status, got.body)
		}
	}
	for stage := 1; stage <= 3; stage++ {
		if err := b.draw(made.UID, stage); err != nil {
			return err
		}
	}
	return nil
}

// draw draws a stage and has it paid out.
func (b *borrowers) draw(uid string, stage int) error {
	asked := keyedRequest{
		method: http.MethodPost, path: "/v2/loan/" + uid + "/request-draw",
		key: fmt.Sprintf("draw-%s-%d", uid, stage),
	}
	if stage == 3 {
		asked.body, asked.contentType = certified()
	}
	var drawn struct {
		ID int64 `json:"merchantDisbursementId"`
	}
	if err := b.sendTwice(asked).data(&drawn); err != nil {
		return err
	}
	for _, status := range []lending.FundingStatus{
		lending.FundingProcessing, lending.FundingSettled,
	} {
		path := fmt.Sprintf("/v2/sandbox/disbursement/%d/status", drawn.ID)
		got := b.sendTwice(jsonRequest(http.MethodPost, path, fmt.Sprintf("fund-%d-%s", drawn.ID, status),
			fmt.Sprintf(`{"status":%q}`, status)))
		if got.status != http.StatusOK {
			return fmt.Errorf("funding draw %d was answered %d %s", drawn.ID, got.status, got.body)
		}
	}
	return nil
}

// TestFaultDrawsUnderKills takes loans through offers, draws and funding by keyed requests, each
// from two callers at once, while the API processes are killed in turn.
func TestFaultDrawsUnderKills(t *testing.T) {
	t.Parallel()
	loans, kills := int(scaled(8, 60)), scaled(2, 12)
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	r.linger(0)
	w := e2etest.New(t)
	data := w.DemoData()
	b := newBorrowers(w, r)
	w.Subscribe(data, r.url, "--auth", "none")
	apis := []*e2etest.Server{w.Serve("--roles", "api"), w.Serve("--roles", "api")}
	w.Serve("--roles", "worker,console")
	b.use(apis...)
	var living sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		living.Go(func() {
			for i := int(next.Add(1)); i <= loans; i = int(next.Add(1)) {
				if err := b.live(i); err != nil {
					t.Errorf("loan %d: %v", i, err)
				}
			}
		})
	}
	const wishes = 13 // for each loan
	for i := range kills {
		waittest.Within(t, 5*time.Minute, "loans have moved on", func() bool {
			return b.steps.Load() >= (i+1)*int64(loans)*wishes/(kills+1)
		})
		at := i % 2
		apis[at].Kill()
		b.use(apis[1-at])
		apis[at] = w.Serve("--roles", "api")
		b.use(apis...)
	}
	living.Wait()
	b.repeatAll()
	db := w.Open(t)
	checkLoans(t, db, loans)
	waitUntilSettled(t, db, 2*time.Minute)
	drawEvents := pgtest.Count(t, db, `
		SELECT count(*)
		  FROM deliveries d JOIN events e ON e.event_uid = d.event_uid
		  JOIN applications a ON a.application_uid = e.application_uid
		 WHERE a.external_reference LIKE 'draws-%'
		   AND d.state = 'delivered' AND e.status = 'FUNDING_REQUESTED'`)
	if drawEvents != 3*loans {
		t.Errorf("%d events of %d draws arrived", drawEvents, 3*loans)
	}
	b.checkShownLoan(w, db)
	t.Logf("%d loans, %d draws, %d kills, %d calls repeated", loans, 3*loans, kills, b.repeats.Load())
}

// repeatAll repeats every keyed request: the response is the same as the first, byte by byte.
func (b *borrowers) repeatAll() {
	b.t.Helper()
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	b.answered.Range(func(_, value any) bool {
		first, _ := value.(exchange)
		got, err := b.once(b.t.Context(), client, first.keyedRequest)
		if err != nil || got != first.keyedResponse {
			b.t.Errorf("%s was answered %+v and is now answered %+v (%v)",
				first.key, first.keyedResponse, got, err)
		}
		return true
	})
}

// checkLoans checks the draws of each loan.
func checkLoans(t *testing.T, db *postgres.DB, loans int) {
	t.Helper()
	var rows []struct {
		Reference string `db:"external_reference"`
		Draws     int    `db:"draws"`
		Stages    int    `db:"stages"`
		Whole     bool   `db:"whole"`
		Recorded  int    `db:"recorded"`
		Welcomes  int    `db:"welcomes"`
		Status    string `db:"status"`
	}
	err := db.SelectContext(t.Context(), &rows, `
		SELECT a.external_reference, a.status,
		       (SELECT count(*) FROM disbursements d
		         WHERE d.application_uid = a.application_uid) AS draws,
		       (SELECT count(DISTINCT stage) FROM disbursements d
		         WHERE d.application_uid = a.application_uid) AS stages,
		       (SELECT sum(gross_amount) = l.loan_amount AND sum(gross_amount) = l.drawn_amount
		          FROM disbursements d
		         WHERE d.application_uid = a.application_uid) AS whole,
		       (SELECT count(*) FROM events e
		         WHERE e.application_uid = a.application_uid
		           AND e.status = 'FUNDING_REQUESTED') AS recorded,
		       (SELECT count(*) FROM emails m
		         WHERE m.application_uid = a.application_uid AND m.kind = 'welcome') AS welcomes
		  FROM applications a JOIN loans l ON l.application_uid = a.application_uid
		 WHERE a.external_reference LIKE 'draws-%'`)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != loans {
		t.Errorf("there are %d loans, want %d", len(rows), loans)
	}
	for _, row := range rows {
		if row.Draws != 3 || row.Stages != 3 || !row.Whole || row.Recorded != 3 || row.Welcomes != 1 {
			t.Errorf("the loan of %+v", row)
		}
	}
}

// checkShownLoan checks what the API and the console say about one of the loans.
func (b *borrowers) checkShownLoan(w *e2etest.Harness, db *postgres.DB) {
	b.t.Helper()
	uid := pgtest.Value[string](b.t, db, `
		SELECT application_uid FROM applications WHERE external_reference LIKE 'draws-%' LIMIT 1`)
	var loan struct {
		Amount        string            `json:"loan_amount"`
		Drawn         string            `json:"drawn_amount"`
		Balance       string            `json:"balance"`
		Disbursements []json.RawMessage `json:"disbursements"`
	}
	got, err := b.once(b.t.Context(), http.DefaultClient,
		keyedRequest{method: http.MethodGet, path: "/v2/loan/" + uid})
	if err = errors.Join(err, got.data(&loan)); err != nil || loan.Balance != "0.00" ||
		loan.Drawn != loan.Amount || len(loan.Disbursements) != 3 {
		b.t.Errorf("the API says %+v (%v)", loan, err)
	}
	page := visit(b.t, w.Serve("--roles", "console").URL).read(at(paths.Application, uid))
	if strings.Count(page, "Settled") < 3 {
		b.t.Errorf("the console does not show three settled draws: %s", page)
	}
}
