// Command bench measures Drawbridge and prints one table, in which each figure
// stands beside its floor: what the machine does, in the same run, when only
// the part of the work that cannot be saved is left.
//
//	bench [-quick] [-only SECTION,...] [-json] [-profile FILE]
//
// It starts a durable Postgres of its own in a temporary folder, gives each
// measurement a new database, and wires the services over it as the program
// does. docs/PERFORMANCE.md says what is measured, how, and what the floors
// hold.
//
//	main.go        the command line and the order of the sections
//	report.go      rows, the table, the JSON document
//	cluster.go     the server and its databases
//	house.go       the services over one database, tenants, prepared loans
//	worker.go      the working process
//	receiver.go    endpoints, and the bare POST to them
//	latency.go     commit to arrival
//	api.go         operations over HTTP; record.go and replay.go make their floor
//	deliveries.go  backlog and stream; queue.go makes their floors
//	isolation.go   healthy endpoints beside sick ones
//	processes.go   several working processes beside one
//	backlog.go     a very long backlog, and the API meanwhile, called by outside.go
//	upload.go      memory of the real program
//	start.go       its start
//	lists.go       the console's lists
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"drawbridge/internal/heap"
)

// errUsage marks an error of the command line, which exits with status 2.
var errUsage = errors.New("wrong usage")

func main() {
	heap.Loosen() // as the program does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if isOutside(os.Args) {
		err = callFromOutside(ctx, os.Stdin, os.Stdout)
	} else {
		err = command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	os.Exit(exitStatus(err))
}

// exitStatus reports an error and returns the status to exit with.
func exitStatus(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	if errors.Is(err, errUsage) {
		return 2
	}
	return 1
}

// options are what the command line asks for.
type options struct {
	sizes sizes
	// sections are the names of those to run, in the order of the table.
	sections []string
	json     bool
	// profile is where the CPU profile of request-draw goes, empty for none.
	profile string
	// dir is where the server's data goes.
	dir string
	// volatile runs the server without durability, for tests of the program.
	volatile bool
}

// sizes say how much is measured.
type sizes struct {
	// rate is in events per second, seconds how long they come.
	rate, seconds int
	// operations is how often each call of the API is made, in so many rounds
	// that take turns with the floor.
	operations, rounds int
	// events is the length of the backlog and of the stream.
	events int
	// endpoints is how many the many are.
	endpoints int
	// isolated is how many events are told beside sick endpoints, slow and slower
	// how many per process to slow and to very slow ones.
	isolated, slow, slower int
	// waiting is the length of the long backlog, drained how much of it is
	// measured, called for how many seconds the API is called meanwhile, and a third
	// as long beside the empty start.
	waiting, drained, called int
	// starts is how often the program is started, visits how often a list of the
	// console is asked for, beside so many seeded deliveries.
	starts, visits, seeded int
}

var (
	fullSizes = sizes{
		rate: 50, seconds: 20, operations: 4000, rounds: 4, events: 20_000, endpoints: 50,
		isolated: 5000, slow: 6000, slower: 1200, waiting: 500_000, drained: 40_000, called: 90,
		starts: 7, visits: 60, seeded: 200_000,
	}
	quickSizes = sizes{
		rate: 50, seconds: 4, operations: 800, rounds: 2, events: 2_000, endpoints: 50,
		isolated: 800, slow: 1200, slower: 400, waiting: 50_000, drained: 4_000, called: 3,
		starts: 3, visits: 20, seeded: 20_000,
	}
)

// section is one part of the table.
type section struct {
	name string
	run  func(b *bench, ctx context.Context) error
}

// sections are in the order of the table.
var sections = []section{
	{"latency", (*bench).latency},
	{"api", (*bench).api},
	{"deliveries", (*bench).deliveries},
	{"stream", (*bench).stream},
	{"isolation", (*bench).isolation},
	{"processes", (*bench).processes},
	{"backlog500k", (*bench).backlog500k},
	{"upload", (*bench).upload},
	{"start", (*bench).start},
	{"lists", (*bench).lists},
}

func sectionNames() []string {
	names := make([]string, 0, len(sections))
	for _, section := range sections {
		names = append(names, section.name)
	}
	return names
}

func command(ctx context.Context, args []string, out, errs io.Writer) error {
	o, err := parse(args, errs)
	if err != nil {
		return err
	}
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("opening the sink of the logs: %w", err)
	}
	defer quiet.Close()
	// The services log as in production, JSON to a file; nobody reads it here.
	slog.SetDefault(slog.New(slog.NewJSONHandler(quiet, nil)))
	report, err := measure(ctx, o, errs)
	if err != nil {
		return err
	}
	if o.json {
		return report.writeJSON(out)
	}
	return report.writeText(out)
}

func parse(args []string, errs io.Writer) (options, error) {
	o := options{sizes: fullSizes}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errs)
	quick := flags.Bool("quick", false, "measure less, in about a minute")
	only := flags.String("only", "", "run only these sections, comma separated: "+
		strings.Join(sectionNames(), ", "))
	flags.BoolVar(&o.json, "json", false, "print one JSON document instead of the table")
	flags.StringVar(&o.profile, "profile", "", "write a CPU profile of request-draw to `FILE`")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "keep the server's data under `FOLDER`, "+
		"on the disk to be measured")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return options{}, err
	} else if err != nil {
		return options{}, fmt.Errorf("%w: %w", errUsage, err)
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("%w: %q is not an option; bench takes no arguments",
			errUsage, flags.Arg(0))
	}
	if *quick {
		o.sizes = quickSizes
	}
	var err error
	o.sections, err = chosen(*only)
	if err == nil && o.profile != "" && !slices.Contains(o.sections, "api") {
		err = fmt.Errorf("%w: -profile needs the section api", errUsage)
	}
	return o, err
}

// chosen reads the list of -only; an empty one means all.
func chosen(only string) ([]string, error) {
	if only == "" {
		return sectionNames(), nil
	}
	wanted := strings.Split(only, ",")
	for _, name := range wanted {
		if !slices.Contains(sectionNames(), name) {
			return nil, fmt.Errorf("%w: -only names %q; the sections are %s",
				errUsage, name, strings.Join(sectionNames(), ", "))
		}
	}
	return wanted, nil
}

// bench is a run: the server, what it measures and what it found.
type bench struct {
	options
	cluster  *cluster
	report   *report
	progress io.Writer
}

// measure runs the chosen sections on a server that ends with them.
func measure(ctx context.Context, o options, progress io.Writer) (result *report, err error) {
	cluster, err := startCluster(ctx, o, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cluster.stop()) }()
	b := &bench{options: o, cluster: cluster, report: new(report), progress: progress}
	if b.report.Machine, err = describeMachine(ctx, cluster); err != nil {
		return nil, err
	}
	stolen, err := stolenClock()
	if err != nil {
		return nil, err
	}
	for _, section := range sections {
		if !slices.Contains(o.sections, section.name) {
			continue
		}
		if err := section.run(b, ctx); err != nil {
			return nil, fmt.Errorf("measuring %s: %w", section.name, err)
		}
	}
	b.report.Machine.Stolen, err = stolen()
	return b.report, err
}

// say tells what takes time.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "  "+format+"\n", args...)
}
