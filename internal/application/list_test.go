package application_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// called gives an application a reference and a borrower's address.
func called(reference, address string) apptest.Option {
	return func(d *apptest.Draft) {
		d.ExternalReference, d.Borrower.Email = &reference, address
	}
}

func listed(
	t *testing.T, w *apptest.Harness, filter application.Filter,
) []uuid.UUID {
	t.Helper()
	found, _, err := w.Applications.List(t.Context(), filter,
		postgres.Paging{Limit: postgres.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	count, err := w.Applications.Count(t.Context(), filter, postgres.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	if count != len(found) {
		t.Errorf("filter %+v counts %d, but lists %d", filter, count, len(found))
	}
	uids := make([]uuid.UUID, 0, len(found))
	for _, summary := range found {
		uids = append(uids, summary.UID)
	}
	return uids
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	other := w.NewPartner(t, "Window Works")
	elsewhere := w.NewMerchant(t, other, "Clear View")
	product := w.NewProduct(t, "SOLAR", "50,50")
	add := func(options ...apptest.Option) uuid.UUID {
		clock.Move(1e9)
		return w.Application(t, options...).UID
	}
	first := add(called("A-1", "ana@example.com"))
	second := add(called("4711", "ANA@example.com"),
		apptest.In(lending.StatusApproved), apptest.Selecting(product))
	third := add(called(first.String(), "bo@example.com"), apptest.Of(other, elsewhere))
	draw := w.Draw(t, second, loan.DrawInput{})
	number := strconv.FormatInt(draw.ID, 10)

	tests := []struct {
		name   string
		filter application.Filter
		want   []uuid.UUID
	}{
		{"all, newest first", application.Filter{}, []uuid.UUID{third, second, first}},
		{
			"status",
			application.Filter{Status: lending.StatusApproved},
			[]uuid.UUID{second},
		},
		{"no such status yet", application.Filter{Status: lending.StatusClosed}, nil},
		{"partner", application.Filter{PartnerUID: other}, []uuid.UUID{third}},
		{"merchant", application.Filter{MerchantUID: w.Merchant}, []uuid.UUID{second, first}},
		{
			"merchant and status",
			application.Filter{MerchantUID: w.Merchant, Status: lending.StatusPendingReview},
			[]uuid.UUID{first},
		},
		{"uid", application.Filter{Search: second.String()}, []uuid.UUID{second}},
		{
			"uid that is also a reference",
			application.Filter{Search: first.String()},
			[]uuid.UUID{third, first},
		},
		{"reference", application.Filter{Search: "A-1"}, []uuid.UUID{first}},
		{"part of a reference", application.Filter{Search: "A"}, nil},
		{"number as a reference", application.Filter{Search: "4711"}, []uuid.UUID{second}},
		{"disbursement", application.Filter{Search: number}, []uuid.UUID{second}},
		{
			"e-mail in any case",
			application.Filter{Search: "Ana@Example.com"},
			[]uuid.UUID{second, first},
		},
		{
			"e-mail of a partner's",
			application.Filter{Search: "ana@example.com", PartnerUID: other},
			nil,
		},
		{"what breaks a pattern", application.Filter{Search: `%_\'"?$1`}, nil},
		{"number beyond all", application.Filter{Search: "99999999999999999999"}, nil},
	}
	for _, test := range tests {
		if got := listed(t, w, test.filter); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	// All at one time, so that only the uid orders them.
	w := apptest.NewAt(t, apptest.NewClock())
	for range 5 {
		w.Application(t)
	}
	want := listed(t, w, application.Filter{})
	var got []uuid.UUID
	page := postgres.Paging{Limit: 2}
	for pages := 1; ; pages++ {
		found, next, err := w.Applications.List(t.Context(), application.Filter{}, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, summary := range found {
			got = append(got, summary.UID)
		}
		if page.From = next; next.IsZero() {
			if pages != 3 {
				t.Errorf("%d pages, want 3", pages)
			}
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("page by page %v, at once %v", got, want)
	}
}

func TestListRefusals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	for name, asked := range map[string]struct {
		search string
		limit  int
	}{
		"no limit":      {},
		"large limit":   {limit: postgres.MaxPage + 1},
		"NUL":           {"a\x00b", 1},
		"invalid UTF-8": {"a\xff", 1},
		"long":          {strings.Repeat("a", 1000), 1},
	} {
		_, _, err := w.Applications.List(t.Context(), application.Filter{Search: asked.search},
			postgres.Paging{Limit: asked.limit})
		if got := codeOf(t, err); got != lending.CodeValidation {
			t.Errorf("%s: code %q", name, got)
		}
	}
	_, err := w.Applications.Summary(t.Context(), uuid.New())
	refused(t, err, lending.CodeNotFound)
}

func TestSummary(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "50,50"), called("R-1", "ana@example.com"))
	w.Draw(t, app.UID, loan.DrawInput{})
	found, err := w.Applications.Summary(t.Context(), app.UID)
	if err != nil {
		t.Fatal(err)
	}
	if found.PartnerName != "Solar Partners" || found.MerchantName != "Sunny Roofs" ||
		*found.Reference != "R-1" || found.LoanAmount.String() != "10000.00" ||
		found.Drawn.String() != "5000.00" {
		t.Errorf("summary %+v", found)
	}
}

func TestTaskEntries(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	app, other := w.Application(t), w.Application(t)
	for _, task := range []struct {
		uid   uuid.UUID
		title string
	}{{app.UID, "First"}, {other.UID, "Elsewhere"}, {app.UID, "Second"}} {
		w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			made, err := w.Applications.AddTask(ctx, tx, w.Caller(), task.uid, task.title)
			if err != nil || task.title != "First" {
				return err
			}
			_, _, err = w.Applications.MoveTask(ctx, tx, w.Caller(), made.UID, lending.TaskCompleted)
			return err
		})
		clock.Move(1e9)
	}
	tasks, err := w.Applications.Tasks(t.Context(), app.UID)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, task := range tasks {
		got = append(got, task.Title+" "+string(task.Status))
	}
	same(t, "tasks", got, "First Completed", "Second Pending")
}

// Lists stay fast as applications grow: whatever the filter, an index serves them.
func TestListsUseAnIndex(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	app := w.Application(t)
	for _, statement := range []string{
		`INSERT INTO applications
		 SELECT drawbridge_uid(created_at + n * interval '1 second'), merchant_uid, partner_uid, source,
		        (ARRAY['Pending Review', 'Approved', 'Declined'])[n % 3 + 1], communications,
		        'ref-' || n, requested_amount, requested_product_uid, borrower_first_name,
		        borrower_last_name, n || borrower_email, borrower_phone, borrower_annual_income,
		        project_name, project_description, project_address, NULL, false, NULL, NULL, NULL,
		        created_at + n * interval '1 second', updated_at
		   FROM applications, generate_series(1, 20000) AS n`,
		`ANALYZE applications`,
	} {
		if _, err := w.DB.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	recorder := pgtest.Record(t, w.DB)
	middle := postgres.Cursor{At: app.CreatedAt.Add(1e13), UID: app.UID}
	for name, filter := range map[string]application.Filter{
		"none":              {},
		"status":            {Status: lending.StatusApproved},
		"rare status":       {Status: lending.StatusClosed},
		"partner":           {PartnerUID: w.Partner},
		"other partner":     {PartnerUID: uuid.New()},
		"merchant":          {MerchantUID: w.Merchant},
		"merchant, status":  {MerchantUID: w.Merchant, Status: lending.StatusDeclined},
		"uid":               {Search: app.UID.String()},
		"e-mail or another": {Search: "77ana@example.com"},
		"number":            {Search: "1001"},
	} {
		for _, cursor := range []postgres.Cursor{{}, middle} {
			t.Run(fmt.Sprintf("%s (cursor %t)", name, !cursor.IsZero()), func(t *testing.T) {
				_, _, err := w.Applications.List(t.Context(), filter,
					postgres.Paging{From: cursor, Limit: 50})
				if err != nil {
					t.Fatal(err)
				}
				checkPlan(t, w, "applications", recorder)
			})
		}
	}
}

// checkPlan fails the test if the only query since the last call reads a whole table.
func checkPlan(t *testing.T, w *apptest.Harness, table string, recorder *pgtest.Recorder) {
	t.Helper()
	queries := recorder.Take()
	if len(queries) != 1 {
		t.Fatalf("%d queries: %v", len(queries), queries)
	}
	var plan []string
	err := w.DB.SelectContext(t.Context(), &plan, `EXPLAIN `+queries[0].Text, queries[0].Args...)
	if err != nil {
		t.Fatal(err)
	}
	recorder.Take() // discard the EXPLAIN itself
	text := strings.Join(plan, "\n")
	if strings.Contains(text, "Seq Scan on "+table) || !strings.Contains(text, table) {
		t.Errorf("%s is not read by an index:\n%s", table, text)
	}
}
