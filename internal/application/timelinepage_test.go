package application_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"drawbridge/internal/apilog"
	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

// call logs a request of a merchant about an application.
func call(t testing.TB, w *apptest.Harness, uid, merchant uuid.UUID, at time.Time) {
	t.Helper()
	writer := apilog.NewWriter(w.DB)
	writer.Record(apilog.Entry{
		UID: postgres.NewUID(at), At: at.UTC().Truncate(time.Microsecond), RequestID: "r-1",
		Method: "POST", Path: "/api/v2/loan/x/request-draw", ClientID: "dbc_1", Authenticated: true,
		MerchantUID: merchant, ApplicationUID: uid, Status: 409,
		ErrorCode: lending.CodeInvalidState, IdempotencyKey: "key-1", Replayed: true,
		Duration: 12 * time.Millisecond,
	})
	ctx, end := context.WithCancel(context.Background())
	end()
	writer.Run(ctx)
}

// A partner's request is in the timeline; another merchant's request that names the same
// application is not. Attempts are shown with the event's deliveries.
func TestTimelineTellsCallsAndAttempts(t *testing.T) {
	t.Parallel()
	w, uid, _ := live(t)
	now := w.DB.Now()
	call(t, w, uid, w.Merchant, now.Add(-time.Millisecond))
	call(t, w, uid, uuid.New(), now)
	delivery := w.DeliveriesOf(t, uid)[0]
	_, err := w.DB.ExecContext(t.Context(), `
		INSERT INTO attempts (delivery_uid, delivery_created_at, number, started_at, url, http_status,
		                      error_class, duration_us, request_headers, response_headers)
		SELECT delivery_uid, created_at, 1, created_at + interval '1 ms', 'http://127.0.0.1:9009/hook',
		       503, 'http_5xx', 7000, '[]', '[]'
		  FROM deliveries WHERE delivery_uid = $1`, delivery.UID)
	if err != nil {
		t.Fatal(err)
	}
	timeline, err := w.Applications.Timeline(t.Context(), uid, application.TimelineFilter{
		Kinds: []application.EntryKind{application.EntryCall}, Limit: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := timeline.Entries
	if len(calls) != 1 || calls[0].HTTPStatus != 409 || calls[0].ErrorClass != "INVALID_STATE" ||
		calls[0].Note != "key-1" || !calls[0].Again || calls[0].DurationUS != 12_000 ||
		calls[0].Party != "dbc_1" || calls[0].Text != "r-1" {
		t.Errorf("calls %+v", calls)
	}
	tried := outcomeOf(t, w, delivery).Deliveries[0]
	if tried.UID != delivery.UID || len(tried.Attempts) != 1 ||
		tried.Attempts[0].HTTPStatus != 503 || tried.Attempts[0].ErrorClass != "http_5xx" ||
		tried.Attempts[0].Duration != 7*time.Millisecond || tried.Attempts[0].Number != 1 {
		t.Errorf("the delivery with its attempts %+v", tried)
	}
}

// Whatever happens at whatever time: the pages of a timeline, of any size and kinds, together
// contain every entry exactly once, newest first.
func TestTimelinePagesAreTheWholeInOrder(t *testing.T) {
	t.Parallel()
	clock := apptest.NewClock()
	w := apptest.NewAt(t, clock)
	w.Subscribe(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		app := w.Application(t)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			clock.Move(time.Duration(rapid.IntRange(0, 2).Draw(rt, "seconds")) * time.Second)
			happen(t, rt, w, app.UID)
		}
		whole := page(rt, w, app.UID, application.TimelineFilter{Limit: postgres.MaxPage}).Entries
		if !slices.IsSortedFunc(whole, newestFirst) {
			rt.Fatalf("out of order: %v", words(whole))
		}
		kinds := rapid.SliceOfNDistinct(rapid.SampledFrom(application.EntryKinds()), 0, 4,
			rapid.ID[application.EntryKind]).Draw(rt, "kinds")
		want := slices.DeleteFunc(slices.Clone(whole), func(m application.TimelineEntry) bool {
			return len(kinds) > 0 && !slices.Contains(kinds, m.Kind)
		})
		var got []application.TimelineEntry
		filter := application.TimelineFilter{
			Kinds: kinds, Limit: rapid.IntRange(1, 5).Draw(rt, "limit"),
		}
		for {
			found := page(rt, w, app.UID, filter)
			got = append(got, found.Entries...)
			if found.Next.IsZero() {
				break
			}
			next, err := application.ParseEntryCursor(found.Next.String())
			if err != nil || len(found.Entries) != filter.Limit {
				rt.Fatalf("a page of %d leads to %q: %v", len(found.Entries), found.Next, err)
			}
			filter.Before = next
		}
		if strings.Join(words(got), "\n") != strings.Join(words(want), "\n") {
			rt.Fatalf("pages of %d:\n%v\nthe whole:\n%v", filter.Limit, words(got), words(want))
		}
	})
}

// happen makes one thing happen to an application.
func happen(t *testing.T, rt *rapid.T, w *apptest.Harness, uid uuid.UUID) {
	t.Helper()
	switch rapid.SampledFrom([]string{"task", "move", "audit", "call"}).Draw(rt, "what") {
	case "task":
		w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.AddTask(ctx, tx, w.Caller(), uid, "Sign")
			return err
		})
	case "move":
		next := w.Get(t, uid).Status.Next()
		if len(next) == 0 {
			return
		}
		to := rapid.SampledFrom(next).Draw(rt, "to")
		w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := w.Applications.Move(ctx, tx, w.Caller(), uid, to)
			return err
		})
	case "audit":
		w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			return operator.Audit(ctx, tx, operator.Entry{
				Actor: "olga@lender.example", Action: "look", SubjectKind: "application",
				Subject: uid.String(),
			})
		})
	case "call":
		call(t, w, uid, w.Merchant, w.DB.Now())
	}
}

func page(
	rt *rapid.T, w *apptest.Harness, uid uuid.UUID, filter application.TimelineFilter,
) application.Timeline {
	found, err := w.Applications.Timeline(context.Background(), uid, filter)
	if err != nil {
		rt.Fatal(err)
	}
	return found
}

// newestFirst compares entries in the order of a timeline: by time, then by cause and effect.
func newestFirst(a, b application.TimelineEntry) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Rank, a.Rank), cmp.Compare(b.ID, a.ID))
}

func words(entries []application.TimelineEntry) []string {
	texts := make([]string, 0, len(entries))
	for _, m := range entries {
		texts = append(texts, fmt.Sprintf("%s %d %s %s",
			m.At.Format(time.RFC3339Nano), m.Rank, m.Name, m.ID))
	}
	return texts
}

func TestTimelineRefusals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	for _, limit := range []int{0, -1, postgres.MaxPage + 1} {
		_, err := w.Applications.Timeline(t.Context(), uuid.New(),
			application.TimelineFilter{Limit: limit})
		refused(t, err, lending.CodeValidation)
	}
	for _, text := range []string{
		"x", "e30", "bnVsbA", "eyJ0IjoiMjAyNi0wMS0wMVQwMDowMDowMFoiLCJyIjotMSwiaSI6IngifQ",
	} {
		_, err := application.ParseEntryCursor(text)
		refused(t, err, lending.CodeValidation)
	}
}

// FuzzEntryCursor checks that a cursor that can be parsed is formatted with the same meaning.
func FuzzEntryCursor(f *testing.F) {
	f.Add("")
	f.Add(application.EntryCursor{At: time.Unix(0, 0).UTC(), Rank: 3, ID: "x"}.String())
	f.Fuzz(func(t *testing.T, text string) {
		cursor, err := application.ParseEntryCursor(text)
		if err != nil {
			return
		}
		again, err := application.ParseEntryCursor(cursor.String())
		if err != nil || !again.At.Equal(cursor.At) || again.Rank != cursor.Rank ||
			again.ID != cursor.ID {
			t.Errorf("%q became %+v", text, again)
		}
	})
}
