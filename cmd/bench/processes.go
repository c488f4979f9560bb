package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drawbridge/internal/postgres"
)

const (
	// slowAnswer is how long the slow endpoints take.
	slowAnswer = 200 * time.Millisecond
	// slowEndpoints have room for so few requests at a time that waiting, and not
	// the processors, bounds the rate of one process.
	slowEndpoints = 1
)

// processes measures how much two and four working processes deliver to slow
// endpoints, beside half as many.
func (b *bench) processes(ctx context.Context) error {
	floor, err := b.slowly(ctx, 1)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		count            int
		name, floor, aim string
	}{
		{2, "two processes", "one process", "> 1.7x the floor"},
		{4, "four processes", "two processes", ""},
	} {
		more, err := b.slowly(ctx, step.count)
		if err != nil {
			return err
		}
		b.report.add(row{
			Section: "deliveries to slow endpoints",
			Name:    fmt.Sprintf("%s, %d endpoint of %s", step.name, slowEndpoints, slowAnswer),
			Unit:    "/s", Value: more.rate(), Floor: floor.rate(),
			FloorName: step.floor, Aim: step.aim,
		})
		floor = more
	}
	return nil
}

// slowly works a backlog with a number of processes, each with services and
// connections of its own.
func (b *bench) slowly(ctx context.Context, workers int) (took timing, err error) {
	n := b.sizes.slow * workers
	b.say("slow endpoints: %d events, %d working processes", n, workers)
	set, err := b.stage(ctx, scene{endpoints: slowEndpoints, answer: slowAnswer})
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
