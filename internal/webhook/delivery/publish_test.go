package delivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/subscription"
	"drawbridge/internal/webhook/webhooktest"
)

// jobRow is a row of the queue as JSON, without its number and its times.
func jobRow(t *testing.T, h *webhooktest.Harness, where string) (row, args map[string]any) {
	t.Helper()
	var text []byte
	err := h.DB.GetContext(t.Context(), &text, `
		SELECT to_jsonb(j) - 'id' - 'created_at' - 'scheduled_at' FROM river_job j WHERE `+where)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &row); err != nil {
		t.Fatal(err)
	}
	args, _ = row["args"].(map[string]any)
	delete(row, "args")
	return row, args
}

// The job that publishing writes is the one that the queue's own client would write; a
// new release of the queue with different rows fails here.
func TestPublishWritesTheQueuesOwnRow(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	h.Subscribe(t, "https://127.0.0.1/hook", nil)
	began := time.Now()
	h.Publish(t)
	ours, args := jobRow(t, h, `true`)
	var job delivery.Args
	text, err := json.Marshal(args)
	if err == nil {
		err = json.Unmarshal(text, &job)
	}
	if err != nil {
		t.Fatal(err)
	}
	found := h.List(t)[0]
	if job.DeliveryUID != found.UID || !job.CreatedAt.Equal(found.CreatedAt) || job.Number != 1 {
		t.Errorf("the job is of %+v, the delivery %s of %s", job, found.UID, found.CreatedAt)
	}
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		if _, err := tx.ExecContext(ctx, `UPDATE river_job SET kind = 'ours'`); err != nil {
			return err
		}
		_, err := h.Deliveries.Jobs.InsertManyFastTx(ctx, tx.Tx.Tx, []river.InsertManyParams{{Args: job}})
		return err
	})
	theirs, theirArgs := jobRow(t, h, `kind <> 'ours'`)
	equal(t, "the row", ours, theirs)
	// Both write the time, with or without trailing zeros.
	args["created_at"] = theirArgs["created_at"]
	equal(t, "the arguments", args, theirArgs)
	var prompt bool
	err = h.DB.GetContext(t.Context(), &prompt, `
		SELECT created_at = scheduled_at AND created_at BETWEEN $1 AND $2
		  FROM river_job WHERE kind = 'ours'`, began.Add(-time.Millisecond), time.Now())
	if err != nil || !prompt {
		t.Errorf("the job was not made just now to run at once (%v)", err)
	}
}

func equal(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	gotText, _ := json.Marshal(got)
	wantText, _ := json.Marshal(want)
	if !bytes.Equal(gotText, wantText) {
		t.Errorf("%s is\n%s, the queue's own\n%s", what, gotText, wantText)
	}
}

// The workers are notified of a job as the queue's own client would do it, and only of
// events that have a job.
func TestPublishTellsTheQueue(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	listener, err := pgx.Connect(ctx, h.DB.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(context.Background()) })
	var topic string
	err = listener.QueryRow(ctx, `SELECT current_schema() || '.river_insert'`).Scan(&topic)
	if err == nil {
		_, err = listener.Exec(ctx, `LISTEN `+pgx.Identifier{topic}.Sanitize())
	}
	if err != nil {
		t.Fatal(err)
	}
	h.Publish(t) // no subscription wants it, so it must not use up the notification
	h.Subscribe(t, "https://127.0.0.1/hook", nil)
	h.Publish(t)
	ours, err := listener.WaitForNotification(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Jobs.InsertManyFastTx(ctx, tx.Tx.Tx, []river.InsertManyParams{
			{Args: delivery.Args{}},
		})
		return err
	})
	theirs, err := listener.WaitForNotification(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if ours.Channel != theirs.Channel || ours.Payload != theirs.Payload {
		t.Errorf("told %s on %s, the queue's own client %s on %s",
			ours.Payload, ours.Channel, theirs.Payload, theirs.Channel)
	}
}

func TestPublishForNoApplication(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	event := h.NewEvent()
	event.ApplicationUID = postgres.NewUID(h.Clock.Now())
	err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Deliveries.Publish(ctx, tx, event)
		return err
	})
	if err == nil {
		t.Error("an event of no application was published")
	}
}

// The database writes the time into the body in the format of the body renderer.
func TestPublishedBodyIsTheRenderedOne(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	samples := []lending.Event{lending.TaskCreated(lending.SampleApplicationUID,
		"<b>\"ä\u2028\U0001f600\" & \\u0041\\</b>", lending.TaskPending)}
	for _, kind := range lending.AllEventKinds() {
		sample, err := lending.SampleEvent(kind)
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, sample)
	}
	for _, sample := range samples {
		var err error
		event, kind := h.NewEvent(), sample.Kind
		event.Kind, event.Status = kind, sample.Status
		if event.Head, event.Tail, err = sample.RenderAround(); err != nil {
			t.Fatal(err)
		}
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Deliveries.Publish(ctx, tx, event)
			return err
		})
		found, err := h.Deliveries.EventByUID(t.Context(), event.UID)
		if err != nil {
			t.Fatal(err)
		}
		want, err := sample.Render(found.OccurredAt)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(found.Body, want) {
			t.Errorf("%s has the body\n%s, want\n%s", kind, found.Body, want)
		}
	}
}

// "all" means the specification's kinds; the two others are sent to subscriptions that name them.
func TestOptInKindsGoToWhoNamesThem(t *testing.T) {
	t.Parallel()
	h := webhooktest.New(t)
	chosen := map[string][]string{
		"/all":  {"all"},
		"/both": {"all", "disbursement.funding.returned"},
		"/one":  {"disbursement.funding.returned"},
	}
	for path, events := range chosen {
		h.Subscribe(t, "https://127.0.0.1"+path, func(s *subscription.Settings) {
			s.Events = events
		})
	}
	for kind, want := range map[lending.EventKind]int{
		lending.EventFundingSettled: 2, lending.EventFundingReturned: 2,
		lending.EventFundingCancelled: 0,
	} {
		event := h.NewEvent()
		event.Kind = kind
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			made, err := h.Deliveries.Publish(ctx, tx, event)
			if made.Deliveries != want {
				t.Errorf("%s made %d deliveries, want %d", kind, made.Deliveries, want)
			}
			return err
		})
		interests, err := h.Subscriptions.Interests(t.Context(), h.Partner, h.Merchant)
		if err != nil || interests[kind].Subscriptions != want {
			t.Errorf("%s interests %d (%v), want %d", kind, interests[kind].Subscriptions, err, want)
		}
	}
	err := h.Try(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE subscriptions SET events = ARRAY['all', 'task.created']`)
		return err
	})
	if err == nil {
		t.Error(`the database takes "all" beside a kind that it includes`)
	}
}
