package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/webhook/delivery"
)

// calledRate is the number of API requests per second while a backlog is worked off.
const calledRate = 20

// backlog500k measures how fast a worker delivers with a very long backlog, compared with an
// empty start, and by how much API requests get slower.
func (b *bench) backlog500k(ctx context.Context, _ *cleanup) error {
	empty, err := b.drain(ctx, b.sizes.drained, (b.sizes.called+2)/3)
	if err != nil {
		return err
	}
	full, err := b.drain(ctx, b.sizes.waiting, b.sizes.called)
	if err != nil {
		return err
	}
	section := fmt.Sprintf("with %d deliveries waiting", b.sizes.waiting)
	b.report.add(row{
		Section: section, Name: fmt.Sprintf("deliveries, the first %d", b.sizes.drained),
		Unit: "/s", Value: full.delivered.rate(), Floor: empty.delivered.rate(),
		FloorName: "from an empty start", Aim: "> 0.7x the floor",
	})
	b.report.addTimes(
		row{Section: section, Name: "request-draw meanwhile", FloorName: "no worker runs"},
		full.called, full.idle, share{"p50", 0.5, ""}, share{"p99", 0.99, "< 1.5x the floor"})
	return nil
}

// drained is the result of working off a backlog.
type drained struct {
	delivered timing
	// idle and called are the times of API requests before and meanwhile.
	idle, called timing
}

// drain begins to work off a backlog and stops when the measured number was delivered and all
// API requests were made.
func (b *bench) drain(ctx context.Context, waiting, seconds int) (found drained, err error) {
	var open cleanup
	defer open.run(&err)
	b.say("a backlog of %d deliveries", waiting)
	set, err := b.stage(ctx, &open, scene{endpoints: b.sizes.endpoints, borrowers: backlogBorrowers})
	if err != nil {
		return drained{}, err
	}
	a, err := newAPIRun(ctx, &open, set.harness, set.targets.urls[0])
	if err != nil {
		return drained{}, err
	}
	calls := calledRate * seconds
	uids, err := set.harness.applications(ctx, a.owner, opened, 2*calls+10)
	if err != nil {
		return drained{}, err
	}
	err = errors.Join(set.harness.insertBacklog(ctx, waiting, ""), settle(ctx, set.harness.DB))
	if err != nil {
		return drained{}, err
	}
	if _, err := a.drawSteadily(ctx, uids[:10]); err != nil { // opens connections and prepares plans
		return drained{}, err
	}
	if found.idle, err = a.drawSteadily(ctx, uids[10:10+calls]); err != nil {
		return drained{}, err
	}
	clock, err := b.clock(b.sizes.drained)
	if err != nil {
		return drained{}, err
	}
	err = working(ctx, []*harness{set.harness}, func() error {
		called := make(chan error, 1)
		go func() {
			var err error
			found.called, err = a.drawSteadily(ctx, uids[10+calls:])
			called <- err
		}()
		err := set.targets.waitForWebhooks(ctx, b.sizes.drained)
		if err == nil {
			found.delivered, err = clock()
		}
		return errors.Join(err, <-called)
	})
	return found, err
}

// insertBacklog writes events, deliveries and jobs as publishing does, for each application in
// turn, but in one statement: creating the backlog is not measured. They are for the endpoint at
// url, or for all endpoints if url is empty.
func (h *harness) insertBacklog(ctx context.Context, n int, url string) error {
	_, err := h.DB.ExecContext(ctx, `
		WITH subject AS (
			SELECT s.subscription_uid, a.application_uid, a.partner_uid, a.merchant_uid,
			       row_number() OVER (ORDER BY s.subscription_uid) - 1 AS place,
			       count(*) OVER () AS places
			  FROM subscriptions s
			  JOIN LATERAL (SELECT * FROM applications
			                 WHERE partner_uid = s.partner_uid LIMIT 1) a ON true
			 WHERE $5 = '' OR s.url = $5
		), event AS (
			INSERT INTO events (event_uid, occurred_at, kind, partner_uid, merchant_uid,
			                    application_uid, status, body)
			SELECT drawbridge_uid(now()), now() + i * interval '1 microsecond',
			       'disbursement.funding.status-changed', partner_uid, merchant_uid,
			       application_uid, 'FUNDING_REQUESTED', $2
			  FROM generate_series(0, $1::integer - 1) AS i
			  JOIN subject ON place = i % places
			RETURNING event_uid, occurred_at, kind, application_uid, status
		), delivery AS (
			INSERT INTO deliveries (delivery_uid, created_at, subscription_uid, event_uid,
			                        event_at, event, application_uid, status, state,
			                        next_attempt_at, queued)
			SELECT drawbridge_uid(now()), e.occurred_at, s.subscription_uid, e.event_uid,
			       e.occurred_at, e.kind, e.application_uid, e.status, 'pending', now(), true
			  FROM event e
			  JOIN subject s USING (application_uid)
			RETURNING delivery_uid, created_at
		)
		INSERT INTO river_job (args, kind, max_attempts, priority, queue, scheduled_at)
		SELECT jsonb_build_object('delivery_uid', delivery_uid, 'created_at', created_at,
		                          'number', 1), $3, 100, 1, $4, now()
		  FROM delivery`, n, sampleBody, delivery.Args{}.Kind(), delivery.Queue, url)
	if err != nil {
		return fmt.Errorf("piling up %d deliveries: %w", n, err)
	}
	return nil
}

// drawSteadily requests a draw for one application after another at a steady rate, over one
// connection, and returns how long each request took.
func (a *apiRun) drawSteadily(ctx context.Context, uids []uuid.UUID) (timing, error) {
	found, err := a.callSeparately(ctx, callTask{Applications: uids, Callers: 1, Rate: calledRate})
	return timing{each: found.Took}, err
}

// isolationRate is the number of events per second for all endpoints together.
const isolationRate = 150

// crowd describes the endpoints in a measurement of isolation.
type crowd struct {
	// healthy endpoints confirm at once and failing ones answer 500; one more never answers.
	healthy, failing int
	// waiting is how many deliveries are already due at the hanging endpoint.
	waiting int
}

func (c crowd) failingCount() int { return c.failing + 1 }

// isolation measures arrivals at healthy endpoints with and without others that hang and fail.
func (b *bench) isolation(ctx context.Context, _ *cleanup) error {
	few := crowd{healthy: 10, failing: 5}
	err := b.measureIsolation(ctx, few, fmt.Sprintf(
		"%d events, 1 hanging and %d failing of %d endpoints",
		b.sizes.isolated, few.failing, few.healthy+few.failingCount()))
	if err != nil {
		return err
	}
	many := crowd{healthy: 100, waiting: b.sizes.hanging}
	return b.measureIsolation(ctx, many, fmt.Sprintf(
		"%d events, %d waiting at 1 hanging of %d endpoints",
		b.sizes.isolated, many.waiting, many.healthy+many.failingCount()))
}

// measureIsolation adds the rows for one crowd to the table.
func (b *bench) measureIsolation(ctx context.Context, c crowd, name string) error {
	alone, err := b.arrivals(ctx, c, false)
	if err != nil {
		return err
	}
	among, err := b.arrivals(ctx, c, true)
	if err != nil {
		return err
	}
	b.report.addTimes(row{
		Section: "arrival at healthy endpoints while others are sick", Name: name,
		FloorName: "without the sick ones",
	}, among, alone, share{"p50", 0.5, ""}, share{"p99", 0.99, "< 2x the floor"})
	return nil
}

// arrivals publishes events to all endpoints, or only to the healthy ones, and returns how long
// after its commit each event for a healthy endpoint arrived.
func (b *bench) arrivals(ctx context.Context, c crowd, toAll bool) (took timing, err error) {
	var open cleanup
	defer open.run(&err)
	b.say("isolation: events to %d healthy endpoints, failing ones alongside: %t", c.healthy, toAll)
	arrived := newMoments()
	set, err := b.stage(ctx, &open, scene{endpoints: c.healthy, arrived: arrived.noteArrival})
	if err != nil {
		return timing{}, err
	}
	failing := listen(c.failingCount(), false, failingHandler())
	open.add(failing.close)
	urls := slices.Concat(set.targets.urls, failing.urls)
	uids, err := set.harness.borrowers(ctx, urls, b.sizes.isolated)
	if err != nil {
		return timing{}, err
	}
	// borrowers assigns the endpoints in turn, the healthy ones first.
	var well []uuid.UUID
	for i, uid := range uids {
		if i%len(urls) < c.healthy {
			well = append(well, uid)
		}
	}
	chosen, rate := uids, float64(isolationRate)
	if !toAll {
		chosen, rate = well, rate*float64(len(well))/float64(len(uids))
	}
	if toAll && c.waiting > 0 {
		if err := set.harness.insertBacklog(ctx, c.waiting, failing.urls[0]); err != nil {
			return timing{}, err
		}
		if err := settle(ctx, set.harness.DB); err != nil {
			return timing{}, err
		}
	}
	var committed *moments
	err = working(ctx, []*harness{set.harness}, func() (err error) {
		if err := b.waitUntilHeld(ctx, set.harness); err != nil {
			return err
		}
		if _, committed, err = set.harness.publish(ctx, chosen, rate); err != nil {
			return err
		}
		if err := set.targets.waitForWebhooks(ctx, len(well)); err != nil {
			return err
		}
		return failing.close() // hanging requests end with their endpoint
	})
	if err != nil {
		return timing{}, err
	}
	if err := set.targets.check(len(well)); err != nil {
		return timing{}, err
	}
	return committed.timeTo(arrived, well)
}

// waitUntilHeld waits until the backlog of the hanging endpoint has been set aside, except for
// deliveries in flight; until then it is still in the queue ahead of the others.
func (b *bench) waitUntilHeld(ctx context.Context, h *harness) error {
	began := time.Now()
	err := waitUntil(ctx, func() (bool, error) {
		var queued int
		err := h.DB.GetContext(ctx, &queued, `
			SELECT count(*) FROM river_job WHERE queue = $1 AND state = 'available'`, delivery.Queue)
		return queued == 0, err
	})
	b.say("the queue was free after %s", time.Since(began).Round(time.Millisecond))
	return err
}

// failingHandler answers every host with an error, except the first one, which gets no answer.
func failingHandler() http.Handler {
	var hanging atomic.Value
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hanging.CompareAndSwap(nil, r.Host); hanging.Load() == r.Host {
			<-r.Context().Done()
			return
		}
		http.Error(w, "out of order", http.StatusInternalServerError)
	})
}
