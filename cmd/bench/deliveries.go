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
	// backlogBatch is how many events of a backlog are committed together: the speed of
	// creating a backlog is not measured.
	backlogBatch = 100
	// backlogBorrowers is the number of applications that have the events.
	backlogBorrowers = 1000
)

// stageSet has the endpoints, services and applications of a scene.
type stageSet struct {
	targets *receivers
	harness *harness
	uids    []uuid.UUID
}

// stage prepares a scene: endpoints, the services, and applications.
func (b *bench) stage(ctx context.Context, open *cleanup, s scene) (*stageSet, error) {
	targets := newReceivers(open, s)
	h, err := b.newHarness(ctx, open, targets.roots)
	if err != nil || s.borrowers == 0 {
		return &stageSet{targets: targets, harness: h}, err
	}
	uids, err := h.borrowers(ctx, targets.urls, s.borrowers)
	return &stageSet{targets, h, uids}, err
}

// publish commits n events in batches, with publishers transactions at a time.
func (s *stageSet) publish(ctx context.Context, n, batch int) error {
	_, err := drive(ctx, publishers, (n+batch-1)/batch, func(ctx context.Context, _, i int) error {
		return s.harness.DB.InTx(ctx, func(tx *postgres.Tx) error {
			for event := i * batch; event < min((i+1)*batch, n); event++ {
				if err := s.harness.record(ctx, tx, s.uids[event%len(s.uids)]); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return err
}

// delivered waits until n attempts are recorded.
func (s *stageSet) delivered(ctx context.Context, n int) error {
	if err := s.targets.waitForWebhooks(ctx, n); err != nil {
		return err
	}
	// The last outcomes may not be recorded yet.
	return waitUntil(ctx, func() (bool, error) {
		var open bool
		err := s.harness.DB.GetContext(ctx, &open,
			`SELECT EXISTS (SELECT FROM deliveries WHERE state IN ('pending', 'retrying'))`)
		return !open, err
	})
}

// check returns an error unless n deliveries had one successful attempt each.
func (s *stageSet) check(ctx context.Context, n int) error {
	var found int
	err := s.harness.DB.GetContext(ctx, &found, `
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

// workOff measures how long worker processes take for a backlog of n events.
func (b *bench) workOff(
	ctx context.Context, set *stageSet, harnesses []*harness, n int,
) (took timing, err error) {
	if err := set.publish(ctx, n, backlogBatch); err != nil {
		return timing{}, err
	}
	if err := errors.Join(set.harness.Outbox.Drain(ctx), settle(ctx, set.harness.DB)); err != nil {
		return timing{}, err
	}
	return b.deliver(ctx, set, harnesses, n, func() error { return nil })
}

// deliver measures how long worker processes take for n events, including those that publish
// adds meanwhile.
func (b *bench) deliver(
	ctx context.Context, set *stageSet, harnesses []*harness, n int, publish func() error,
) (took timing, err error) {
	clock, err := b.clock(n)
	if err != nil {
		return timing{}, err
	}
	err = working(ctx, harnesses, func() error {
		err := publish()
		if err == nil {
			err = set.delivered(ctx, n)
		}
		if err == nil {
			took, err = clock()
		}
		return err
	})
	if err != nil {
		return timing{}, err
	}
	return took, set.check(ctx, n)
}

// deliveries measures how many events a second have their attempt recorded, from a backlog that
// existed before the worker started.
func (b *bench) deliveries(ctx context.Context, _ *cleanup) error {
	empty, err := b.backlogOfJobs(ctx, nothing)
	if err != nil {
		return err
	}
	for _, secured := range []bool{false, true} {
		for _, endpoints := range []int{1, b.sizes.endpoints} {
			s := scene{secured: secured, endpoints: endpoints, borrowers: backlogBorrowers}
			err := withCleanups(func(open *cleanup) error { return b.backlog(ctx, open, s, empty) })
			if err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
	}
	return nil
}

// backlog measures a worker that starts with a full backlog, compared with a queue of empty
// jobs.
func (b *bench) backlog(ctx context.Context, open *cleanup, s scene, empty timing) error {
	n := b.sizes.events
	b.say("deliveries over %s: a backlog of %d events", s, n)
	set, err := b.stage(ctx, open, s)
	if err != nil {
		return err
	}
	took, err := b.workOff(ctx, set, []*harness{set.harness}, n)
	if err != nil {
		return err
	}
	jobs, err := b.backlogOfJobs(ctx, barePosts(set.targets, webhookWorkers))
	if err != nil {
		return err
	}
	posts, err := drive(ctx, webhookWorkers, n, barePosts(set.targets, webhookWorkers))
	if err != nil {
		return err
	}
	b.reportRate("deliveries from a backlog", s.String(), took, []floor{
		{"River, one bare signed POST per job", jobs, "> 0.75x the floor", ""},
		{"River, empty jobs", empty, "", ""},
		{"bare signed POSTs, no database", posts, "", ""},
	})
	return nil
}

// stream measures publishing and delivering at the same time, with one transaction per event.
func (b *bench) stream(ctx context.Context, open *cleanup) error {
	s, n := scene{endpoints: 1, borrowers: backlogBorrowers}, b.sizes.events
	b.say("deliveries over %s: %d events, a transaction each", s, n)
	set, err := b.stage(ctx, open, s)
	if err != nil {
		return err
	}
	took, err := b.deliver(ctx, set, []*harness{set.harness}, n, func() error {
		return set.publish(ctx, n, 1)
	})
	if err != nil {
		return err
	}
	// The floor is a transaction that only inserts a job, over lib/pq, and a job that only makes
	// a POST.
	h, err := b.newHarness(ctx, open, nil)
	if err != nil {
		return err
	}
	posts := barePosts(set.targets, webhookWorkers)
	jobs, err := b.floorQueue(ctx, h, posts, func() error {
		_, err := drive(ctx, publishers, n, h.insertJob)
		return err
	})
	if err != nil {
		return err
	}
	b.reportRate("deliveries while publishing, one transaction per event", s.String(), took,
		[]floor{{"River, a job inserted per transaction and POSTed", jobs, "> 0.9x the floor", ""}})
	return nil
}

// floor is a rate to compare with, and the aims for the rate and for the processor time per event.
type floor struct {
	name string
	took timing
	aim  string
	each string
}

func (b *bench) reportRate(section, name string, took timing, floors []floor) {
	for _, floor := range floors {
		b.report.add(row{
			Section: section, Name: name, Unit: "/s", Value: took.rate(),
			Floor: floor.took.rate(), FloorName: floor.name, Aim: floor.aim,
		})
	}
	each := func(t timing) float64 {
		return float64(t.processor) / float64(time.Microsecond) / float64(len(t.each))
	}
	b.report.add(row{
		Section: section, Name: name + ", processor time each", Unit: "µs",
		Value: each(took), Floor: each(floors[0].took), FloorName: floors[0].name,
		Aim: floors[0].each,
	})
}

const (
	// quickAnswer is how long a distant endpoint takes to answer, slowAnswer a slow one, and
	// slowerAnswer one that is so slow that even four processes are limited by waiting and not by
	// the processors.
	quickAnswer, slowAnswer, slowerAnswer = 20 * time.Millisecond, 200 * time.Millisecond, time.Second
	// slowEndpoints allow so few requests at a time that waiting, and not the processors,
	// limits the rate of one process.
	slowEndpoints = 1
)

// inWords are the numbers of processes in words.
var inWords = map[int]string{2: "two processes", 4: "four processes"}

// processes measures how much several worker processes deliver to slow endpoints, compared with
// that multiple of what one does.
func (b *bench) processes(ctx context.Context, _ *cleanup) error {
	for _, step := range []struct {
		answer time.Duration
		// each is the number of events for each process, most the largest number of
		// processes.
		each, most int
	}{
		{quickAnswer, 2 * b.sizes.slow, 4},
		{slowAnswer, b.sizes.slow, 2},
		{slowerAnswer, b.sizes.slower, 4},
	} {
		var one timing
		for count := 1; count <= step.most; count *= 2 {
			more, err := b.slowly(ctx, count, step.each*count, step.answer)
			if err != nil {
				return err
			}
			if count == 1 {
				one = more
				continue
			}
			line := row{
				Section: "deliveries to slow endpoints",
				Name:    fmt.Sprintf("%s, %d endpoint of %s", inWords[count], slowEndpoints, step.answer),
				Unit:    "/s", Value: more.rate(), Floor: one.rate() * float64(count),
				FloorName: "one process, so many times", Aim: "> 0.85x the floor",
			}
			b.report.add(line)
			line.Name, line.Unit, line.Aim = line.Name+", processors busy", "%", ""
			line.Value, line.Floor = more.busyShare()*100, one.busyShare()*100
			line.FloorName = "one process"
			b.report.add(line)
		}
	}
	return nil
}

// slowly works off a backlog of n events with a number of processes, each with its own services
// and connections.
func (b *bench) slowly(
	ctx context.Context, workers, n int, answer time.Duration,
) (took timing, err error) {
	var open cleanup
	defer open.run(&err)
	b.say("endpoints of %s: %d events, %d working processes", answer, n, workers)
	set, err := b.stage(ctx, &open,
		scene{endpoints: slowEndpoints, answer: answer, borrowers: backlogBorrowers})
	if err != nil {
		return timing{}, err
	}
	harnesses := []*harness{set.harness}
	for len(harnesses) < workers {
		another, err := openHarness(ctx, &open, set.harness.Settings, nil)
		if err != nil {
			return timing{}, err
		}
		harnesses = append(harnesses, another)
	}
	return b.workOff(ctx, set, harnesses, n)
}
