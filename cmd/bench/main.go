// Command bench measures Drawbridge. Each figure is compared with its floor: what the
// machine achieves, in the same run, with only the part of the work that cannot be
// avoided.
//
//	bench [-quick] [-only SECTION,...]   throughput and latency, in one table
//	bench soak [-minutes 30]             a long load, and whether everything stays flat
//	bench beside transaction             a load, and how a long transaction slows it
//	bench lists -password ...            the console's lists in a running Drawbridge
//
// docs/PERFORMANCE.md says what is measured, how, and what the floors contain.
//
//	main.go        the command line, and the sections of the table: each in a file of its
//	               name, in deliveries.go, backlog.go or real.go
//	report.go      the table, JSON lines, quantiles, slopes, verdicts
//	load.go        how work begins: by a number of callers, or at a rate
//	cluster.go     the server and its databases; machine.go the machine
//	program.go     the real program and its partner; harness.go the services alone
//	caller.go      the API's clients; work in separate processes
//	receiver.go    endpoints, and the bare POST to them
//	replay.go      floors that replay recorded statements; queue.go floors of a queue
//	soak.go        the long load; mix.go the requests, sample.go the samples
//	beside.go      the same load during other long work
//	lists.go       the console's lists
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"drawbridge/internal/heap"
)

// errFailed is the error of a run whose results are not as they should be.
var errFailed = errors.New("some results are not as they should be; see above")

// grammar is every command with its options.
type grammar struct {
	Figures figuresCmd `cmd:"" default:"withargs" help:"Measure throughput and latency."`
	Soak    soakCmd    `cmd:"" help:"Load the program for a long time and judge whether it stays flat."`
	Beside  besideCmd  `cmd:"" help:"Load the program during a long transaction or the removal of many rows by retention."`
	Lists   listsCmd   `cmd:"" help:"Measure the lists of a running console."`
	Call    callCmd    `cmd:"" hidden:"" help:"Call the API as requested on standard input."`
	Floor   floorCmd   `cmd:"" hidden:"" help:"Run the floor of the door section, as requested on standard input."`
}

// world is everything that a command may use from outside the program.
type world struct {
	ctx       context.Context //nolint:containedctx // of the one command that it is for
	in        io.Reader
	out, errs io.Writer
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w.errs, "  "+format+"\n", args...) }

func main() {
	heap.Loosen() // as drawbridge serve does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(&world{ctx, os.Stdin, os.Stdout, os.Stderr}, os.Args[1:])
	stop()
	os.Exit(status)
}

// run executes one command line and returns its exit status: 2 for a wrong one.
func run(w *world, args []string) int {
	command, err := parse(args)
	if err != nil {
		fmt.Fprintln(w.errs, "bench:", err)
		return 2
	}
	if err := command.Run(w); err != nil {
		fmt.Fprintln(w.errs, "bench:", err)
		return 1
	}
	return 0
}

// parse reads a command line, in which options may have one dash or two.
func parse(args []string) (*kong.Context, error) {
	parser, err := kong.New(new(grammar), kong.Name("bench"), kong.Vars{"tmp": os.TempDir()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return nil, err
	}
	dashed := make([]string, len(args))
	for i, arg := range args {
		if len(arg) > 2 && arg[0] == '-' && !strings.HasPrefix(arg, "--") {
			arg = "-" + arg
		}
		dashed[i] = arg
	}
	return parser.Parse(dashed)
}

// figuresCmd are the options of the table.
type figuresCmd struct {
	Quick   bool     `help:"Measure less, in about three minutes."`
	Only    []string `help:"Run only these sections, comma separated: door, overload, latency, api, batch, feed, deliveries, stream, isolation, processes, backlog500k, upload, start, lists." placeholder:"SECTION"`
	Out     string   `help:"Write the machine and each figure to a file, one JSON document per line." placeholder:"FILE"`
	Profile string   `help:"Write a CPU profile of request-draw to a file." placeholder:"FILE"`
	Dir     string   `help:"Keep the server's data in this folder, on the disk to be measured." default:"${tmp}"`
}

// Validate refuses sections that do not exist.
func (c *figuresCmd) Validate() error {
	for _, name := range c.Only {
		if !slices.Contains(sectionNames(), name) {
			return fmt.Errorf("-only names %q; the sections are %s",
				name, strings.Join(sectionNames(), ", "))
		}
	}
	if c.Profile != "" && len(c.Only) > 0 && !slices.Contains(c.Only, "api") {
		return errors.New("-profile needs the section api")
	}
	return nil
}

// Run measures and prints the table.
func (c *figuresCmd) Run(w *world) error {
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("opening the sink of the logs: %w", err)
	}
	defer quiet.Close()
	// The services log as in production, JSON to a file; nobody reads it here.
	slog.SetDefault(slog.New(slog.NewJSONHandler(quiet, nil)))
	b := &bench{
		world: w, sizes: fullSizes, sections: c.Only, profile: c.Profile,
		server: serverOptions{dir: c.Dir},
	}
	if c.Quick {
		b.sizes = quickSizes
	}
	if err := b.measure(); err != nil {
		return err
	}
	return errors.Join(b.report.print(w.out), b.report.write(c.Out))
}

// sizes say how much is measured.
type sizes struct {
	// rate is in events per second, seconds is for how long.
	rate, seconds int
	// operations is how often each API request is made, in rounds that alternate with the floor.
	operations, rounds int
	// settled is how many draws are settled by one request.
	settled int
	// published is the length of the feed, merchants the number of its merchants.
	published, merchants int
	// events is the length of the backlog and of the stream.
	events int
	// endpoints is how many "many endpoints" are.
	endpoints int
	// door is how many requests the door section makes as fast as they are answered.
	door int
	// beside is how many requests another client makes alongside a crowd, twice.
	beside int
	// isolated is how many events are sent while other endpoints fail, slow and slower how many
	// per process go to slow and to very slow endpoints.
	isolated, slow, slower int
	// hanging is how many deliveries wait at an endpoint that hangs.
	hanging int
	// waiting is the length of the long backlog, drained how much of it is measured,
	// called for how many seconds API requests are made meanwhile; with the empty start
	// it is a third.
	waiting, drained, called int
	// starts is how often the program is started, visits how often each list of the
	// console is requested, seeded how many deliveries the lists have.
	starts, visits, seeded int
}

var (
	fullSizes = sizes{
		rate: 50, seconds: 20, operations: 4000, rounds: 4, settled: 500, published: 5_000_000,
		merchants: 1000, events: 20_000,
		endpoints: 50, door: 8000, beside: 40, isolated: 5000, hanging: 50_000, slow: 6000, slower: 1200,
		waiting: 500_000, drained: 40_000, called: 90,
		starts: 7, visits: 60, seeded: 200_000,
	}
	quickSizes = sizes{
		rate: 50, seconds: 4, operations: 800, rounds: 2, settled: 500, published: 200_000,
		merchants: 1000, events: 2_000,
		endpoints: 50, door: 2000, beside: 10, isolated: 800, hanging: 5000, slow: 1200, slower: 400,
		waiting: 50_000, drained: 4_000, called: 3,
		starts: 3, visits: 20, seeded: 20_000,
	}
)

// section measures a part of the table; it adds clean-up functions to open.
type section func(b *bench, ctx context.Context, open *cleanup) error

// overBoth is a section that is measured over HTTP, and then over TLS.
func overBoth(
	measure func(b *bench, ctx context.Context, open *cleanup, secured bool) error,
) section {
	return func(b *bench, ctx context.Context, _ *cleanup) error {
		for _, secured := range []bool{false, true} {
			err := withCleanups(func(open *cleanup) error { return measure(b, ctx, open, secured) })
			if err != nil {
				return fmt.Errorf("over %s: %w", schemeName(secured), err)
			}
		}
		return nil
	}
}

// sections are the parts of the table, in order.
var sections = []struct {
	name string
	run  section
}{
	{"door", overBoth((*bench).door)},
	{"overload", (*bench).overload},
	{"latency", overBoth((*bench).latency)},
	{"api", (*bench).api},
	{"batch", (*bench).batch},
	{"feed", (*bench).feed},
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

// bench is a run: the server, what it measures and what it found.
type bench struct {
	*world

	sizes sizes
	// sections are the names of those to run, empty for all.
	sections []string
	// profile is the file for the CPU profile of request-draw, empty for none.
	profile string
	server  serverOptions
	cluster *cluster
	report  report
}

// measure starts a server, runs the chosen sections on it and stops it.
func (b *bench) measure() (err error) {
	var open cleanup
	defer open.run(&err)
	if b.cluster, err = startCluster(b.world, &open, b.server); err != nil {
		return err
	}
	if b.report.Machine, err = describeMachine(b.ctx, b.cluster); err != nil {
		return err
	}
	before, err := processors()
	if err != nil {
		return err
	}
	for _, section := range sections {
		if len(b.sections) > 0 && !slices.Contains(b.sections, section.name) {
			continue
		}
		err := withCleanups(func(open *cleanup) error { return section.run(b, b.ctx, open) })
		if err != nil {
			return fmt.Errorf("measuring %s: %w", section.name, err)
		}
	}
	after, err := processors()
	if all := wholeTime(after) - wholeTime(before); all > 0 {
		b.report.Machine.Stolen = (after.Steal - before.Steal) / all
	}
	return err
}
