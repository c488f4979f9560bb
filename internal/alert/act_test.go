package alert_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/alert"
	"drawbridge/internal/lending"
	"drawbridge/internal/operator"
	"drawbridge/internal/postgres"
)

func TestPeopleWorkTheQueue(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.fail(1)
	h.look()
	item, _ := h.open(alert.KindUsedUp)
	const sam, address = "sam@lender.example", "192.0.2.7"
	until := h.clock.Now().Add(time.Hour)
	steps := []struct {
		name string
		do   func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error)
		code lending.Code
		// waiting, asleep and mine are the counts of the open, the snoozed and Sam's items.
		waiting, asleep, mine int
	}{
		{"take", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Take(ctx, tx, item.UID, sam)
		}, "", 1, 0, 1},
		{"take again", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Take(ctx, tx, item.UID, sam)
		}, "", 1, 0, 1},
		{"snooze into the past", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Snooze(ctx, tx, item.UID, h.clock.Now())
		}, lending.CodeValidation, 1, 0, 1},
		{"snooze", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Snooze(ctx, tx, item.UID, until)
		}, "", 0, 1, 1},
		{"wake", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Wake(ctx, tx, item.UID)
		}, "", 1, 0, 1},
		{"release", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Release(ctx, tx, item.UID)
		}, "", 1, 0, 0},
		{"resolve without a note", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Resolve(ctx, tx, item.UID, "  ", sam)
		}, lending.CodeValidation, 1, 0, 0},
		{"resolve", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Resolve(ctx, tx, item.UID, "re-sent by the partner", sam)
		}, "", 0, 0, 0},
		{"resolve twice", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Resolve(ctx, tx, item.UID, "again", sam)
		}, lending.CodeInvalidState, 0, 0, 0},
		{"another", func(ctx context.Context, tx *postgres.Tx) (operator.Outcome, error) {
			return h.Take(ctx, tx, uuid.New(), sam)
		}, lending.CodeNotFound, 0, 0, 0},
	}
	for _, step := range steps {
		_, err := h.Operators.Act(t.Context(), operator.Change{
			Actor: sam, Address: address, Do: step.do,
		})
		if step.code == "" && err != nil || step.code != "" && lending.ErrorCode(err) != step.code {
			t.Errorf("%s: %v, want %q", step.name, err, step.code)
		}
		got := [3]int{
			h.counted(alert.Filter{State: alert.Waiting}),
			h.counted(alert.Filter{State: alert.Snoozed}),
			h.counted(alert.Filter{Owner: sam}),
		}
		if want := [3]int{step.waiting, step.asleep, step.mine}; got != want {
			t.Errorf("%s: %v items, want %v", step.name, got, want)
		}
	}
	var audited []string
	h.must(h.DB.SelectContext(t.Context(), &audited, `
		SELECT action FROM audit_log WHERE subject = $1 AND actor = $2 AND address = $3
		 ORDER BY entry_id`, item.UID.String(), sam, address))
	if got := strings.Join(audited, " "); got != "attention.take attention.snooze attention.wake "+
		"attention.release attention.resolve" {
		t.Errorf("audited: %s", got)
	}
	closed, err := h.Service.Get(t.Context(), item.UID)
	if err != nil || closed.Note != "re-sent by the partner" || closed.ClosedBy != sam {
		t.Errorf("closed: %+v, %v", closed, err)
	}
}

func (h *harness) counted(filter alert.Filter) int {
	h.Helper()
	count, err := h.Service.Count(h.Context(), filter, 100)
	h.must(err)
	return count
}

func TestASnoozedItemComesBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.fail(1)
	h.look()
	item, _ := h.open(alert.KindUsedUp)
	h.do(func(ctx context.Context, tx *postgres.Tx) error {
		_, err := h.Snooze(ctx, tx, item.UID, tx.Now.Add(3*time.Hour))
		return err
	})
	h.fail(1) // only counts up
	if _, ok := h.open(alert.KindUsedUp); ok {
		h.Fatal("a snoozed item is in sight")
	}
	h.move(4 * time.Hour)
	h.look()
	if item, ok := h.open(alert.KindUsedUp); !ok || item.Count != 2 {
		t.Errorf("after the snooze: %+v", item)
	}
}

func TestListPages(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for i := range 7 {
		h.exec(`
			INSERT INTO attention_items (item_uid, kind, subject, severity, detail, count,
			                             opened_at, last_seen_at)
			VALUES ($1, 'mail_failed', $2, 'problem', '', 1, $3, $3)`,
			uuid.New(), i, h.clock.Now().Add(-time.Duration(i/2)*time.Minute))
	}
	var seen []string
	page := postgres.Paging{Limit: 3}
	for {
		items, next, err := h.List(t.Context(), alert.Filter{State: alert.Waiting}, page)
		h.must(err)
		for _, item := range items {
			seen = append(seen, item.UID.String())
		}
		if page.From = next; next.IsZero() {
			break
		}
	}
	distinct := map[string]bool{}
	for _, uid := range seen {
		distinct[uid] = true
	}
	if len(seen) != 7 || len(distinct) != 7 {
		t.Errorf("the pages hold %d items, %d of them distinct", len(seen), len(distinct))
	}
	_, _, err := h.List(t.Context(), alert.Filter{}, postgres.Paging{})
	if lending.ErrorCode(err) != lending.CodeValidation {
		t.Errorf("a page without a limit: %v", err)
	}
}
