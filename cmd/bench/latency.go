package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/lending"
	"drawbridge/internal/postgres"
)

// latency measures from a commit to the arrival of its webhook, over HTTP and
// over TLS.
func (b *bench) latency(ctx context.Context) error {
	for _, secured := range []bool{false, true} {
		if err := b.latencyOver(ctx, secured); err != nil {
			return err
		}
	}
	return nil
}

// moments are when things happened, by application.
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

// noteArrival reads which application a webhook is about.
func (m *moments) noteArrival(at time.Time, body []byte) {
	var payload struct {
		ApplicationUID uuid.UUID `json:"application_id"`
	}
	_ = json.Unmarshal(body, &payload) // one that cannot be read is missed later
	m.note(payload.ApplicationUID, at)
}

// until is how long after each of these moments the other one was.
func (m *moments) until(other *moments) (timing, error) {
	var took timing
	for uid, from := range m.at {
		to, came := other.at[uid]
		if !came {
			return timing{}, fmt.Errorf("the webhook of application %s is missing", uid)
		}
		took.each = append(took.each, to.Sub(from))
	}
	return took, nil
}

// warmUps precede a measurement: connections are made, statements known.
const warmUps = 20

func (b *bench) latencyOver(ctx context.Context, secured bool) (err error) {
	scheme := schemeName(secured)
	b.say("latency over %s: %d events/s for %d s", scheme, b.sizes.rate, b.sizes.seconds)
	arrivals := newMoments()
	endpoint, err := newReceivers(ctx, 1, secured, arrivals.noteArrival)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endpoint.close()) }()
	h, err := b.newHouse(ctx, endpoint.roots)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	count := b.sizes.rate * b.sizes.seconds
	uids, err := h.borrowers(ctx, endpoint.urls, count+warmUps)
	if err != nil {
		return err
	}
	stop, err := h.work(ctx)
	if err != nil {
		return err
	}
	run := pacedRun{house: h, sending: newMoments(), committed: newMoments()}
	err = run.warmUp(ctx, uids[:warmUps], endpoint)
	if err == nil {
		err = run.publish(ctx, uids[warmUps:], b.sizes.rate)
	}
	if err == nil {
		err = waitUntil(ctx, func() (bool, error) {
			return endpoint.count.Load() >= int64(len(uids)), nil
		})
	}
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if err := endpoint.check(len(uids)); err != nil {
		return err
	}
	floor, err := drive(ctx, 1, count, barePosts(endpoint, 1))
	if err != nil {
		return err
	}
	return b.reportLatency(scheme, run, arrivals, floor)
}

func (b *bench) reportLatency(
	scheme string, run pacedRun, arrivals *moments, floor timing,
) error {
	sinceReturn, err := run.committed.until(arrivals)
	if err != nil {
		return err
	}
	sinceSending, err := run.sending.until(arrivals)
	if err != nil {
		return err
	}
	for _, from := range []struct {
		name     string
		took     timing
		p50, p99 string
	}{
		{"from the commit's return", sinceReturn, "< 5 ms", "< 20 ms"},
		{"from sending the commit", sinceSending, "", ""},
	} {
		for _, q := range []struct {
			name  string
			share float64
			aim   string
		}{{"p50", 0.5, from.p50}, {"p99", 0.99, from.p99}} {
			b.report.add(row{
				Section:   fmt.Sprintf("webhook arrival at %d events/s", b.sizes.rate),
				Name:      fmt.Sprintf("%s, %s, %s", scheme, from.name, q.name),
				Unit:      "ms",
				Value:     milliseconds(from.took.quantile(q.share)),
				Floor:     milliseconds(floor.quantile(q.share)),
				FloorName: "one bare signed POST, " + q.name, Aim: q.aim,
			})
		}
	}
	return nil
}

// borrowers prepares applications of as many tenants as there are endpoints,
// taking turns, and returns count of them, each its own.
func (h *house) borrowers(ctx context.Context, urls []string, count int) ([]uuid.UUID, error) {
	each := (count + len(urls) - 1) / len(urls)
	groups := make([][]uuid.UUID, len(urls))
	for i, url := range urls {
		owner, err := h.newTenant(ctx, fmt.Sprintf("Tenant %d", i+1), url)
		if err != nil {
			return nil, err
		}
		original, err := h.newApplication(ctx, owner, uuid.Nil, created)
		if err != nil {
			return nil, err
		}
		if groups[i], err = h.clone(ctx, original, each); err != nil {
			return nil, err
		}
	}
	uids := make([]uuid.UUID, 0, each*len(urls))
	for i := range each {
		for _, group := range groups {
			uids = append(uids, group[i])
		}
	}
	return uids[:count], settle(ctx, h.db)
}

// record is the change that is told: the funding of a draw was requested.
func (h *house) record(ctx context.Context, tx *postgres.Tx, uid uuid.UUID) error {
	event, _ := lending.FundingChanged(uid.String(), lending.FundingRequested)
	return h.events.Record(ctx, tx, event)
}

// pacedRun publishes at a steady rate and keeps when.
type pacedRun struct {
	house *house
	// sending is just before the COMMIT went out, committed after its answer.
	sending, committed *moments
}

// publish commits one event per application at the rate per second. A slow
// commit does not hold up the next one.
func (r pacedRun) publish(ctx context.Context, uids []uuid.UUID, rate int) error {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	errs := make([]error, len(uids))
	var group sync.WaitGroup
	for i, uid := range uids {
		group.Go(func() { errs[i] = r.commit(ctx, uid) })
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	group.Wait()
	return errors.Join(errs...)
}

func (r pacedRun) commit(ctx context.Context, uid uuid.UUID) error {
	err := r.house.db.InTx(ctx, func(tx *postgres.Tx) error {
		err := r.house.record(ctx, tx, uid)
		r.sending.note(uid, time.Now())
		return err
	})
	r.committed.note(uid, time.Now())
	return err
}

// warmUp commits events until they arrive, and forgets them.
func (r pacedRun) warmUp(ctx context.Context, uids []uuid.UUID, endpoint *receivers) error {
	unmeasured := pacedRun{house: r.house, sending: newMoments(), committed: newMoments()}
	if err := unmeasured.publish(ctx, uids, 100); err != nil {
		return err
	}
	return waitUntil(ctx, func() (bool, error) {
		return endpoint.count.Load() >= int64(len(uids)), nil
	})
}

func schemeName(secured bool) string {
	if secured {
		return "TLS"
	}
	return "HTTP"
}
