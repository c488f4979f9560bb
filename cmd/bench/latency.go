package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// moments are the times when something happened, by application.
type moments struct {
	mu sync.Mutex
	at map[uuid.UUID]time.Time
}

func newMoments() *moments { return &moments{at: map[uuid.UUID]time.Time{}} }

func (m *moments) note(uid uuid.UUID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at[uid] = at
}

// noteArrival notes the arrival of a webhook by the application in its body.
func (m *moments) noteArrival(at time.Time, body []byte) {
	var payload struct {
		ApplicationUID uuid.UUID `json:"application_id"`
	}
	_ = json.Unmarshal(body, &payload) // an unreadable one is missing later
	m.note(payload.ApplicationUID, at)
}

// timeTo returns, for each application, the time from its moment here to its moment in other.
func (m *moments) timeTo(other *moments, uids []uuid.UUID) (timing, error) {
	var took timing
	for _, uid := range uids {
		from, to := m.at[uid], other.at[uid]
		if from.IsZero() || to.IsZero() {
			return timing{}, fmt.Errorf("the webhook of application %s is missing", uid)
		}
		took.each = append(took.each, to.Sub(from))
	}
	return took, nil
}

// warmUps is how many precede a measurement, to open connections and prepare statements.
const warmUps = 20

// latency measures the time from a commit to the arrival of its webhook.
func (b *bench) latency(ctx context.Context, open *cleanup, secured bool) error {
	b.say("latency over %s: %d events/s for %d s", schemeName(secured), b.sizes.rate, b.sizes.seconds)
	arrivals := newMoments()
	count := b.sizes.rate * b.sizes.seconds
	set, err := b.stage(ctx, open, scene{
		endpoints: 1, secured: secured, arrived: arrivals.noteArrival, borrowers: count + warmUps,
	})
	if err != nil {
		return err
	}
	uids := set.uids
	var sending, committed *moments
	err = working(ctx, []*harness{set.harness}, func() (err error) {
		if _, _, err = set.harness.publish(ctx, uids[:warmUps], 100); err != nil {
			return err
		}
		if err := set.targets.waitForWebhooks(ctx, warmUps); err != nil {
			return err
		}
		sending, committed, err = set.harness.publish(ctx, uids[warmUps:], float64(b.sizes.rate))
		if err != nil {
			return err
		}
		return set.targets.waitForWebhooks(ctx, len(uids))
	})
	if err != nil {
		return err
	}
	if err := set.targets.check(len(uids)); err != nil {
		return err
	}
	floor, err := drive(ctx, 1, count, barePosts(set.targets, 1))
	if err != nil {
		return err
	}
	for _, from := range []struct {
		name     string
		moments  *moments
		p50, p99 string
	}{
		{"from the commit's return", committed, "< 5 ms", "< 20 ms"},
		{"from sending the commit", sending, "", ""},
	} {
		took, err := from.moments.timeTo(arrivals, uids[warmUps:])
		if err != nil {
			return err
		}
		b.report.addTimes(row{
			Section: fmt.Sprintf("webhook arrival at %d events/s", b.sizes.rate),
			Name:    schemeName(secured) + ", " + from.name, FloorName: "one bare signed POST",
		}, took, floor, share{"p50", 0.5, from.p50}, share{"p99", 0.99, from.p99})
	}
	return nil
}

// borrowers prepares count different applications, whose tenants, one for each endpoint, take
// turns.
func (h *harness) borrowers(ctx context.Context, urls []string, count int) ([]uuid.UUID, error) {
	each := (count + len(urls) - 1) / len(urls)
	groups := make([][]uuid.UUID, len(urls))
	for i, url := range urls {
		owner, err := h.newTenant(ctx, fmt.Sprintf("Tenant %d", i+1), url)
		if err != nil {
			return nil, err
		}
		if groups[i], err = h.applications(ctx, owner, created, each); err != nil {
			return nil, err
		}
	}
	uids := make([]uuid.UUID, 0, each*len(urls))
	for i := range each {
		for _, group := range groups {
			uids = append(uids, group[i])
		}
	}
	return uids[:count], settle(ctx, h.DB)
}

// record makes the change that causes a webhook: the funding of a draw was requested.
func (h *harness) record(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	event := lending.FundingChanged(uid.String(), lending.FundingRequested)
	return h.Events.Record(ctx, tx, event)
}

// publish commits one event per application at a rate per second. A slow commit does not delay
// the next one. Sending is just before each COMMIT was sent, committed is after its response.
func (h *harness) publish(
	ctx context.Context, uids []uuid.UUID, rate float64,
) (sending, committed *moments, err error) {
	sending, committed = newMoments(), newMoments()
	err = pace{rate: rate}.run(ctx, len(uids), func(i int, _ time.Time) error {
		err := h.DB.InTx(ctx, func(tx *postgres.Tx) error {
			err := h.record(ctx, tx, uids[i])
			sending.note(uids[i], time.Now())
			return err
		})
		committed.note(uids[i], time.Now())
		return err
	})
	return sending, committed, err
}
