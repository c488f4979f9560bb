// Command lists measures how long the console's list pages take, over HTTP, in
// a running Drawbridge: each filter alone, every pair of filters, and some of
// three; the first page, the next one, and one deep in the list. It prints a
// table, and with -check fails when the 95th percentile of a list is over the
// bound.
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
	"os"
	"os/signal"
	"strings"
	"time"

	"drawbridge/internal/lists"
)

// errSlow marks a run in which a list was over the bound.
var errSlow = errors.New("a list is over the bound")

// options are what the command line asks for.
type options struct {
	url, email, password, only string
	bound                      time.Duration
	plan                       lists.Plan
	check, json                bool
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
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	visitor, err := lists.SignIn(ctx, o.url, o.email, o.password)
	if err != nil {
		return err
	}
	pages, err := lists.Pages(ctx, visitor, time.Now())
	if err != nil {
		return err
	}
	var figures []lists.Figure
	for _, page := range pages {
		if !strings.Contains(page.Path, o.only) {
			continue
		}
		figure, err := page.Measure(ctx, visitor, o.plan)
		if err != nil {
			return err
		}
		figures = append(figures, figure)
	}
	return report(out, figures, o)
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("lists", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&o.url, "url", "http://127.0.0.1:8080", "where the console is")
	flags.StringVar(&o.email, "email", "admin@drawbridge.example", "who signs in")
	flags.StringVar(&o.password, "password", os.Getenv("LISTS_PASSWORD"), "their password")
	flags.StringVar(&o.only, "only", "", "measure lists whose path has this in it")
	flags.BoolVar(&o.check, "check", false, "fail when a list is over the bound")
	flags.DurationVar(&o.bound, "bound", 100*time.Millisecond, "what p95 of a list may be")
	flags.IntVar(&o.plan.Rounds, "rounds", 1, "how often each address is asked for")
	flags.IntVar(&o.plan.Triples, "triples", 150, "how many combinations of three filters")
	flags.IntVar(&o.plan.Pairs, "pairs", 0, "how many pairs of values of each two filters, 0 for all")
	flags.BoolVar(&o.json, "json", false, "print one JSON document")
	return o, flags.Parse(args)
}

func report(out io.Writer, figures []lists.Figure, o options) error {
	if o.json {
		if err := json.NewEncoder(out).Encode(map[string]any{"lists": figures}); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
	} else {
		printTable(out, figures)
	}
	for _, f := range figures {
		if bound := float64(o.bound.Microseconds()) / 1000; o.check && f.P95 > bound {
			return fmt.Errorf("%s took %.1f ms at p95, more than %s: %w", f.Path, f.P95, o.bound, errSlow)
		}
	}
	return nil
}

func printTable(out io.Writer, figures []lists.Figure) {
	fmt.Fprintf(out, "%-24s %7s %9s %9s %9s %9s\n",
		"list", "pages", "p50 ms", "p95 ms", "p99 ms", "max ms")
	for _, f := range figures {
		fmt.Fprintf(out, "%-24s %7d %9.1f %9.1f %9.1f %9.1f\n",
			f.Path, f.Addresses, f.P50, f.P95, f.P99, f.Max)
	}
	for _, f := range figures {
		for _, slow := range f.Slowest {
			fmt.Fprintf(out, "    %9.1f ms %s\n", slow.Took, slow.Address)
		}
	}
}
