package lists

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Plan says how thoroughly to measure.
type Plan struct {
	// Rounds is how often each address is asked for.
	Rounds int
	// Pairs is how many pairs of values are tried of each two filters, 0 for all.
	Pairs int
	// Triples is how many combinations of three filters are tried on each list.
	Triples int
}

// Figure is how long the pages of one list took, from the request to the last
// byte of the answer, in milliseconds.
type Figure struct {
	Path string `json:"path"`
	// Addresses is how many pages were asked for.
	Addresses int     `json:"addresses"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
	// Slowest are the pages that took longest.
	Slowest []Sample `json:"slowest"`
}

// Sample is one page and the median of its times in milliseconds.
type Sample struct {
	Address string  `json:"address"`
	Took    float64 `json:"took_ms"`
}

// slowest is how many pages a figure names.
const slowest = 8

// Measure asks for the pages of a list in random order, and for the one that
// follows each.
func (p Page) Measure(ctx context.Context, v *Visitor, plan Plan) (Figure, error) {
	addresses, err := p.Addresses(ctx, v, plan)
	if err != nil {
		return Figure{}, fmt.Errorf("finding the filters of %s: %w", p.Path, err)
	}
	took := map[string][]time.Duration{}
	for range plan.Rounds {
		for _, i := range rand.Perm(len(addresses)) {
			if err := p.visit(ctx, v, addresses[i], took); err != nil {
				return Figure{}, err
			}
		}
	}
	return newFigure(p.Path, took), nil
}

// visit takes the time of a page and of the one that follows it. Filters that
// exclude each other are left out.
func (p Page) visit(
	ctx context.Context, v *Visitor, address Address, took map[string][]time.Duration,
) error {
	for path, follow := address.Path, true; path != ""; follow = false {
		began := time.Now()
		page, err := v.Get(ctx, path)
		if errors.Is(err, ErrRefused) && address.Filters > 1 {
			return nil
		}
		if err != nil {
			return err
		}
		took[path] = append(took[path], time.Since(began))
		path = ""
		if follow {
			path = nextOf(page, p.Path)
		}
	}
	return nil
}

func newFigure(path string, took map[string][]time.Duration) Figure {
	f := Figure{Path: path, Addresses: len(took)}
	var all []time.Duration
	for address, times := range took {
		slices.Sort(times)
		all = append(all, times...)
		f.Slowest = append(f.Slowest, Sample{address, millis(times[len(times)/2])})
	}
	slices.Sort(all)
	at := func(percent int) float64 { return millis(all[len(all)*percent/100]) }
	f.P50, f.P95, f.P99, f.Max = at(50), at(95), at(99), millis(all[len(all)-1])
	slices.SortFunc(f.Slowest, func(a, b Sample) int {
		if a.Took > b.Took {
			return -1
		}
		return 1
	})
	f.Slowest = f.Slowest[:min(len(f.Slowest), slowest)]
	return f
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
