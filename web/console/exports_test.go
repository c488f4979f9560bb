package console_test

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/email"
	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// cells downloads a list's file with the form on its page, and returns the rows, keyed by
// column title.
func (b *browser) cells(t *testing.T, list, path string) []map[string]string {
	t.Helper()
	form := b.get(list).wantStatus(t, http.StatusOK).find("form[action='" + path + "']")
	file := b.post(path, url.Values{
		"filter": {form.Find("input[name=filter]").AttrOr("value", "missing=form;")},
	}).wantStatus(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(file.Raw)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var found []map[string]string
	for _, row := range rows[1:] {
		cells := make(map[string]string)
		for i, cell := range row {
			cells[rows[0][i]] = cell
		}
		found = append(found, cells)
	}
	return found
}

// column returns one cell of every row.
func column(rows []map[string]string, title string) []string {
	cells := make([]string, 0, len(rows))
	for _, row := range rows {
		cells = append(cells, row[title])
	}
	return cells
}

// TestListsAsFiles downloads lists with the filter of their page.
func TestListsAsFiles(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	uid := r.borrowed(r.file("a.pdf", "application/pdf", "%PDF-1.4")).String()
	subscription, _ := r.subscribe(r.receiver(status(http.StatusOK)).URL)
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Webhooks.Deliveries.Test(ctx, tx, subscription.UID, lending.EventStatusUpdated)
		return err
	})
	w := r
	w.Application(r, func(d *apptest.Draft) { d.Borrower.FirstName = "=2+2" })
	r.mail(email.KindWelcome, func(m *email.Message) { m.ToAddress = "zoe@example.com" })

	events := b.cells(t, paths.Events+"?application="+uid, paths.EventsCSV)
	kinds := column(events, "event")
	if len(events) < 4 || !slices.Contains(kinds, "task.created") ||
		slices.ContainsFunc(column(events, "application_id"), func(id string) bool { return id != uid }) {
		t.Errorf("the events of one application are %v", events)
	}
	every := b.cells(t, paths.Events, paths.EventsCSV)
	if at := slices.Index(column(every, "test"), "true"); at < 0 || every[at]["application_id"] != "" {
		t.Errorf("no test event without an application in %v", every)
	}
	mails := b.cells(t, paths.Emails+"?to=zoe@example.com", paths.EmailsCSV)
	if len(mails) != 1 || mails[0]["kind"] != "welcome" || mails[0]["to"] != "zoe@example.com" {
		t.Errorf("the e-mails to one address are %v", mails)
	}
	all := b.cells(t, paths.Applications, paths.ApplicationsCSV)
	if got := column(all, "borrower"); !slices.Contains(got, "Bo Weiß") ||
		!slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, "'=2+2") }) {
		t.Errorf("the applications are of %q", got)
	}
	found := b.cells(t, paths.Applications+"?q=SV-2026-17", paths.ApplicationsCSV)
	if len(found) != 1 || found[0]["application_id"] != uid || found[0]["loan_amount"] == "" {
		t.Errorf("the application of a reference is %v", found)
	}
	loans := b.cells(t, paths.Loans+"?state=pending", paths.LoansCSV)
	if len(loans) != 1 || loans[0]["application_id"] != uid || loans[0]["state"] != "pending" ||
		loans[0]["pending_amount"] == "" || loans[0]["product"] != "SOLAR" {
		t.Errorf("the loans with a pending draw are %v", loans)
	}
	draws := b.cells(t, paths.Desk+"?state=FUNDING_REQUESTED", paths.DeskCSV)
	if len(draws) != 1 || draws[0]["application_id"] != uid || draws[0]["overdue"] != "false" ||
		draws[0]["age_business_hours"] == "" || !strings.HasPrefix(draws[0]["next_step"], "Fund it: ") {
		t.Errorf("the draws under way are %v", draws)
	}
	for path, wrong := range map[string]struct{ action, filter string }{
		paths.EventsCSV:       {"event.export", "kind=party"},
		paths.EmailsCSV:       {"email.export", "state=lost"},
		paths.ApplicationsCSV: {"application.export", "status=Odd"},
		paths.LoansCSV:        {"loan.export", "state=odd"},
		paths.DeskCSV:         {"draw.export", "state=odd"},
	} {
		if r.audits(wrong.action) == 0 {
			t.Errorf("%s is not in the audit log", wrong.action)
		}
		for _, filter := range []string{wrong.filter, "a;b"} {
			b.post(path, url.Values{"filter": {filter}}).wantStatus(t, http.StatusBadRequest)
		}
		b.get(path).wantStatus(t, http.StatusNotFound)
	}
}

// onFirstWrite calls a function after the first part of the body was written.
type onFirstWrite struct {
	http.ResponseWriter
	once sync.Once
	do   func()
}

func (w *onFirstWrite) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.once.Do(w.do)
	return n, err
}

func (w *onFirstWrite) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// TestAFileEndsWithItsSession disables a user during a download, which must fail.
func TestAFileEndsWithItsSession(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.Exec(t, `
		INSERT INTO applications (application_uid, merchant_uid, partner_uid, source, status,
		                          communications, requested_amount, borrower_first_name,
		                          borrower_last_name, borrower_email, project_name,
		                          created_at, updated_at)
		SELECT gen_random_uuid(), $1, $2, 'partner', 'Pending Review', 'enabled', 1, 'Ana', 'Lima',
		       'ana@example.com', 'Roof', $3, $3
		  FROM generate_series(1, 1500)`, r.Merchant, r.Partner, r.DB.Now())
	b := r.signedIn()
	file := url.Values{"filter": {""}, "token": {uuid.NewString()}}
	rows := strings.Count(b.post(paths.ApplicationsCSV, file).wantStatus(t, http.StatusOK).Raw, "\n")
	if rows != 1502 {
		t.Fatalf("the file has %d rows", rows)
	}
	console := serve(r.Console)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		console.ServeHTTP(&onFirstWrite{ResponseWriter: w, do: func() {
			r.do(func(ctx context.Context, tx *postgres.Tx) error {
				_, err := r.Operators.Disable(ctx, tx, supportEmail)
				return err
			})
			r.pass(16 * time.Second)
		}}, request)
	}))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		server.URL+paths.ApplicationsCSV, strings.NewReader(file.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if rows := strings.Count(string(got), "\n"); response.StatusCode != http.StatusOK || err == nil ||
		rows > 501 {
		t.Errorf("%s with %d rows ended with %v, want a failed download", response.Status, rows, err)
	}
}
