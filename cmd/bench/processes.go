package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

const (
	// slowAnswer is how long a slow endpoint takes, and slowerAnswer one at which
	// even four processes are bounded by waiting and not by the processors.
	slowAnswer, slowerAnswer = 200 * time.Millisecond, time.Second
	// slowEndpoints have room for so few requests at a time that waiting, and not
	// the processors, bounds the rate of one process.
	slowEndpoints = 1
)

// processes measures how much several working processes deliver to slow
// endpoints, beside half as many.
func (b *bench) processes(ctx context.Context) error {
	for _, step := range []struct {
		answer time.Duration
		// each is how many events there are for each process, most how many
		// processes it goes up to.
		each, most int
	}{{slowAnswer, b.sizes.slow, 2}, {slowerAnswer, b.sizes.slower, 4}} {
		floor, err := b.slowly(ctx, 1, step.each, step.answer)
		if err != nil {
			return err
		}
		for count := 2; count <= step.most; count *= 2 {
			more, err := b.slowly(ctx, count, step.each*count, step.answer)
			if err != nil {
				return err
			}
			b.report.add(row{
				Section: "deliveries to slow endpoints",
				Name:    fmt.Sprintf("%s, %d endpoint of %s", inWords[count], slowEndpoints, step.answer),
				Unit:    "/s", Value: more.rate(), Floor: floor.rate(),
				FloorName: inWords[count/2], Aim: "> 1.7x the floor",
			})
			floor = more
		}
	}
	return nil
}

// inWords are the numbers of processes.
var inWords = map[int]string{1: "one process", 2: "two processes", 4: "four processes"}

// slowly works a backlog of n with a number of processes, each with services and
// connections of its own.
func (b *bench) slowly(
	ctx context.Context, workers, n int, answer time.Duration,
) (took timing, err error) {
	b.say("endpoints of %s: %d events, %d working processes", answer, n, workers)
	set, err := b.stage(ctx, scene{endpoints: slowEndpoints, answer: answer})
	if err != nil {
		return timing{}, err
	}
	defer func() { err = errors.Join(err, set.close()) }()
	if err := set.publish(ctx, n, backlogBatch); err != nil {
		return timing{}, err
	}
	if err := settle(ctx, set.house.db); err != nil {
		return timing{}, err
	}
	houses := []*house{set.house}
	defer func() {
		for _, another := range houses[1:] {
			err = errors.Join(err, another.close())
		}
	}()
	for len(houses) < workers {
		another, err := set.house.another(ctx)
		if err != nil {
			return timing{}, err
		}
		houses = append(houses, another)
	}
	clock, err := b.clock(n)
	if err != nil {
		return timing{}, err
	}
	var stops []func() error
	for _, h := range houses {
		stop, workErr := h.work(ctx)
		if workErr != nil {
			err = workErr
			break
		}
		stops = append(stops, stop)
	}
	if err == nil {
		err = set.delivered(ctx, n)
	}
	took, clockErr := clock()
	err = errors.Join(err, clockErr)
	for _, stop := range stops {
		err = errors.Join(err, stop())
	}
	if err == nil {
		err = set.check(ctx, n)
	}
	return took, err
}

// another wires the services of a second process on the same database.
func (h *house) another(ctx context.Context) (*house, error) {
	db, err := postgres.Open(ctx, h.db.URL())
	if err != nil {
		return nil, err
	}
	made, err := wire(db, settings{keys: h.keys})
	if err != nil {
		return nil, err
	}
	made.jobs.Documents = h.jobs.Documents
	return made, nil
}
