package apilog_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/lending"
	"drawbridge/internal/partner"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// entry returns an answered request at a time.
func entry(at time.Time, change func(*apilog.Entry)) apilog.Entry {
	at = at.UTC().Truncate(time.Microsecond)
	made := apilog.Entry{
		UID: postgres.NewUID(at), At: at, RequestID: "request-1", Method: "POST",
		Route: "/api/v2/loan/:uid/request-draw", Path: "/api/v2/loan/x/request-draw",
		ClientID: "dbc_1", Authenticated: true, MerchantUID: uuid.New(), Status: 200,
		Duration: 1500 * time.Microsecond, BytesIn: 12, BytesOut: 345, Address: "192.0.2.7",
		UserAgent: "curl/8",
	}
	if change != nil {
		change(&made)
	}
	return made
}

// write stores entries through a writer that it starts and stops.
func write(t *testing.T, db *postgres.DB, entries ...apilog.Entry) *apilog.Writer {
	t.Helper()
	writer := apilog.NewWriter(db)
	for _, entry := range entries {
		writer.Record(entry)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	writer.Run(ctx)
	return writer
}

func list(t *testing.T, db *postgres.DB, filter apilog.Filter) []apilog.Request {
	t.Helper()
	found, _, err := (&apilog.Service{DB: db}).List(t.Context(), filter,
		postgres.Paging{Limit: postgres.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestWhatIsRecordedIsStored(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	whole := entry(time.Now(), func(e *apilog.Entry) {
		e.PartnerUID, e.ApplicationUID = uuid.New(), uuid.New()
		e.Status, e.ErrorCode, e.ErrorFields = 400, lending.CodeValidation, []string{"a", "b.c"}
		e.IdempotencyKey, e.Replayed = "key-1", true
	})
	bare := entry(time.Now().Add(-time.Second), func(e *apilog.Entry) {
		e.ClientID, e.Authenticated, e.MerchantUID = "", false, uuid.Nil
		e.Route, e.ErrorFields = "", []string{}
	})
	writer := write(t, db, whole, bare)
	if writer.Stored() != 2 || writer.Dropped() != 0 {
		t.Errorf("stored %d, dropped %d", writer.Stored(), writer.Dropped())
	}
	for i, want := range []apilog.Entry{whole, bare} {
		got := list(t, db, apilog.Filter{})[i]
		got.At = got.At.UTC()
		if diff := cmp.Diff(want, got.Entry); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", i, diff)
		}
		one, err := (&apilog.Service{DB: db}).Get(t.Context(), want.UID)
		if err != nil || one.UID != want.UID || one.Duration != want.Duration {
			t.Errorf("by its uid: %+v, %v", one.Entry, err)
		}
	}
	_, err := (&apilog.Service{DB: db}).Get(t.Context(), uuid.New())
	if lending.ErrorCode(err) != lending.CodeNotFound {
		t.Errorf("an unknown uid answers %v", err)
	}
}

// A batch whose commit was not confirmed is stored again and adds nothing.
func TestStoringTwiceAddsNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	batch := []apilog.Entry{entry(time.Now(), nil), entry(time.Now(), nil)}
	for range 3 {
		if err := apilog.Store(t.Context(), db, batch); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(list(t, db, apilog.Filter{})); got != 2 {
		t.Errorf("%d entries", got)
	}
	traffic, err := (&apilog.Service{DB: db}).Traffic(t.Context(),
		apilog.Scope{ClientID: "dbc_1"}, time.Now().Add(-time.Hour))
	if err != nil || traffic.Requests != 2 {
		t.Errorf("traffic %+v, %v", traffic, err)
	}
}

// TestTheBufferHoldsNoHeads: what waits to be stored holds what is stored of it, and not the head
// of the request that it is a part of.
//
//nolint:paralleltest // it measures memory
func TestTheBufferHoldsNoHeads(t *testing.T) {
	w := apilog.NewWriter(nil)
	used := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := used()
	const entries = 2000
	for range entries {
		head := strings.Repeat("a", 60<<10)
		w.Record(apilog.Entry{Authenticated: true, Method: head[:3], Path: head[:40], UserAgent: head})
	}
	if grown := int64(used()) - int64(before); grown > entries*4<<10 {
		t.Errorf("%d requests that wait hold %d KiB", entries, grown>>10)
	}
	runtime.KeepAlive(w)
}

// A full buffer drops entries and counts them; it never delays a request.
func TestAFullBufferCountsWhatItDrops(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	writer := apilog.NewWriter(db)
	writer.TryFor(time.Minute)
	for range apilog.BufferSize + 7 {
		writer.Record(entry(time.Now(), nil))
	}
	if writer.Dropped() != 7 {
		t.Errorf("dropped %d, want 7", writer.Dropped())
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	writer.Run(ctx)
	if writer.Stored() != apilog.BufferSize || writer.Dropped() != 7 {
		t.Errorf("stored %d, dropped %d", writer.Stored(), writer.Dropped())
	}
}

func TestALostDatabaseIsCounted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.ExecContext(t.Context(), `ALTER TABLE api_requests RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	if writer := write(t, db, entry(time.Now(), nil)); writer.Dropped() != 1 || writer.Stored() != 0 {
		t.Errorf("stored %d, dropped %d", writer.Stored(), writer.Dropped())
	}
}

// Texts chosen by clients are bounded and made storable.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	hostile := "\xff\x00" + strings.Repeat("ä", 4000)
	write(t, db, entry(time.Now(), func(e *apilog.Entry) {
		e.Path, e.UserAgent, e.IdempotencyKey, e.ClientID = hostile, hostile, hostile, hostile
		e.RequestID, e.Method = hostile, hostile
		e.ErrorFields = slices.Repeat([]string{"two\nlines\x00"}, 100)
	}))
	got := list(t, db, apilog.Filter{})
	if len(got) != 1 {
		t.Fatalf("%d entries", len(got))
	}
	if !utf8.ValidString(got[0].Path) || len(got[0].Path) > 600 || len(got[0].ErrorFields) != 20 ||
		got[0].ErrorFields[0] != "two lines\uFFFD" {
		t.Errorf("path of %d bytes, fields %q", len(got[0].Path), got[0].ErrorFields)
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	partners := &partner.Service{DB: db}
	var owner partner.Partner
	var merchant partner.Merchant
	var client partner.Issued
	err := db.InTx(t.Context(), func(tx *postgres.Tx) (err error) {
		if owner, err = partners.CreatePartner(t.Context(), tx, "Sunvolt", ""); err != nil {
			return err
		}
		if merchant, err = partners.CreateMerchant(t.Context(), tx, owner.UID, "Phoenix"); err != nil {
			return err
		}
		client, err = partners.CreateClient(t.Context(), tx, partner.NewClient{PartnerUID: owner.UID})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	app, now := uuid.New(), time.Now()
	ours := entry(now, func(e *apilog.Entry) {
		e.ClientID, e.PartnerUID, e.MerchantUID = client.ClientID, owner.UID, merchant.UID
		e.ApplicationUID, e.IdempotencyKey = app, "key-9"
	})
	refused := entry(now.Add(-time.Minute), func(e *apilog.Entry) {
		e.Status, e.ErrorCode, e.Method, e.RequestID = 409, lending.CodeInvalidState, "PUT", "r-2"
	})
	failed := entry(now.Add(-2*time.Hour), func(e *apilog.Entry) {
		e.Status, e.ErrorCode, e.Route = 500, lending.CodeInternal, "/api/v2/application"
	})
	write(t, db, ours, refused, failed)
	for name, test := range map[string]struct {
		filter apilog.Filter
		want   []apilog.Entry
	}{
		"all":      {apilog.Filter{}, []apilog.Entry{ours, refused, failed}},
		"ok":       {apilog.Filter{Outcome: apilog.OutcomeOK}, []apilog.Entry{ours}},
		"refused":  {apilog.Filter{Outcome: apilog.OutcomeRefused}, []apilog.Entry{refused}},
		"failed":   {apilog.Filter{Outcome: apilog.OutcomeFailed}, []apilog.Entry{failed}},
		"code":     {apilog.Filter{ErrorCode: lending.CodeInvalidState}, []apilog.Entry{refused}},
		"method":   {apilog.Filter{Method: "PUT"}, []apilog.Entry{refused}},
		"route":    {apilog.Filter{Route: "/api/v2/application"}, []apilog.Entry{failed}},
		"client":   {apilog.Filter{ClientID: client.ClientID}, []apilog.Entry{ours}},
		"partner":  {apilog.Filter{PartnerUID: owner.UID}, []apilog.Entry{ours}},
		"merchant": {apilog.Filter{MerchantUID: merchant.UID}, []apilog.Entry{ours}},
		"app":      {apilog.Filter{ApplicationUID: app}, []apilog.Entry{ours}},
		"id":       {apilog.Filter{RequestID: "r-2"}, []apilog.Entry{refused}},
		"key":      {apilog.Filter{IdempotencyKey: "key-9"}, []apilog.Entry{ours}},
		"since":    {apilog.Filter{Since: now.Add(-time.Hour)}, []apilog.Entry{ours, refused}},
		"until":    {apilog.Filter{Until: now.Add(-time.Hour)}, []apilog.Entry{failed}},
		"both":     {apilog.Filter{Method: "PUT", Outcome: apilog.OutcomeOK}, nil},
	} {
		var got, want []uuid.UUID
		for _, found := range list(t, db, test.filter) {
			got = append(got, found.UID)
		}
		for _, entry := range test.want {
			want = append(want, entry.UID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	s := &apilog.Service{DB: db}
	second := postgres.Paging{From: postgres.Cursor{At: ours.At, UID: ours.UID}, Limit: 1}
	page, next, err := s.List(t.Context(), apilog.Filter{}, second)
	if err != nil || len(page) != 1 || page[0].UID != refused.UID || next.IsZero() {
		t.Errorf("the second page: %+v, next at %v, %v", page, next, err)
	}
	if count, err := s.Count(t.Context(), apilog.Filter{}, 2); err != nil || count != 2 {
		t.Errorf("count up to two: %d, %v", count, err)
	}
	traffic, err := s.Traffic(t.Context(), apilog.Scope{
		PartnerUID: owner.UID, MerchantUID: merchant.UID,
	}, now.Add(-24*time.Hour))
	if err != nil || traffic != (apilog.Traffic{Requests: 1}) {
		t.Errorf("the partner's traffic: %+v, %v", traffic, err)
	}
	all, err := s.Traffic(t.Context(), apilog.Scope{}, now.Add(-24*time.Hour))
	if err != nil || all != (apilog.Traffic{Requests: 3, Refused: 1, Failed: 1}) {
		t.Errorf("all traffic: %+v, %v", all, err)
	}
	_, _, err = s.List(t.Context(), apilog.Filter{}, postgres.Paging{})
	if lending.ErrorCode(err) != lending.CodeValidation {
		t.Errorf("a list without a limit: %v", err)
	}
}

// Days before the limit are dropped whole, the others stay.
func TestDropRemovesWholeDays(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	var entries []apilog.Entry
	for age := range 5 {
		day := noon.AddDate(0, 0, -age)
		entries = append(entries, entry(day, nil))
		write(t, db, entries[age]) // each finds its day's partition missing
	}
	s := &apilog.Service{DB: db}
	days, requests, err := s.CountDue(t.Context(), noon.AddDate(0, 0, -2), 10)
	if err != nil || requests != 2 {
		t.Errorf("%d requests are due, want 2: %v", requests, err)
	}
	if _, most, err := s.CountDue(t.Context(), noon.AddDate(0, 0, -2), 1); err != nil || most != 1 {
		t.Errorf("%d requests are counted of at most 1: %v", most, err)
	}
	// Meanwhile partitions are made; dropping a day without held rows need not wait for that.
	making := pgtest.Begin(t, db,
		`SELECT pg_advisory_xact_lock(hashtext('drawbridge_make_request_partitions'))`)
	if dropped, err := s.Drop(t.Context(), noon.AddDate(0, 0, -2)); err != nil || dropped != days {
		t.Errorf("dropped %d days, of which %d were due: %v", dropped, days, err)
	}
	if got := len(list(t, db, apilog.Filter{})); got != 3 {
		t.Errorf("%d of 5 days are left, want 3", got)
	}
	if again, err := s.Drop(t.Context(), noon.AddDate(0, 0, -2)); err != nil || again != 0 {
		t.Errorf("dropping again: %d, %v", again, err)
	}
	if err := making.Rollback(); err != nil {
		t.Fatal(err)
	}
	if made, err := s.MakePartitions(t.Context()); err != nil || made > 4 {
		t.Errorf("made %d partitions: %v", made, err)
	}
}

// TestRequestsAreStoredBesideADump: a dump that runs over midnight prevents partitions for the
// days ahead, but today's requests are still stored and read.
func TestRequestsAreStoredBesideADump(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := &apilog.Service{DB: db}
	if _, err := s.MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	dump, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dump.Rollback() }()
	if _, err := dump.ExecContext(t.Context(),
		`LOCK TABLE api_requests IN ACCESS SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	now := db.Now
	db.Now = func() time.Time { return now().AddDate(0, 0, 1) }
	if made, err := s.MakePartitions(t.Context()); err != nil || made != 0 {
		t.Errorf("the chores made %d, %v", made, err)
	}
	if writer := write(t, db, entry(db.Now(), nil)); writer.Stored() != 1 || writer.Dropped() != 0 {
		t.Errorf("stored %d, dropped %d", writer.Stored(), writer.Dropped())
	}
	if got := len(list(t, db, apilog.Filter{})); got != 1 {
		t.Errorf("%d requests are listed, want 1", got)
	}
	if dropped, err := s.Drop(t.Context(), db.Now().AddDate(0, 0, 2)); err != nil || dropped != 0 {
		t.Errorf("beside the dump %d days were dropped, %v", dropped, err)
	}
}

// Each filter finds its page through an index among many rows.
func TestFiltersUseIndexes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, statement := range []string{
		`INSERT INTO api_requests (request_uid, at, request_id, method, route, path, client_id,
		        authenticated, application_uid, status, replayed, duration_us, bytes_in, bytes_out,
		        address, user_agent)
		 SELECT gen_random_uuid(), now() - n * interval '1 millisecond', 'r' || n, 'GET', '/r', '/p',
		        'c' || n % 500, true, gen_random_uuid(), CASE WHEN n % 1000 = 0 THEN 400 ELSE 200 END,
		        false, 1, 1, 1, 'a', 'u'
		   FROM generate_series(1, 40000) AS n`,
		`ANALYZE api_requests`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for name, filter := range map[string]apilog.Filter{
		"none": {}, "request id": {RequestID: "r17"}, "client": {ClientID: "c7"},
		"application": {ApplicationUID: uuid.New()}, "code": {ErrorCode: lending.CodeNotFound},
		"refused and client": {Outcome: apilog.OutcomeRefused, ClientID: "c7"},
		"since":              {Since: time.Now().Add(-time.Second)},
		"partner":            {PartnerUID: uuid.New()},
	} {
		query, args := filter.Query(postgres.Paging{Limit: 50})
		var plan []string
		if err := db.SelectContext(t.Context(), &plan, `EXPLAIN `+query, args...); err != nil {
			t.Fatal(err)
		}
		for _, line := range plan {
			if strings.Contains(line, "Seq Scan on api_requests_y") {
				// Other days' partitions are empty: only the one with rows counts.
				if !strings.Contains(line, "rows=1 ") && !strings.Contains(line, "rows=0 ") {
					t.Errorf("%s:\n%s", name, strings.Join(plan, "\n"))
				}
			}
		}
	}
}

func TestWritersOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	done := make(chan error, 4)
	merchants := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	for process := range 4 {
		go func() {
			var err error
			for range 20 {
				var batch []apilog.Entry
				for i := range 30 {
					batch = append(batch, entry(time.Now(), func(e *apilog.Entry) {
						e.ClientID = fmt.Sprintf("dbc_%d", (i*7+process)%5)
						e.MerchantUID = merchants[i%3]
					}))
				}
				if err = apilog.Store(context.Background(), db, batch); err != nil {
					break
				}
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	traffic, err := (&apilog.Service{DB: db}).Traffic(t.Context(), apilog.Scope{},
		time.Now().Add(-2*time.Hour))
	if err != nil || traffic.Requests != 4*20*30 {
		t.Errorf("traffic %+v, %v", traffic, err)
	}
}
