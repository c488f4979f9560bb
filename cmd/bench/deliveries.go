package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/postgres"
)

const (
	// publishers commit at the same time.
	publishers = 16
	// backlogBatch is how many events of a backlog are committed together: how
	// fast a backlog comes about is not what is measured.
	backlogBatch = 100
	// backlogBorrowers is how many applications the events are about.
	backlogBorrowers = 1000
)

// deliveries measures how many events a second reach the state "attempt
// recorded" from a backlog that was there before the worker.
func (b *bench) deliveries(ctx context.Context) error {
	empty, err := b.emptyJobs(ctx)
	if err != nil {
		return err
	}
	for _, secured := range []bool{false, true} {
		for _, endpoints := range []int{1, b.sizes.endpoints} {
			scene := scene{secured: secured, endpoints: endpoints, empty: empty}
			if err := b.backlog(ctx, scene); err != nil {
				return fmt.Errorf("%s: %w", scene, err)
			}
		}
	}
	return nil
}

// scene says where deliveries go.
type scene struct {
	secured   bool
	endpoints int
	// answer is how long the endpoints take, 0 for at once.
	answer time.Duration
	// empty is how fast the queue works jobs that do nothing.
	empty timing
}

// String names the scene in the table.
func (s scene) String() string {
	noun := "endpoints"
	if s.endpoints == 1 {
		noun = "endpoint"
	}
	return fmt.Sprintf("%s, %d %s", schemeName(s.secured), s.endpoints, noun)
}

// stage sets a scene: endpoints, the services and the applications of tenants
// that send there.
func (b *bench) stage(ctx context.Context, s scene) (*stageSet, error) {
	targets, err := newReceivers(ctx, s.endpoints, s.secured, nil)
	if err != nil {
		return nil, err
	}
	targets.delay.Store(int64(s.answer))
	set := &stageSet{targets: targets}
	if set.house, err = b.newHouse(ctx, targets.roots); err == nil {
		set.uids, err = set.house.borrowers(ctx, targets.urls, max(backlogBorrowers, s.endpoints))
	}
	if err != nil {
		return nil, errors.Join(err, set.close())
	}
	return set, nil
}

// stageSet is what a scene is played on.
type stageSet struct {
	targets *receivers
	house   *house
	uids    []uuid.UUID
}

func (s *stageSet) close() error {
	err := s.targets.close()
	if s.house != nil {
		err = errors.Join(err, s.house.close())
	}
	return err
}

// publish commits n events in batches, as many transactions at a time as there
// are publishers.
func (s *stageSet) publish(ctx context.Context, n, batch int) error {
	_, err := drive(ctx, publishers, (n+batch-1)/batch, func(ctx context.Context, _, i int) error {
		return s.house.db.InTx(ctx, func(tx *postgres.Tx) error {
			for event := i * batch; event < min((i+1)*batch, n); event++ {
				if err := s.house.record(ctx, tx, s.uids[event%len(s.uids)]); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return err
}

// delivered waits until n attempts are recorded and checks that nothing was
// sent twice and nothing failed.
func (s *stageSet) delivered(ctx context.Context, n int) error {
	err := waitUntil(ctx, func() (bool, error) { return s.targets.count.Load() >= int64(n), nil })
	if err != nil {
		return err
	}
	// The last answers are on their way into the database.
	return waitUntil(ctx, func() (bool, error) {
		var open bool
		err := s.house.db.GetContext(ctx, &open,
			`SELECT EXISTS (SELECT FROM deliveries WHERE state IN ('pending', 'retrying'))`)
		return !open, err
	})
}

// check tells whether n deliveries took one successful attempt each.
func (s *stageSet) check(ctx context.Context, n int) error {
	var found int
	err := s.house.db.GetContext(ctx, &found, `
		SELECT count(*)
		  FROM deliveries d
		  JOIN attempts a ON a.delivery_uid = d.delivery_uid
		                 AND a.delivery_created_at = d.created_at
		 WHERE d.state = 'delivered'
		   AND d.attempt_count = 1
		   AND a.http_status = 204`)
	if err != nil {
		return fmt.Errorf("counting attempts: %w", err)
	}
	if found != n {
		return fmt.Errorf("%d deliveries have their one successful attempt recorded, want %d", found, n)
	}
	return s.targets.check(n)
}

// backlog measures a worker that finds everything waiting.
func (b *bench) backlog(ctx context.Context, s scene) (err error) {
	n := b.sizes.events
	b.say("deliveries over %s: a backlog of %d events", s, n)
	set, err := b.stage(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.close()) }()
	if err := set.publish(ctx, n, backlogBatch); err != nil {
		return err
	}
	if err := settle(ctx, set.house.db); err != nil {
		return err
	}
	clock, err := b.clock(n)
	if err != nil {
		return err
	}
	stop, err := set.house.work(ctx)
	if err != nil {
		return err
	}
	err = set.delivered(ctx, n)
	took, clockErr := clock()
	if err := errors.Join(err, clockErr, stop()); err != nil {
		return err
	}
	if err := set.check(ctx, n); err != nil {
		return err
	}
	jobs, err := b.postJobs(ctx, set.targets)
	if err != nil {
		return err
	}
	posts, err := drive(ctx, webhookWorkers, n, barePosts(set.targets, webhookWorkers))
	if err != nil {
		return err
	}
	b.reportRate("deliveries from a backlog", s.String(), took, []floor{
		{"River, one bare signed POST per job", jobs, "> 0.7"},
		{"River, empty jobs", s.empty, ""},
		{"bare signed POSTs, no database", posts, ""},
	})
	return nil
}

// stream measures publishing and delivering at the same time, one transaction
// per event.
func (b *bench) stream(ctx context.Context) (err error) {
	s, n := scene{endpoints: 1}, b.sizes.events
	b.say("deliveries over %s: %d events, a transaction each", s, n)
	set, err := b.stage(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.close()) }()
	stop, err := set.house.work(ctx)
	if err != nil {
		return err
	}
	clock, err := b.clock(n)
	if err != nil {
		return errors.Join(err, stop())
	}
	err = set.publish(ctx, n, 1)
	if err == nil {
		err = set.delivered(ctx, n)
	}
	took, clockErr := clock()
	if err := errors.Join(err, clockErr, stop()); err != nil {
		return err
	}
	if err := set.check(ctx, n); err != nil {
		return err
	}
	jobs, err := b.streamedJobs(ctx, set.targets)
	if err != nil {
		return err
	}
	b.reportRate("deliveries while publishing, one transaction per event", s.String(), took,
		[]floor{{"River, a job inserted per transaction and POSTed", jobs, "> 1500/s"}})
	return nil
}

// floor is a rate to compare with.
type floor struct {
	name string
	took timing
	aim  string
}

func (b *bench) reportRate(section, name string, took timing, floors []floor) {
	for _, floor := range floors {
		b.report.add(row{
			Section: section, Name: name, Unit: "/s", Value: took.rate(),
			Floor: floor.took.rate(), FloorName: floor.name, Aim: floor.aim,
		})
	}
	b.report.add(row{
		Section: section, Name: name + ", processor time each", Unit: "µs",
		Value:     microseconds(took.processorEach()),
		Floor:     microseconds(floors[0].took.processorEach()),
		FloorName: floors[0].name,
	})
}
