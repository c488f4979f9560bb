// Command lists measures how long the console's list pages take, over HTTP, in
// a running Drawbridge: each filter alone, every pair of filters, and some of
// three. It prints a table and fails when the slowest list's 95th percentile is
// over the bound.
//
//	drawbridge seed && drawbridge serve &
//	lists -url http://127.0.0.1:8080 -email admin@drawbridge.example -password ...
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"time"
)

// errSlow marks a run in which a list was over the bound.
var errSlow = errors.New("a list is over the bound")

// options are what the command line asks for.
type options struct {
	url, email, password string
	bound                time.Duration
	rounds, triples      int
	json                 bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lists:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	var o options
	flags := flag.NewFlagSet("lists", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&o.url, "url", "http://127.0.0.1:8080", "where the console is")
	flags.StringVar(&o.email, "email", "admin@drawbridge.example", "who signs in")
	flags.StringVar(&o.password, "password", os.Getenv("LISTS_PASSWORD"), "their password")
	flags.DurationVar(&o.bound, "bound", 100*time.Millisecond, "what p95 of a list may be")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each address is asked for")
	flags.IntVar(&o.triples, "triples", 60, "how many combinations of three filters")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	if err := flags.Parse(args); err != nil {
		return err
	}
	visitor, err := signIn(ctx, o)
	if err != nil {
		return err
	}
	var figures []figure
	for _, list := range lists {
		figure, err := measure(ctx, visitor, list, o)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", list.path, err)
		}
		figures = append(figures, figure)
	}
	return report(out, figures, o)
}

// figure is how long one list took, over all its addresses.
type figure struct {
	Path      string        `json:"path"`
	Addresses int           `json:"addresses"`
	P50       time.Duration `json:"p50_ns"`
	P95       time.Duration `json:"p95_ns"`
	Max       time.Duration `json:"max_ns"`
	// Slowest are the addresses that took longest.
	Slowest []sample `json:"slowest"`
}

// sample is one address and the median of its times.
type sample struct {
	Address string        `json:"address"`
	Took    time.Duration `json:"took_ns"`
}

// measure asks for every address of a list, in random order.
func measure(ctx context.Context, v *visitor, l list, o options) (figure, error) {
	addresses, err := l.addresses(ctx, v, o.triples)
	if err != nil {
		return figure{}, err
	}
	took := map[string][]time.Duration{}
	for range o.rounds {
		//nolint:gosec // nothing to guess
		rand.Shuffle(len(addresses), func(i, j int) {
			addresses[i], addresses[j] = addresses[j], addresses[i]
		})
		for _, address := range addresses {
			began := time.Now()
			if _, err := v.get(ctx, address); err != nil {
				return figure{}, err
			}
			took[address] = append(took[address], time.Since(began))
		}
	}
	return newFigure(l.path, took), nil
}

func newFigure(path string, took map[string][]time.Duration) figure {
	f := figure{Path: path, Addresses: len(took)}
	var all []time.Duration
	for address, times := range took {
		slices.Sort(times)
		all = append(all, times...)
		f.Slowest = append(f.Slowest, sample{address, times[len(times)/2]})
	}
	slices.Sort(all)
	f.P50, f.P95, f.Max = all[len(all)/2], all[len(all)*95/100], all[len(all)-1]
	slices.SortFunc(f.Slowest, func(a, b sample) int { return int(b.Took - a.Took) })
	f.Slowest = f.Slowest[:min(len(f.Slowest), 8)]
	return f
}

func report(out io.Writer, figures []figure, o options) error {
	if o.json {
		if err := json.NewEncoder(out).Encode(map[string]any{"lists": figures}); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	} else {
		fmt.Fprintf(out, "%-28s %9s %9s %9s %9s\n", "list", "addresses", "p50", "p95", "max")
		for _, f := range figures {
			fmt.Fprintf(out, "%-28s %9d %9s %9s %9s\n", f.Path, f.Addresses, ms(f.P50), ms(f.P95), ms(f.Max))
			for _, slow := range f.Slowest {
				fmt.Fprintf(out, "    %9s %s\n", ms(slow.Took), slow.Address)
			}
		}
	}
	for _, f := range figures {
		if f.P95 > o.bound {
			return fmt.Errorf("%s took %s at p95, more than %s: %w", f.Path, ms(f.P95), o.bound, errSlow)
		}
	}
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
