package console_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/document"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/views/paths"
)

// file stores a document as an upload does.
func (r *harness) file(name, contentType, text string) document.File {
	r.Helper()
	file := apptest.File(name, text)
	file.ContentType = contentType
	content := io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
	r.must(r.Documents.Bucket().Put(r.Context(), file.Key, content))
	return file
}

// borrowed creates a loan with one settled draw, one with a certificate, a task, a delivery
// and mails.
func (r *harness) borrowed(files ...document.File) uuid.UUID {
	r.Helper()
	w := r
	reference := "SV-2026-17"
	app := w.Loan(r, w.NewProduct(r, "SOLAR", "50,50"), func(d *apptest.Draft) {
		d.ExternalReference, d.Borrower.Email = &reference, "bo@example.com"
		d.Borrower.FirstName, d.Borrower.LastName = "Bo", "Weiß"
	})
	r.subscribe(r.receiver(status(http.StatusServiceUnavailable)).URL)
	w.Settle(r, w.Draw(r, app.UID, loan.DrawInput{}).ID)
	r.work()
	w.Draw(r, app.UID, loan.DrawInput{Files: files})
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Applications.AddTask(ctx, tx, w.Caller(), app.UID, "Send a photo")
		return err
	})
	return app.UID
}

func (a answer) applicationIDs() []string {
	return a.find("main .table tbody tr").Map(func(_ int, row *goquery.Selection) string {
		id, _ := row.Attr("id")
		return strings.TrimPrefix(id, "a-")
	})
}

func TestApplicationList(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	first := r.application.String()
	second := r.borrowed(r.file("a.pdf", "application/pdf", "%PDF-1.4")).String()
	b := r.signedIn()
	page := b.get(paths.Applications).wantStatus(t, http.StatusOK)
	if row := page.text("#a-" + second); !strings.Contains(row, "Approved Bo Weiß") ||
		!strings.Contains(row, "SV-2026-17") || !strings.Contains(row, "10,000.00") {
		t.Errorf("row %q", row)
	}
	if got := page.text(".table-tools"); got != "2 applications" {
		t.Errorf("count %q", got)
	}
	for query, want := range map[string][]string{
		"":                              {second, first},
		"status=Approved":               {second, first},
		"status=Closed":                 nil,
		"q=SV-2026-17":                  {second},
		"q=+BO%40example.com":           {second},
		"q=" + first:                    {first},
		"q=nobody":                      nil,
		"partner=" + r.Partner.String(): {second, first},
		"partner=" + uuid.NewString():   nil,
		"merchant=" + r.Merchant.String() + "&q=SV-2026-17": {second},
	} {
		page := b.get(paths.Applications+"?"+query).wantStatus(t, http.StatusOK)
		if got := page.applicationIDs(); !slices.Equal(got, want) {
			t.Errorf("%q lists %v, want %v", query, got, want)
		}
		if want == nil && !strings.Contains(page.text(".empty"), "No application matches") {
			t.Errorf("%q says %q", query, page.text(".empty"))
		}
	}
	for query, want := range map[string]string{
		"status=Gone":                    "no such status",
		"merchant=1":                     "not an id",
		"partner=x":                      "not an id",
		"q=" + strings.Repeat("a", 1000): "cannot be searched",
		"cursor=later":                   "cannot be read",
	} {
		page := b.get(paths.Applications+"?"+query).wantStatus(t, http.StatusBadRequest)
		if got := page.text("main .empty"); !strings.Contains(got, want) {
			t.Errorf("%q says %q, want %q", query, got, want)
		}
	}
}

func TestApplicationListPages(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.exec(`
		INSERT INTO applications
		SELECT gen_random_uuid(), merchant_uid, partner_uid, source, status, communications,
		       external_reference, requested_amount, NULL, borrower_first_name, borrower_last_name,
		       borrower_email, NULL, NULL, project_name, NULL, NULL, NULL, false, NULL, NULL, NULL,
		       created_at, updated_at
		  FROM applications, generate_series(1, 60)`)
	b := r.signedIn()
	first := b.get(paths.Applications)
	older, _ := first.find(".pager a[rel=next]").Attr("href")
	second := b.get(older)
	got := append(first.applicationIDs(), second.applicationIDs()...)
	slices.Sort(got)
	if len(slices.Compact(got)) != 61 || second.find(".pager a[rel=next]").Length() != 0 ||
		second.find(".pager a:contains(Newest)").Length() != 1 {
		t.Errorf("%d applications on two pages, want 61", len(slices.Compact(got)))
	}
}

func TestApplicationPage(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	file := r.file("roof.pdf", "application/pdf", "%PDF-1.4 roof")
	uid := r.borrowed(file).String()
	b := r.signedIn()
	page := b.get(paths.To(paths.Application, uid)).wantStatus(t, http.StatusOK)
	for selector, want := range map[string]string{
		".headline": "Bo Weiß Approved",
		".sums": "Amount USD 10,000.00 as approved Drawn USD 10,000.00 2 disbursements " +
			"Balance USD 0.00",
		"#stage-2":        "50 % USD 5,000.00 USD 5,000.00",
		".facts":          "SV-2026-17",
		".files":          "roof.pdf 13 B, application/pdf",
		".certificate":    "Came with draw 2",
		"#timeline":       "Send a photo",
		"[id^=offer-]":    "selected",
		"[id^=task-]":     "Pending Send a photo",
		"[id^=draw-]":     "Settled #",
		".timeline .chip": "Retrying",
		"main .page-acts": "Deliveries E-mails",
		".panel-head":     "A draw is pending; none follows it",
		"[id^=draw-] td":  "fee",
		".crumbs":         "Bo Weiß",
		"title":           "Bo Weiß",
		".rail [href='" + paths.Applications + "']": "Applications",
	} {
		if got := page.text(selector); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q", selector, got, want)
		}
	}
	if got := page.find(".rail [aria-current]").AttrOr("href", ""); got != paths.Applications {
		t.Errorf("the rail marks %q", got)
	}
	download := page.find(".files a").AttrOr("href", "")
	if want := paths.To(paths.Document, uid, file.UID.String()); download != want {
		t.Errorf("the file leads to %q, want %q", download, want)
	}
	plain := b.get(paths.To(paths.Application, r.application.String())).wantStatus(t, http.StatusOK)
	if got := plain.text("main"); !strings.Contains(got, "No loan yet") ||
		!strings.Contains(got, "moved on without a decision") ||
		!strings.Contains(got, "Application created") {
		t.Errorf("an application without a loan says %q", got)
	}
	b.get(paths.To(paths.Application, uuid.NewString())).wantStatus(t, http.StatusNotFound)
	b.get(paths.To(paths.Application, "x")).wantStatus(t, http.StatusNotFound)

	var first int64
	r.must(r.DB.GetContext(r.Context(), &first, `
		SELECT min(merchant_disbursement_id)
		  FROM disbursements
		 WHERE application_uid = $1`, uid))
	r.Fund(r, first, lending.FundingReturned)
	page = b.get(paths.To(paths.Application, uid)).wantStatus(t, http.StatusOK)
	if got := page.text(".panel-head"); !strings.Contains(got, "A draw is pending") {
		t.Errorf("after the first draw's money came back, the loan says %q", got)
	}
}

// However often draws were cancelled and requested again, the page stays small: it shows
// the newest, and links to all others and to the actions on each.
func TestManyDraws(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	uid := r.borrowed(r.file("roof.pdf", "application/pdf", "%PDF-1.4 roof"))
	settled := r.GetLoan(t, uid).History[0].ID
	const more = 400
	r.Exec(t, `
		WITH stored AS (
		     INSERT INTO certificates (certificate_uid, application_uid, metadata, created_at)
		     SELECT gen_random_uuid(), $1, '{"inspector": "Alexandra Konstantinidou-Petersen"}',
		            now() + n * interval '1 second'
		       FROM generate_series(1, $2) AS n
		     RETURNING certificate_uid, created_at)
		INSERT INTO disbursements (application_uid, disbursement_number, stage, kind, status,
		            gross_amount, fee_amount, net_amount, fee_percentage, certificate_uid, requested_by,
		            requested_at, cancelled_at)
		SELECT $1, 2 + row_number() OVER (ORDER BY created_at), 2, 'final', 'CANCELLED', 5000, 50, 4950,
		       1, certificate_uid, 'partner', created_at, created_at
		  FROM stored`, uid, more)
	r.Exec(t, `
		INSERT INTO disbursement_changes (merchant_disbursement_id, status, reason, changed_at,
		            changed_by)
		SELECT merchant_disbursement_id, 'CANCELLED', 'the roof is too small', cancelled_at, 'ada'
		  FROM disbursements
		 WHERE status = 'CANCELLED'`)
	b, path := r.asOperator(), paths.To(paths.Application, uid.String())
	page := b.get(path).wantStatus(t, http.StatusOK)
	if len(page.Raw) > 150_000 {
		t.Errorf("with %d draws the page weighs %d bytes", more+2, len(page.Raw))
	}
	old := fmt.Sprintf("draw-%d", settled)
	if act := fmt.Sprintf("draw=%d&to=RETURNED", settled); page.find("#actions a[href*='"+act+"']").
		Length() != 1 || page.find("#"+old).Length() != 0 {
		t.Errorf("%s is shown, or the return of its money cannot be noted", old)
	}
	for part, want := range map[string]int{"draw": more + 2, "certificate": more + 1} {
		shown := map[string]bool{}
		for at, older := page, true; older; {
			at.find(fmt.Sprintf("tr[id^=%[1]s-], .%[1]s", part)).Each(func(_ int, one *goquery.Selection) {
				shown[one.AttrOr("id", "")] = true
			})
			var next string
			next, older = at.find("a[rel=next][href*='?" + part + "=']").Attr("href")
			if older {
				at = b.get(next).wantStatus(t, http.StatusOK)
			}
		}
		if len(shown) != want {
			t.Errorf("%d of %ss are reached, want %d", len(shown), part, want)
		}
	}
	href := b.get(paths.With(paths.Search, url.Values{"q": {fmt.Sprint(settled)}})).Location
	found := b.get(href)
	if found.find("#"+old).Length() != 1 {
		t.Errorf("the search for %s leads to %q, which does not show it", old, href)
	}
	entries := found.find(".moment h3 a[href*='#draw-'], .moment h3 a[href*='#certificate-']")
	if entries.Length() == 0 {
		t.Error("the timeline has neither draws nor certificates")
	}
	entries.Slice(0, min(entries.Length(), 4)).Each(func(_ int, entry *goquery.Selection) {
		href, at := entry.AttrOr("href", ""), found
		address, anchor, _ := strings.Cut(href, "#")
		if address != "" {
			at = b.get(address).wantStatus(t, http.StatusOK)
		}
		if at.find("#"+anchor).Length() != 1 {
			t.Errorf("the timeline leads to %s, which does not show it", href)
		}
	})
}

// Timeline entries link to their own pages, and the chips filter it.
func TestApplicationTimeline(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	uid := r.borrowed(r.file("a.pdf", "application/pdf", "%PDF-1.4")).String()
	b := r.signedIn()
	page := b.get(paths.To(paths.Application, uid))
	titles := func(a answer) []string {
		return a.find(".moment h3").Map(func(_ int, title *goquery.Selection) string {
			return strings.TrimSpace(title.Text())
		})
	}
	all := titles(page)
	if len(all) < 14 || all[len(all)-1] != "Application created" {
		t.Fatalf("timeline %q", all)
	}
	page.find(".moment h3 a").Each(func(_ int, link *goquery.Selection) {
		href := link.AttrOr("href", "")
		if anchor, found := strings.CutPrefix(href, "#"); found {
			if page.find("[id='"+anchor+"']").Length() != 1 {
				t.Errorf("%q leads nowhere", href)
			}
			return
		}
		b.get(href).wantStatus(t, http.StatusOK)
	})
	tabs := map[string]string{}
	page.find(".panel-tabs a").Each(func(_ int, tab *goquery.Selection) {
		tabs[tab.Text()] = strings.TrimSuffix(tab.AttrOr("href", ""), "#timeline")
	})
	tasks := b.get(tabs["Tasks"])
	if got := titles(tasks); !slices.Equal(got, []string{"Task created: Pending"}) {
		t.Errorf("tasks alone: %q", got)
	}
	if got := tasks.find(".panel-tabs [aria-current]").Text(); got != "Tasks" {
		t.Errorf("the chip %q is marked", got)
	}
	both := strings.TrimSuffix(
		tasks.find(".panel-tabs a:contains(Status)").AttrOr("href", ""), "#timeline")
	if got := titles(b.get(both)); len(got) != 4 || got[0] != "Task created: Pending" {
		t.Errorf("tasks and status: %q", got)
	}
	if got := len(titles(b.get(paths.To(paths.Application, uid) + "?show=nothing"))); got != len(all) {
		t.Errorf("an unknown kind shows %d entries, want all %d", got, len(all))
	}
}

// Three events to four endpoints are three rows, which expand into deliveries and attempts.
func TestTimelineNestsDeliveries(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	b := r.signedIn()
	for _, code := range []int{204, 503, 204, 204} {
		r.subscribe(r.receiver(status(code)).URL + "/loans")
	}
	for _, state := range []string{"Hard Pull", "Pend Clearance", "Approved"} {
		r.publish(state)
	}
	r.work()
	page := b.get(paths.To(paths.Application, r.application.String()))
	rows := page.find(".moment:has(.passage)")
	if rows.Length() != 3 || page.find(".moment").Length() != 4 {
		t.Fatalf("%d rows with deliveries of %d: %q", rows.Length(), page.find(".moment").Length(),
			page.text(".moment h3"))
	}
	rows.Each(func(_ int, row *goquery.Selection) {
		if got := strings.TrimSpace(row.Find(".passage > summary").Text()); got !=
			"4 deliveries: 1 under way, 3 delivered" {
			t.Errorf("an event's row says %q", got)
		}
		if got := row.Find("details details").Length(); got != 4 {
			t.Errorf("an event opens into %d deliveries, want 4", got)
		}
		if got := row.Find(".passage-host").Text(); strings.Count(got, "/loans") != 4 {
			t.Errorf("endpoints are called %q", got)
		}
		attempts := strings.Join(strings.Fields(row.Find(".passage ol li").Text()), " ")
		if strings.Count(attempts, "Attempt 1: HTTP 204") != 3 ||
			strings.Count(attempts, "Attempt 1: HTTP 503") != 1 ||
			strings.Count(attempts, "Next attempt") != 1 {
			t.Errorf("deliveries open into %q", attempts)
		}
	})
	link, _ := rows.First().Find("details details a.button").Attr("href")
	b.get(link).wantStatus(t, http.StatusOK)
	if got := b.get(paths.To(paths.Application, r.application.String()) + "?show=email").
		find(".passage").Length(); got != 0 {
		t.Errorf("e-mails alone show %d events", got)
	}
}

func TestDownload(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	names := []string{"roof.pdf", `a";drop.pdf`, "Dach größer.pdf", "<img src=x>.pdf"}
	var files []document.File
	for _, name := range names {
		files = append(files, r.file(name, "application/pdf", "%PDF-1.4 <script>planted()</script>"))
	}
	uid := r.borrowed(files...).String()
	b := r.signedIn()
	for _, file := range files {
		got := b.get(paths.To(paths.Document, uid, file.UID.String())).wantStatus(t, http.StatusOK)
		for name, want := range map[string]string{
			"Content-Type":            "application/pdf",
			"Content-Disposition":     document.ContentDisposition(file.Name),
			"X-Content-Type-Options":  "nosniff",
			"Cache-Control":           "no-store",
			"Content-Length":          fmt.Sprint(file.Size),
			"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
		} {
			if got.Header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", file.Name, name, got.Header.Get(name), want)
			}
		}
		if got.Raw != "%PDF-1.4 <script>planted()</script>" {
			t.Errorf("%s: content %q", file.Name, got.Raw)
		}
	}
	var audited int
	r.must(r.DB.GetContext(r.Context(), &audited, `
		SELECT count(*)
		  FROM audit_log
		 WHERE action = 'document.download'
		   AND actor = $1
		   AND subject = $2`, supportEmail, uid))
	if audited != len(files) {
		t.Errorf("%d downloads in the audit log, want %d", audited, len(files))
	}
	page := b.get(paths.To(paths.Application, uid) + "?show=operator")
	if got := page.text(".moment"); !strings.Contains(got, "by "+supportEmail+": roof.pdf") ||
		!strings.Contains(got, "document.download") {
		t.Errorf("the timeline does not tell the download: %q", got)
	}
}

func TestDownloadRefusals(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	kept := r.file("a.pdf", "application/pdf", "%PDF-1.4")
	lost := apptest.File("lost.pdf", "lost")
	uid := r.borrowed(kept, lost).String()
	b := r.signedIn()
	for name, path := range map[string]string{
		"another application": paths.To(paths.Document, r.application.String(), kept.UID.String()),
		"unknown file":        paths.To(paths.Document, uid, uuid.NewString()),
		"no id":               paths.To(paths.Document, uid, "../../pending"),
		"lost in the bucket":  paths.To(paths.Document, uid, lost.UID.String()),
	} {
		if got := b.get(path); got.Status != http.StatusNotFound ||
			got.Header.Get("Content-Disposition") != "" {
			t.Errorf("%s: %d %q", name, got.Status, got.Header.Get("Content-Disposition"))
		}
	}
	stranger := r.stranger().get(paths.To(paths.Document, uid, kept.UID.String()))
	if stranger.Status != http.StatusSeeOther || strings.Contains(stranger.Raw, "%PDF") {
		t.Errorf("a stranger gets %d", stranger.Status)
	}
	var audited int
	r.must(r.DB.GetContext(r.Context(), &audited,
		`SELECT count(*) FROM audit_log WHERE action = 'document.download'`))
	if audited != 0 {
		t.Errorf("%d refused downloads in the audit log", audited)
	}
}

// Every role may look at applications, and nothing here lets anybody change one.
func TestApplicationsForEveryRole(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	for _, role := range []operator.Role{
		operator.RoleSupport, operator.RoleOperator, operator.RoleAdmin,
	} {
		address := string(role) + "@lender.example"
		r.addUser(address, role)
		b := r.stranger()
		b.signIn(address, password)
		for _, path := range []string{
			paths.Applications, paths.To(paths.Application, r.application.String()),
		} {
			page := b.get(path).wantStatus(t, http.StatusOK)
			if forms := page.find("main form[method=post]:not([action$='/csv'])").Length(); forms != 0 {
				t.Errorf("%s offers a %s %d changes", path, role, forms)
			}
		}
	}
}

func TestHostileApplicationIsInert(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	w := r
	const planted = `"><script>planted()</script>` + "\u202e"
	app := w.Loan(r, w.NewProduct(r, "SINGLE", "100"), func(d *apptest.Draft) {
		text := planted
		d.ExternalReference, d.Borrower.Phone = &text, &text
		d.Borrower.FirstName, d.Borrower.LastName = planted, planted
		d.Project = application.Project{Name: planted, Description: &text, Address: &text}
	})
	metadata, err := lending.ParseMetadata([]byte(`{"a":"<script>planted()</script>"}`))
	r.must(err)
	w.Draw(r, app.UID, loan.DrawInput{
		Metadata: metadata, Files: []document.File{r.file(planted+".pdf", "application/pdf", "x")},
	})
	r.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := r.Applications.AddTask(ctx, tx, w.Caller(), app.UID, planted)
		return err
	})
	b := r.signedIn()
	for _, path := range []string{
		paths.Applications, paths.To(paths.Application, app.UID.String()),
		paths.With(paths.Applications, url.Values{"q": {planted}}),
		paths.With(paths.Applications, url.Values{"status": {planted}, "partner": {planted}}),
	} {
		page := b.get(path)
		if !strings.Contains(page.Raw, "planted") {
			t.Errorf("%s does not show what was planted", path)
		}
		page.find("script").Each(func(_ int, script *goquery.Selection) {
			if script.Text() != "" {
				t.Errorf("%s runs %q", path, script.Text())
			}
		})
		if strings.ContainsRune(page.text("main"), '\u202e') {
			t.Errorf("%s lets text change its direction", path)
		}
	}
}

func TestFindApplication(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	uid := r.borrowed(r.file("a.pdf", "application/pdf", "%PDF-1.4"))
	delivery := r.list()[0]
	draw := r.GetLoan(t, uid).History[1].ID
	b := r.signedIn()
	for sought, want := range map[string]string{
		uid.String():          paths.To(paths.Application, uid.String()),
		"SV-2026-17":          paths.To(paths.Application, uid.String()),
		"Bo@Example.com\n":    paths.To(paths.Application, uid.String()),
		fmt.Sprint(draw):      paths.Within(uid.String(), "draw", fmt.Sprint(draw)),
		delivery.UID.String(): paths.To(paths.Delivery, delivery.UID.String()),
		"999999":              "",
	} {
		got := b.get(paths.Search + "?" + url.Values{"q": {sought}}.Encode())
		if got.Location != want || (want == "") != (got.Status == http.StatusOK) {
			t.Errorf("looking for %q leads to %d %q, want %q", sought, got.Status, got.Location, want)
		}
	}
	b.get(paths.Search+"?q="+strings.Repeat("long", 99)).wantStatus(t, http.StatusBadRequest)
	page := b.get(paths.To(paths.Delivery, delivery.UID.String()))
	if page.find("a[href='"+paths.To(paths.Application, uid.String())+"']").Length() < 1 {
		t.Error("a delivery does not lead to its application")
	}
}
