// Command soak loads the real program for a long time and judges whether it
// stays as it began: memory, goroutines, connections, queue, bloat and latency.
//
//	soak [-minutes 30] [-share 0.6] [-peak 30s] [-out soak.html] [-json] [-dir FOLDER]
//
// It starts a durable Postgres and the program in a process of its own, measures
// how much of the mixed load the machine can carry, and then offers a share of
// that at a steady pace. Samples are taken every few seconds. The report is one
// HTML page with plots; it ends with 1 unless every series is flat and every call
// succeeded. docs/PERFORMANCE.md says what is looked at and within which bounds.
//
//	main.go      the command line and the order of things
//	program.go   Postgres and the program under test
//	world.go     endpoints and mail server
//	calls.go     one call of each kind
//	traffic.go   the mix, the peak, the pace
//	sample.go    what is measured
//	series.go    slopes and verdicts
//	report.go    the page; plot.go its drawings
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
	"syscall"
	"text/tabwriter"
	"time"
)

var (
	// errUsage marks an error of the command line, which exits with status 2.
	errUsage = errors.New("wrong usage")
	// errNotFlat says that the run ended and found something.
	errNotFlat = errors.New("not everything stayed as it was; see the report")
)

// options are what the command line asks for.
type options struct {
	minutes, share float64
	peak, every    time.Duration
	out, dir       string
	json           bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(exitStatus(err))
}

// exitStatus reports an error and returns the status to exit with.
func exitStatus(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "soak:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Float64Var(&o.minutes, "minutes", 30, "how long the load lasts")
	flags.Float64Var(&o.share, "share", 0.6, "which share of the measured peak is offered")
	flags.DurationVar(&o.peak, "peak", 30*time.Second, "how long the peak is measured")
	flags.DurationVar(&o.every, "every", 5*time.Second, "the time between two samples")
	flags.StringVar(&o.out, "out", "soak.html", "write the report to `FILE`")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "keep the data under `FOLDER`")
	flags.BoolVar(&o.json, "json", false, "print one JSON document instead of the table")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	case flags.NArg() > 0:
		return o, fmt.Errorf("%w: %q is not an option; soak takes no arguments", errUsage, flags.Arg(0))
	case o.minutes <= 0 || o.share <= 0 || o.share > 1 || o.every <= 0 || o.peak <= 0:
		return o, fmt.Errorf("%w: times must be positive, and -share at most 1", errUsage)
	}
	return o, nil
}

func command(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	result, err := soak(ctx, o, errs)
	if err != nil {
		return err
	}
	if err := writeReport(o.out, result); err != nil {
		return err
	}
	if err := result.print(out, o.json); err != nil {
		return err
	}
	fmt.Fprintln(errs, "report:", o.out)
	if !result.flat() {
		return errNotFlat
	}
	return nil
}

// result is a run and what it found.
type result struct {
	At       time.Time      `json:"at"`
	Minutes  float64        `json:"minutes"`
	Machine  string         `json:"machine"`
	Peak     float64        `json:"peak_calls_per_second"`
	Offered  float64        `json:"offered_calls_per_second"`
	Calls    int64          `json:"calls"`
	Failures map[string]int `json:"failures"`
	Series   []series       `json:"series"`
}

// flat tells whether every series is, and no call failed.
func (r *result) flat() bool {
	for _, one := range r.Series {
		if !one.Verdict.Flat {
			return false
		}
	}
	return len(r.Failures) == 0
}

// soak runs the whole of it.
func soak(ctx context.Context, o options, progress io.Writer) (_ *result, err error) {
	say := func(format string, args ...any) { fmt.Fprintf(progress, "  "+format+"\n", args...) }
	outside, err := newOutside(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, outside.close()) }()
	p, err := startProgram(ctx, o, outside, say)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	t, err := newTraffic(ctx, p)
	if err != nil {
		return nil, err
	}
	say("measuring the peak for %s", o.peak)
	peak, err := t.peak(ctx, o.peak)
	if err != nil {
		return nil, err
	}
	if err := p.drain(ctx); err != nil {
		return nil, err
	}
	offered := peak * o.share
	length := time.Duration(o.minutes * float64(time.Minute))
	say("peak %.0f calls/s; offering %.0f calls/s for %s", peak, offered, length)
	r := &result{
		At: time.Now().UTC(), Minutes: o.minutes, Machine: p.machine(ctx), Peak: peak, Offered: offered,
	}
	sampler := &sampler{program: p, traffic: t, outside: outside}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	t.begin()
	pacing := make(chan error, 1)
	go func() { pacing <- t.pace(ctx, offered) }()
	sampleErr := sampler.run(ctx, o.every, length, say)
	if err := errors.Join(sampleErr, <-pacing); err != nil {
		return nil, err
	}
	r.Calls, r.Failures = t.made.Load(), t.failed()
	r.Series = sampler.judge()
	return r, nil
}

// print writes the verdicts as a table or as one JSON document.
func (r *result) print(out io.Writer, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	fmt.Fprintf(out, "%s\npeak %.0f calls/s, offered %.0f calls/s for %g min: %d calls\n\n",
		r.Machine, r.Peak, r.Offered, r.Minutes, r.Calls)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "series\tmedian\tchange over the last two thirds\tbound\tverdict")
	for _, one := range r.Series {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", one.Name, one.quantity(one.Verdict.Median),
			one.signed(one.Verdict.Change), one.boundText(), one.Verdict.word())
	}
	for what, count := range r.Failures {
		fmt.Fprintf(table, "failed: %s\t%d\t\t\tnot flat\n", what, count)
	}
	return table.Flush()
}
