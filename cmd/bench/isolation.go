package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"drawbridge/internal/webhook/delivery"
)

// isolationRate is in events per second over all endpoints.
const isolationRate = 150

// crowd is who gets events in a measurement of isolation.
type crowd struct {
	// healthy endpoints confirm at once, failing ones answer 500, one that hangs not at all.
	healthy, failing int
	hangs            bool
	// waiting deliveries are due at the one that hangs before anything else.
	waiting int
}

func (c crowd) sick() int {
	if c.hangs {
		return c.failing + 1
	}
	return c.failing
}

// isolation measures from a commit to the arrival at healthy endpoints while
// others hang and fail, beside the same without those.
func (b *bench) isolation(ctx context.Context) error {
	few := crowd{healthy: 10, failing: 5, hangs: true}
	err := b.besideTheSick(ctx, few, fmt.Sprintf("%d events, 1 hanging and %d failing of %d endpoints",
		b.sizes.isolated, few.failing, few.healthy+few.sick()))
	if err != nil {
		return err
	}
	many := crowd{healthy: 100, hangs: true, waiting: b.sizes.hanging}
	return b.besideTheSick(ctx, many, fmt.Sprintf("%d events, %d waiting at 1 hanging of %d endpoints",
		b.sizes.isolated, many.waiting, many.healthy+many.sick()))
}

// besideTheSick adds the rows of a crowd.
func (b *bench) besideTheSick(ctx context.Context, c crowd, name string) error {
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

// arrivals publishes events to all endpoints, or to the healthy ones alone, and
// returns how long after their commits those of the healthy ones arrived.
func (b *bench) arrivals(ctx context.Context, c crowd, withSick bool) (took timing, err error) {
	var open ends
	defer open.run(&err)
	b.say("isolation: events to %d healthy endpoints, sick ones beside them: %t", c.healthy, withSick)
	arrived := newMoments()
	set, err := b.stage(ctx, &open, scene{endpoints: c.healthy, arrived: arrived.noteArrival})
	if err != nil {
		return timing{}, err
	}
	failing := listen(c.sick(), false, sick())
	open.add(failing.close)
	urls := slices.Concat(set.targets.urls, failing.urls)
	uids, err := set.house.borrowers(ctx, urls, b.sizes.isolated)
	if err != nil {
		return timing{}, err
	}
	// Borrowers come in turns, those with a healthy endpoint first.
	var well []uuid.UUID
	for i, uid := range uids {
		if i%len(urls) < c.healthy {
			well = append(well, uid)
		}
	}
	told, rate := uids, float64(isolationRate)
	if !withSick {
		told, rate = well, rate*float64(len(well))/float64(len(uids))
	}
	if withSick && c.waiting > 0 {
		if err := set.house.pile(ctx, c.waiting, failing.urls[0]); err != nil {
			return timing{}, err
		}
		if err := settle(ctx, set.house.DB); err != nil {
			return timing{}, err
		}
	}
	run := pacedRun{house: set.house, sending: newMoments(), committed: newMoments()}
	err = working(ctx, []*house{set.house}, func() error {
		if err := b.aside(ctx, set.house); err != nil {
			return err
		}
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

// aside waits until what was piled up for the endpoint that hangs is set aside, but for what
// is under way there: only then does it wait.
func (b *bench) aside(ctx context.Context, h *house) error {
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
