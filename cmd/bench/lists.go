package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"drawbridge/internal/lists"
)

// listsCmd measures how long the console's list pages take, over HTTP, in a running
// Drawbridge: each filter alone, every pair of filters, and some of three; the first
// page, the next one, and one deep in the list. It measures the filters' pickers likewise.
type listsCmd struct {
	URL      string        `help:"URL of the server of the console." default:"http://127.0.0.1:8080" name:"url"`
	Email    string        `help:"E-mail address to sign in with." default:"admin@drawbridge.example"`
	Password string        `help:"Password to sign in with." env:"LISTS_PASSWORD"`
	Only     string        `help:"Measure only lists whose path contains this."`
	Check    bool          `help:"Fail if a list exceeds its bound."`
	Bound    time.Duration `help:"Bound of the p95 of a list." default:"100ms"`
	Picker   time.Duration `help:"Bound of the p95 of a picker." default:"50ms"`
	Rounds   int           `help:"Number of requests per address." default:"1"`
	Triples  int           `help:"Number of combinations of three filters." default:"150"`
	Pairs    int           `help:"Number of pairs of values of every two filters; 0 for all." default:"0"`
	Out      string        `help:"Write the figures to a file, one JSON document per line." placeholder:"FILE"`
}

// Run measures and prints the table.
func (c *listsCmd) Run(w *world) error {
	visitor, err := lists.SignIn(w.ctx, c.URL, c.Email, c.Password)
	if err != nil {
		return err
	}
	pages, err := lists.Pages(w.ctx, visitor, time.Now())
	if err != nil {
		return err
	}
	var found []listFigure
	for _, page := range pages {
		if !strings.Contains(page.Path, c.Only) {
			continue
		}
		plan := lists.Plan{Pairs: c.Pairs, Triples: c.Triples}
		addresses, err := page.Addresses(w.ctx, visitor, plan)
		if err != nil {
			return fmt.Errorf("finding the filters of %s: %w", page.Path, err)
		}
		took, err := visit(w.ctx, visitor, addresses, c.Rounds, page.Next)
		if err != nil {
			return err
		}
		found = append(found, newListFigure(page.Path, took, c.Bound))
	}
	for _, kind := range lists.Pickers {
		path := lists.PickerPath(kind)
		if !strings.Contains(path, c.Only) {
			continue
		}
		var typed []lists.Address
		for _, address := range lists.Typed(path) {
			typed = append(typed, lists.Address{Path: address})
		}
		took, err := visit(w.ctx, visitor, typed, c.Rounds*typedPerRound,
			func(string) string { return "" })
		if err != nil {
			return err
		}
		found = append(found, newListFigure(path, took, c.Picker))
	}
	return c.report(w, found)
}

// typedPerRound is how often per round each text is typed into a picker, as there are few texts.
const typedPerRound = 5

// visit measures pages in random order, and the next page of each, and returns the times by
// address. Filters that exclude each other are left out.
func visit(
	ctx context.Context, v *lists.Visitor, addresses []lists.Address, rounds int,
	next func(page string) string,
) (map[string][]time.Duration, error) {
	took := map[string][]time.Duration{}
	for range rounds {
		for _, i := range rand.Perm(len(addresses)) {
			for path, follow := addresses[i].Path, true; path != ""; follow = false {
				began := time.Now()
				page, err := v.Get(ctx, path)
				if errors.Is(err, lists.ErrRefused) && addresses[i].Filters > 1 {
					break
				}
				if err != nil {
					return nil, err
				}
				took[path] = append(took[path], time.Since(began))
				path = ""
				if follow {
					path = next(page)
				}
			}
		}
	}
	return took, nil
}

// listFigure is how long the pages of one list took, from the request to the last
// byte of the answer.
type listFigure struct {
	Path string `json:"path"`
	// Addresses is how many pages were requested.
	Addresses int     `json:"addresses"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	P99       float64 `json:"p99_ms"`
	Max       float64 `json:"max_ms"`
	// Slowest are the pages that took longest.
	Slowest []slowPage `json:"slowest"`
	// bound is the limit for the p95.
	bound time.Duration
}

// slowPage is a page and the median of its times.
type slowPage struct {
	Address string  `json:"address"`
	Took    float64 `json:"took_ms"`
}

func newListFigure(path string, took map[string][]time.Duration, bound time.Duration) listFigure {
	f := listFigure{Path: path, Addresses: len(took), bound: bound}
	var all []time.Duration
	for address, times := range took {
		all = append(all, times...)
		f.Slowest = append(f.Slowest, slowPage{address, milliseconds(quantile(times, 0.5))})
	}
	for q, into := range map[float64]*float64{.5: &f.P50, .95: &f.P95, .99: &f.P99, 1: &f.Max} {
		*into = milliseconds(quantile(all, q))
	}
	const named = 8
	slices.SortFunc(f.Slowest, func(a, b slowPage) int { return cmp.Compare(b.Took, a.Took) })
	f.Slowest = f.Slowest[:min(len(f.Slowest), named)]
	return f
}

// maxBoundFactor is how many times the bound of a list its slowest page may take.
const maxBoundFactor = 3

// report prints the table and writes the file; it returns an error if a list exceeds its bound.
func (c *listsCmd) report(w *world, found []listFigure) error {
	t := newTable(w.out, "list", "pages", "p50 ms", "p95 ms", "p99 ms", "max ms")
	lines := make([]any, 0, len(found))
	var errs []error
	for _, f := range found {
		t.line(f.Path, strconv.Itoa(f.Addresses), digits(f.P50), digits(f.P95), digits(f.P99),
			digits(f.Max))
		lines = append(lines, f)
		if c.Check && f.P95 > milliseconds(f.bound) {
			errs = append(errs, fmt.Errorf("%s took %.1f ms at p95, more than %s: %w",
				f.Path, f.P95, f.bound, errFailed))
		}
		if c.Check && f.Max > milliseconds(maxBoundFactor*f.bound) {
			errs = append(errs, fmt.Errorf("%s took %.1f ms at most, more than %d times %s: %w",
				f.Path, f.Max, maxBoundFactor, f.bound, errFailed))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, f := range found {
		for _, slow := range f.Slowest {
			fmt.Fprintf(w.out, "    %9.1f ms %s\n", slow.Took, slow.Address)
		}
	}
	return errors.Join(writeLines(c.Out, lines...), errors.Join(errs...))
}
