package application_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/app/apptest"
	"drawbridge/internal/application"
	"drawbridge/internal/lending"
	"drawbridge/internal/loan"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/internal/webhook/subscription"
)

// timelineOf returns a timeline in chronological order, one word per entry.
func timelineOf(
	t *testing.T, w *apptest.Harness, uid uuid.UUID, kinds ...application.EntryKind,
) []string {
	t.Helper()
	timeline, err := w.Applications.Timeline(t.Context(), uid, application.TimelineFilter{
		Kinds: kinds, Limit: 400,
	})
	if err != nil {
		t.Fatal(err)
	}
	if !timeline.Next.IsZero() {
		t.Error("a short timeline is cut")
	}
	var words []string
	for _, entry := range slices.Backward(timeline.Entries) {
		words = append(words, string(entry.Kind)+": "+entry.Name+" "+entry.State)
	}
	return words
}

// live returns a loan with a delivery, a mail, a draw, a document, a task and an operator's
// action, and the timeline that it must have.
func live(t *testing.T) (w *apptest.Harness, uid uuid.UUID, want []string) {
	t.Helper()
	clock := apptest.NewClock()
	w = apptest.NewAt(t, clock)
	step := func(use func(ctx context.Context, tx *postgres.Tx) error) {
		t.Helper()
		clock.Move(1e9)
		w.Do(t, use)
	}
	app := w.Loan(t, w.NewProduct(t, "SOLAR", "50,50"))
	uid = app.UID
	w.Webhooks.Subscriptions.Policy = sender.Policy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true,
	}
	step(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := w.Webhooks.Subscriptions.Subscribe(ctx, tx, w.Partner, subscription.Settings{
			URL: "http://127.0.0.1:9009/hook", Auth: sender.AuthNone,
			Events: []string{subscription.AllEvents},
		}, "test")
		return err
	})
	clock.Move(1e9)
	draw := w.Draw(t, uid, loan.DrawInput{})
	step(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Applications.RecordDocument(ctx, tx, w.Caller(), uid, lending.DocumentSent)
		return err
	})
	step(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Applications.AddTask(ctx, tx, w.Caller(), uid, "Sign here")
		return err
	})
	step(func(ctx context.Context, tx *postgres.Tx) error {
		_, _, err := w.Loans.MoveFunding(ctx, tx, apptest.Operator(), draw.ID,
			lending.FundingChange{Status: lending.FundingCancelled})
		if err != nil {
			return err
		}
		return operator.Audit(ctx, tx, operator.Entry{
			Actor: "olga@lender.example", Action: "draw.cancel", SubjectKind: "application",
			Subject: uid.String(), Reason: "asked by phone",
		})
	})
	return w, uid, []string{
		"status: application.created partner",
		"status: application.status.update Hard Pull Authorization",
		"email: stipulation suppressed",
		"email: welcome queued",
		"status: application.status.update Approved",
		"funding: draw.requested regular",
		"funding: disbursement.funding.status-changed FUNDING_REQUESTED",
		"document: document.sent DOCUMENT_SENT",
		"task: task.created Pending",
		"email: task queued",
		"funding: draw.cancelled regular",
		"funding: disbursement.funding.cancelled FUNDING_CANCELLED",
		"operator: draw.cancel application",
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	w, uid, want := live(t)
	got := timelineOf(t, w, uid)
	// The order of what one transaction caused is not guaranteed.
	for _, words := range [][]string{got, want} {
		slices.Sort(words[2:4])
	}
	same(t, "the timeline", got, want...)

	other := w.Application(t)
	same(t, "another application's", timelineOf(t, w, other.UID), want[0])
	same(t, "nobody's", timelineOf(t, w, uuid.New()))
}

func TestTimelineByKind(t *testing.T) {
	t.Parallel()
	w, uid, all := live(t)
	for _, kind := range application.EntryKinds() {
		var want []string
		for _, word := range all {
			if strings.HasPrefix(word, string(kind)+": ") {
				want = append(want, word)
			}
		}
		got := timelineOf(t, w, uid, kind)
		slices.Sort(got)
		slices.Sort(want)
		same(t, string(kind), got, want...)
	}
	got := timelineOf(t, w, uid, application.EntryTask, application.EntryOperator)
	same(t, "two kinds", got, all[8], all[12])
}

// A re-send and its audit entry belong to the application of the delivery.
func TestTimelineTellsWhoResent(t *testing.T) {
	t.Parallel()
	w, uid, _ := live(t)
	first := w.DeliveriesOf(t, uid)[0]
	later := w.DB.Now().Add(time.Second)
	w.DB.Now = func() time.Time { return later }
	w.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := w.Webhooks.Deliveries.Resend(ctx, tx, []uuid.UUID{first.UID}, "sam@lender.example",
			"lost")
		if err != nil {
			return err
		}
		return operator.Audit(ctx, tx, operator.Entry{
			Actor: "sam@lender.example", Action: "delivery.resend", SubjectKind: "delivery",
			Subject: first.UID.String(), Reason: "lost",
		})
	})
	timeline, err := w.Applications.Timeline(t.Context(), uid, application.TimelineFilter{Limit: 400})
	if err != nil {
		t.Fatal(err)
	}
	entry := timeline.Entries[0]
	if entry.Kind != application.EntryOperator || entry.Party != "sam@lender.example" ||
		entry.Text != "lost" {
		t.Errorf("latest entry %+v, want the operator's", entry)
	}
	outcome := outcomeOf(t, w, first)
	if outcome.Open != 2 || outcome.Total() != 2 || len(outcome.Deliveries) != 2 {
		t.Fatalf("the event's outcome is %+v, want two deliveries under way", outcome)
	}
	if resent := outcome.Deliveries[1]; resent.ResendOf == nil || *resent.ResendOf != first.UID ||
		resent.URL != "http://127.0.0.1:9009/hook" {
		t.Errorf("the second delivery %+v, want the re-send", resent)
	}
}

// outcomeOf returns the outcome of the event of a delivery.
func outcomeOf(t *testing.T, w *apptest.Harness, of delivery.Delivery) delivery.EventOutcome {
	t.Helper()
	found, err := w.Webhooks.Deliveries.EventOutcomes(t.Context(), []uuid.UUID{of.EventUID},
		of.EventAt)
	if err != nil {
		t.Fatal(err)
	}
	return found[of.EventUID]
}

func TestTimelineUsesIndexes(t *testing.T) {
	t.Parallel()
	w, uid, _ := live(t)
	for _, statement := range []string{
		`INSERT INTO audit_log (at, actor, address, action, subject_kind, subject)
		 SELECT now(), 'a', 'b', 'c', 'delivery', gen_random_uuid() FROM generate_series(1, 20000)`,
		`ANALYZE audit_log`,
	} {
		if _, err := w.DB.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	recorder := pgtest.Record(t, w.DB)
	filter := application.TimelineFilter{Limit: 100}
	if _, err := w.Applications.Timeline(t.Context(), uid, filter); err != nil {
		t.Fatal(err)
	}
	checkPlan(t, w, "audit_log", recorder)
}
