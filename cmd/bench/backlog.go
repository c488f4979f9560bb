package main

import (
	"context"
	"errors"
	"fmt"

	"drawbridge/internal/webhook"
)

// calledRate is how many calls of the API come per second while a backlog is
// worked off.
const calledRate = 20

// backlog500k measures how fast a worker delivers while very many deliveries wait
// behind those, beside an empty start, and what the API's callers notice.
func (b *bench) backlog500k(ctx context.Context) error {
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
	for _, q := range []struct {
		name  string
		share float64
		aim   string
	}{{"p50", 0.5, ""}, {"p99", 0.99, "< 2x the floor"}} {
		b.report.add(row{
			Section: section, Name: "request-draw meanwhile, " + q.name, Unit: "ms",
			Value:     milliseconds(full.called.quantile(q.share)),
			Floor:     milliseconds(full.idle.quantile(q.share)),
			FloorName: "no worker runs", Aim: q.aim,
		})
	}
	return nil
}

// drained is what was found while a backlog was worked off.
type drained struct {
	delivered timing
	// idle and called are calls of the API before and meanwhile.
	idle, called timing
}

// drain begins to work off a backlog and stops when as many were delivered as
// are measured, and all calls were made.
func (b *bench) drain(ctx context.Context, waiting, seconds int) (found drained, err error) {
	b.say("a backlog of %d deliveries", waiting)
	set, err := b.stage(ctx, scene{endpoints: b.sizes.endpoints})
	if err != nil {
		return drained{}, err
	}
	defer func() { err = errors.Join(err, set.close()) }()
	a := &apiRun{house: set.house}
	if err := a.open(ctx, set.targets.urls[0]); err != nil {
		return drained{}, err
	}
	defer func() { err = errors.Join(err, a.closeServer()) }()
	calls := calledRate * seconds
	original, err := set.house.newApplication(ctx, a.owner, a.product, opened)
	if err != nil {
		return drained{}, err
	}
	uids, err := set.house.clone(ctx, original, 2*calls+10)
	if err != nil {
		return drained{}, err
	}
	if err := set.house.pile(ctx, waiting); err != nil {
		return drained{}, err
	}
	if err := settle(ctx, set.house.db); err != nil {
		return drained{}, err
	}
	if _, err := a.paced(ctx, uids[:10]); err != nil { // connections, plans
		return drained{}, err
	}
	if found.idle, err = a.paced(ctx, uids[10:10+calls]); err != nil {
		return drained{}, err
	}
	clock, err := b.clock(b.sizes.drained)
	if err != nil {
		return drained{}, err
	}
	stop, err := set.house.work(ctx)
	if err != nil {
		return drained{}, err
	}
	called := make(chan error, 1)
	go func() {
		var err error
		found.called, err = a.paced(ctx, uids[10+calls:])
		called <- err
	}()
	err = waitUntil(ctx, func() (bool, error) {
		return set.targets.count.Load() >= int64(b.sizes.drained), nil
	})
	var clockErr error
	found.delivered, clockErr = clock()
	return found, errors.Join(err, clockErr, <-called, stop())
}

// closeServer ends what open began.
func (a *apiRun) closeServer() error {
	var errs []error
	for _, caller := range a.callers {
		errs = append(errs, caller.close())
	}
	if a.server != nil {
		errs = append(errs, a.server.Close())
	}
	return errors.Join(errs...)
}

// pile writes events, deliveries and jobs as publishing does, for applications in
// turn, but all at once: how a backlog came about is not what is measured.
func (h *house) pile(ctx context.Context, n int) error {
	_, err := h.db.ExecContext(ctx, `
		WITH subject AS (
			SELECT s.subscription_uid, a.application_uid, a.partner_uid, a.merchant_uid,
			       row_number() OVER (ORDER BY s.subscription_uid) - 1 AS place,
			       count(*) OVER () AS places
			  FROM subscriptions s
			  JOIN LATERAL (SELECT * FROM applications
			                 WHERE partner_uid = s.partner_uid LIMIT 1) a ON true
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
		  FROM delivery`, n, sampleBody, webhook.DeliverArgs{}.Kind(), webhook.Queue)
	if err != nil {
		return fmt.Errorf("piling up %d deliveries: %w", n, err)
	}
	return nil
}
