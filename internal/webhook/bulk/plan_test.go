package bulk_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/webhook/bulk"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/webhooktest"
)

// statistics are statements that set up what the planner may know of a table that grew.
// The cost of planning must grow with the matching rows and not with their square, even
// if the planner expects none by its statistics.
var statistics = map[string]string{
	"with statistics of few": `ANALYZE`, "without statistics": ``,
}

func TestPlanningGrowsWithWhatMatches(t *testing.T) {
	t.Parallel()
	for name, analyze := range statistics {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			planningGrows(t, analyze)
		})
	}
}

func planningGrows(t *testing.T, analyze string) {
	h := webhooktest.New(t)
	subscribed, _ := h.Subscribe(t, "https://hooks.example.com", nil)
	h.ManyFailed(t, 10)
	h.Exec(t, `UPDATE deliveries SET state = 'delivered'`)
	h.Exec(t, analyze)
	began := h.Clock.Now()
	h.ManyFailed(t, 1000)
	recorder := pgtest.Record(t, h.DB)
	recovery := bulk.Scope{
		PartnerUID: h.Partner, Kind: bulk.KindRecover, Since: began, ByEvent: true,
		Subscriptions: []uuid.UUID{subscribed.UID}, Merchants: []uuid.UUID{h.Merchant},
	}
	measure := func(scope bulk.Scope, found int) float64 {
		uid := h.Draft(t, scope, nil)
		recorder.Take()
		plan := h.Plan(t, uid)
		if all := plan.Total + plan.Skips(); all != found {
			t.Fatalf("a %s finds %d, want %d", scope.Kind, all, found)
		}
		work := 0.0
		for _, query := range recorder.Take() {
			if strings.Contains(query.Text, "judged") || strings.Contains(query.Text, "matching") {
				work += workOf(t, h, query)
			}
		}
		return work
	}
	failed := h.Everything()
	failed.Filter.SubscriptionUID, failed.Filter.State = subscribed.UID, delivery.StateFailed
	works := func(count int) map[string]float64 {
		late, _ := h.Subscribe(t, "https://hooks.example.com/late", nil)
		replay := bulk.Scope{
			PartnerUID: h.Partner, Kind: bulk.KindReplay, Since: began,
			Subscriptions: []uuid.UUID{late.UID},
		}
		found := map[string]float64{
			"recover": measure(recovery, count),
			"filter":  measure(failed, count),
			"replay":  measure(replay, count),
		}
		h.Delete(t, late.UID)
		other := h.Begin(t, h.Everything(), nil)
		found["beside another"] = measure(recovery, count)
		h.Do(t, func(ctx context.Context, tx *postgres.Tx) error {
			_, err := h.Bulk.Cancel(ctx, tx, other)
			return err
		})
		return found
	}
	few := works(1000)
	h.ManyFailed(t, 3000)
	for name, work := range works(4000) {
		if work > 5*few[name] {
			t.Errorf("%s: %.0f steps for four times as many as took %.0f", name, work, few[name])
		}
	}
}

// TestSendingGrowsWithWhatGoes: a portion costs only its own items, however many there are.
func TestSendingGrowsWithWhatGoes(t *testing.T) {
	t.Parallel()
	for name, analyze := range statistics {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := webhooktest.New(t)
			subscribed, _ := h.Subscribe(t, "https://hooks.example.com", nil)
			h.ManyFailed(t, 10)
			h.Exec(t, analyze)
			recovery := bulk.Scope{
				PartnerUID: h.Partner, Kind: bulk.KindRecover, Since: h.Clock.Now(), ByEvent: true,
				Subscriptions: []uuid.UUID{subscribed.UID}, Merchants: []uuid.UUID{h.Merchant},
			}
			recorder := pgtest.Record(t, h.DB)
			portionOf := func(count int) (work float64) {
				h.ManyFailed(t, count)
				uid := h.Begin(t, recovery, func(o *bulk.Options) {
					o.Pace, o.SkipNewer = bulk.MaxPace, true
				})
				h.Clock.Move(time.Second)
				recorder.Take()
				h.Advance(t, uid, 1)
				for _, query := range recorder.Take() {
					if strings.Contains(query.Text, "'waiting'") {
						work += workOf(t, h, query)
					}
				}
				return work
			}
			if few, many := portionOf(2000), portionOf(6000); few == 0 || many > 2*few {
				t.Errorf("of 8,000 a portion took %.0f steps, of 2,000 %.0f", many, few)
			}
		})
	}
}

// workOf is how many rows a query reads, compares and passes on.
func workOf(t *testing.T, h *webhooktest.Harness, query pgtest.Query) float64 {
	t.Helper()
	var text []byte
	err := h.DB.QueryRowContext(t.Context(),
		`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) `+query.Text, query.Args...).Scan(&text)
	if err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan planStep }
	if err := json.Unmarshal(text, &plans); err != nil || len(plans) != 1 {
		t.Fatalf("reading a plan: %v", err)
	}
	return plans[0].Plan.work()
}

// planStep is a step of a plan. Rows are per loop.
type planStep struct {
	Rows    float64 `json:"Actual Rows"`
	Loops   float64 `json:"Actual Loops"`
	Removed float64 `json:"Rows Removed by Filter"`
	Unequal float64 `json:"Rows Removed by Join Filter"`
	Recheck float64 `json:"Rows Removed by Index Recheck"`
	Plans   []planStep
}

func (s planStep) work() float64 {
	sum := s.Loops * (1 + s.Rows + s.Removed + s.Unequal + s.Recheck)
	for _, part := range s.Plans {
		sum += part.work()
	}
	return sum
}
