package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/google/uuid"
)

const (
	// healthy endpoints confirm at once, failing ones answer 500, a hanging one
	// not at all.
	healthyEndpoints = 10
	failingEndpoints = 5
	hangingEndpoints = 1
	// isolationRate is in events per second over all endpoints.
	isolationRate = 150
)

// isolation measures from a commit to the arrival at healthy endpoints while
// others hang and fail, beside the same without those.
func (b *bench) isolation(ctx context.Context) error {
	alone, err := b.arrivals(ctx, false)
	if err != nil {
		return err
	}
	among, err := b.arrivals(ctx, true)
	if err != nil {
		return err
	}
	b.report.addTimes(row{
		Section: "arrival at healthy endpoints while others are sick",
		Name: fmt.Sprintf("%d events, %d hanging and %d failing of %d endpoints", b.sizes.isolated,
			hangingEndpoints, failingEndpoints, healthyEndpoints+failingEndpoints+hangingEndpoints),
		FloorName: "without the sick ones",
	}, among, alone, share{"p50", 0.5, ""}, share{"p99", 0.99, "< 2x the floor"})
	return nil
}

// arrivals publishes events to all endpoints, or to the healthy ones alone, and
// returns how long after their commits those of the healthy ones arrived.
func (b *bench) arrivals(ctx context.Context, withSick bool) (took timing, err error) {
	var open ends
	defer open.run(&err)
	b.say("isolation: events to healthy endpoints, sick ones beside them: %t", withSick)
	arrived := newMoments()
	set, err := b.stage(ctx, &open, scene{endpoints: healthyEndpoints, arrived: arrived.noteArrival})
	if err != nil {
		return timing{}, err
	}
	failing := listen(failingEndpoints+hangingEndpoints, false, sick())
	open.add(failing.close)
	urls := slices.Concat(set.targets.urls, failing.urls)
	uids, err := set.house.borrowers(ctx, urls, b.sizes.isolated)
	if err != nil {
		return timing{}, err
	}
	// Borrowers come in turns, those with a healthy endpoint first.
	var well []uuid.UUID
	for i, uid := range uids {
		if i%len(urls) < healthyEndpoints {
			well = append(well, uid)
		}
	}
	told, rate := uids, float64(isolationRate)
	if !withSick {
		told, rate = well, rate*float64(len(well))/float64(len(uids))
	}
	run := pacedRun{house: set.house, sending: newMoments(), committed: newMoments()}
	err = working(ctx, []*house{set.house}, func() error {
		if err := run.publish(ctx, told, rate); err != nil {
			return err
		}
		if err := set.targets.came(ctx, len(well)); err != nil {
			return err
		}
		return failing.close() // what hangs ends with its endpoint
	})
	if err != nil {
		return timing{}, err
	}
	if err := set.targets.check(len(well)); err != nil {
		return timing{}, err
	}
	return run.committed.until(arrived, well)
}

// sick answers the hosts that it meets: all but one with an error, the first never.
func sick() http.Handler {
	var hanging atomic.Value
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hanging.CompareAndSwap(nil, r.Host); hanging.Load() == r.Host {
			<-r.Context().Done()
			return
		}
		http.Error(w, "out of order", http.StatusInternalServerError)
	})
}
