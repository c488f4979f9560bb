package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/email"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// mail logs a mail about the application and returns its id.
func (r *harness) mail(kind email.Kind, change func(*email.Message)) uuid.UUID {
	r.Helper()
	message := email.Message{
		Kind: kind, ApplicationUID: r.application, ToName: "Ana Lima", ToAddress: "ana@example.com",
		Params: map[string]string{email.ParamFirstName: "Ana"},
	}
	if change != nil {
		change(&message)
	}
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		return r.Emails.Schedule(ctx, tx, message)
	})
	r.ahead.Add(int64(time.Second)) // so that the list's order is that of the calls
	return r.mails()[0].EmailUID
}

func paused(message *email.Message) { message.Paused = true }

// mails lists the log, newest first.
func (r *harness) mails() []email.Email {
	r.Helper()
	mails, _, err := email.List(r.Context(), r.DB, email.Filter{}, postgres.Paging{Limit: 500})
	r.must(err)
	return mails
}

// deliver makes the queued attempts with a mail server or, if server is nil, without one.
// The body of every mail is body.
func (r *harness) deliver(server *emailtest.Server, body string) {
	r.Helper()
	from, err := email.ParseSender("Meadow <mail@meadow.example>")
	r.must(err)
	mailSender := &email.MailSender{
		DB: r.DB, Jobs: r.Jobs, From: from, Captures: r.captures,
		Render: func(_ context.Context, draft email.Draft) (email.Content, error) {
			subject := fmt.Sprintf("%s for %s", draft.Kind, draft.Params[email.ParamFirstName])
			return email.Content{Subject: subject, Text: body, HTML: body}, nil
		},
	}
	if server != nil {
		parsed, err := email.ParseServer(server.URL())
		r.must(err)
		mailSender.SMTP = email.NewSMTPClient(parsed, email.DefaultLimits())
		defer mailSender.SMTP.Close()
	}
	var rows [][]byte
	r.must(r.DB.SelectContext(r.Context(), &rows,
		`DELETE FROM river_job WHERE queue = $1 RETURNING args`, email.Queue))
	for _, row := range rows {
		var job email.SendArgs
		r.must(json.Unmarshal(row, &job))
		_, err := mailSender.Deliver(r.Context(), job)
		r.must(err)
	}
}

// mailIDs returns the ids of the mails in a list, in order.
func (a answer) mailIDs() []string { return a.rowIDs() }

func texts(uids ...uuid.UUID) []string {
	var written []string
	for _, uid := range uids {
		written = append(written, uid.String())
	}
	return written
}

func TestEmailList(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	if empty := b.get(paths.Emails).text(".empty"); !strings.Contains(empty, "No e-mails yet") {
		t.Errorf("an empty log says %q", empty)
	}
	welcome := r.mail(email.KindWelcome, nil)
	r.deliver(nil, "Welcome!")
	held := r.mail(email.KindTask, paused)
	alert := r.mail(email.KindSubscriptionFailing, func(message *email.Message) {
		message.ApplicationUID, message.ToAddress = uuid.Nil, "ops@lender.example"
	})
	page := b.get(paths.Emails).wantStatus(t, http.StatusOK)
	if got := page.mailIDs(); !slices.Equal(got, texts(alert, held, welcome)) {
		t.Fatalf("rows %v", got)
	}
	for uid, want := range map[uuid.UUID]string{
		welcome: "Not sent welcome for Ana Ana Lima ana@example.com " +
			"No mail server configured 0",
		held:  "Suppressed Task Ana Lima ana@example.com Communications were",
		alert: "Queued Alert: subscription failing Ana Lima ops@lender.example",
	} {
		row := strings.ReplaceAll(page.text("#m-"+uid.String()+" > *:not(:first-child)"), " · ", " ")
		word, rest, _ := strings.Cut(want, " ")
		whole := strings.ReplaceAll(row, " ", "") // addresses come in parts, which may break
		if !strings.HasPrefix(row, word) || !containsAll(whole, strings.Fields(rest)) {
			t.Errorf("the row says %q, want the words of %q", row, want)
		}
	}
	for query, want := range map[string][]string{
		"state=suppressed":                         texts(held),
		"state=not_sent":                           texts(welcome),
		"state=unknown":                            nil,
		"kind=subscription_failing":                texts(alert),
		"to=OPS%40lender.example":                  texts(alert),
		"application=" + r.application.String():    texts(held, welcome),
		"kind=task&state=queued":                   nil,
		"application=" + uuid.NewString():          nil,
		"state=suppressed&kind=task&to=" + atAna(): texts(held),
		"range=1h&kind=task":                       texts(held),
		"until=2026-01-01T00:00:00Z":               nil,
	} {
		list := b.get(paths.Emails+"?"+query).wantStatus(t, http.StatusOK)
		if got := list.mailIDs(); !slices.Equal(got, want) {
			t.Errorf("?%s lists %v, want %v", query, got, want)
		}
		if empty := list.text(".empty"); want == nil && !strings.Contains(empty, "No e-mail matches") {
			t.Errorf("?%s says %q", query, empty)
		}
	}
}

func atAna() string { return url.QueryEscape("ana@example.com") }

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

func TestEmailFilterIsInTheAddress(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	page := b.get(paths.Emails + "?state=failed&kind=task&to=" + atAna())
	if got := page.text(".filters-on"); got != "Kind Task To ana@example.com Clear all" {
		t.Errorf("filters in force %q", got)
	}
	without, _ := page.find("[aria-label='Remove filter Kind Task']").Attr("href")
	if without != paths.Where(paths.Emails, "state", "failed", "to", "ana@example.com") {
		t.Errorf("without the kind: %q", without)
	}
	if got := page.text("[aria-current=page].segment"); got != "Failed" {
		t.Errorf("the current view is %q", got)
	}
	chosen, _ := page.find("#filter-kind option[selected]").Attr("value")
	kept, _ := page.find("form input[type=hidden][name=state]").Attr("value")
	if chosen != "task" || kept != "failed" {
		t.Errorf("the form keeps kind %q, state %q", chosen, kept)
	}
	for query, want := range map[string]string{
		"state=planted":                    "There is no such state",
		"kind=planted":                     "There is no such kind",
		"to=planted":                       "This is not an e-mail address",
		"application=17":                   "This is not an id",
		"cursor=nonsense":                  "start from the newest",
		"application=" + uuid.Nil.String(): "This is not an id",
	} {
		page := b.get(paths.Emails+"?"+query).wantStatus(t, http.StatusBadRequest)
		if got := page.text("[role=alert]"); !strings.Contains(got, want) {
			t.Errorf("?%s says %q, want %q", query, got, want)
		}
	}
}

func TestEmailPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	var want []string
	for range 53 {
		want = append(want, r.mail(email.KindTask, paused).String())
	}
	slices.Reverse(want)
	var got []string
	path := paths.Where(paths.Emails, "kind", "task")
	for path != "" {
		page := b.get(path).wantStatus(t, http.StatusOK)
		if count := page.text(".table-tools .soft"); count != "53 e-mails" {
			t.Errorf("the list counts %q, want 53 e-mails", count)
		}
		got = append(got, page.mailIDs()...)
		path, _ = page.find(".pager a[rel=next]").Attr("href")
		if path != "" && !strings.Contains(path, "kind=task") {
			t.Fatalf("the next page forgets the filter: %q", path)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages list %d mails, want %d in order", len(got), len(want))
	}
}

func TestFindEmail(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	uid := r.mail(email.KindTask, nil)
	query := url.Values{"q": {" " + uid.String() + " "}}
	found := r.signedIn().get(paths.Search + "?" + query.Encode())
	if found.wantStatus(t, http.StatusSeeOther).Location != paths.To(paths.Email, uid.String()) {
		t.Errorf("its id leads to %q", found.Location)
	}
}

// TestCapturedEmail shows a sandbox's mail to a borrower: its content, and that nobody received it.
func TestCapturedEmail(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.asOperator()
	r.captures = true
	server := emailtest.NewServer(t, emailtest.Options{})
	captured := r.mail(email.KindWelcome, nil)
	r.deliver(server, "Welcome, Ana")
	list := b.get(paths.Where(paths.Emails, "state", "captured")).wantStatus(t, http.StatusOK)
	if got := list.mailIDs(); !slices.Equal(got, []string{captured.String()}) {
		t.Errorf("the captured mails are %q, want %s", got, captured)
	}
	page := b.get(paths.To(paths.Email, captured.String())).wantStatus(t, http.StatusOK)
	for _, want := range []string{
		"Captured: a sandbox sends no mail to borrowers", "A re-send is captured too", "Welcome, Ana",
	} {
		if !strings.Contains(page.Raw, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if sent := server.Messages(); len(sent) > 0 {
		t.Errorf("the mail server got %d mails", len(sent))
	}
}

// The number of e-mails that failed in a period links to exactly those.
func TestFailedEmailsOfATimeAreListed(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for _, age := range []string{"10 minutes", "2 days", "10 days"} {
		uid := r.mail(email.KindTask, nil)
		r.exec(`
			UPDATE emails
			   SET state = 'failed', next_attempt_at = NULL, finished_at = created_at,
			       created_at = created_at - $2::interval
			 WHERE email_uid = $1`, uid, age)
	}
	b := r.signedIn()
	day := 24 * time.Hour
	past := url.Values{
		"since": {r.DB.Now().Add(-3 * day).UTC().Format(time.RFC3339)},
		"until": {r.DB.Now().Add(-day).UTC().Format(time.RFC3339)},
	}.Encode()
	for query, want := range map[string]int{"": 1, "range=1h": 1, "range=7d": 2, past: 1} {
		home := b.get(paths.Home+"?"+query).wantStatus(t, http.StatusOK)
		href, _ := home.find(".tile:contains('E-mails failed') a").Attr("href")
		counted := home.tile("E-mails failed")
		listed := len(b.get(href).wantStatus(t, http.StatusOK).mailIDs())
		if !strings.HasPrefix(counted, strconv.Itoa(want)+" ") || listed != want {
			t.Errorf("with %q the overview counts %q and leads to %d, want %d", query, counted, listed, want)
		}
	}
}
