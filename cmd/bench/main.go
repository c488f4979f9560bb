// Command bench measures Drawbridge. Each figure stands beside its floor: what the
// machine does, in the same run, when only the part of the work that cannot be
// saved is left.
//
//	bench [-quick] [-only SECTION,...]   throughput and latency, in one table
//	bench soak [-minutes 30]             a long load, and whether everything stays flat
//	bench beside transaction             a load, and what a long transaction costs it
//	bench lists -password ...            the console's lists in a running Drawbridge
//
// docs/PERFORMANCE.md says what is measured, how, and what the floors hold.
//
//	main.go        the command line
//	report.go      the table, JSON lines; stats.go quantiles, slopes, verdicts
//	load.go        how work comes: from so many callers, or at so many a second
//	cluster.go     the server and its databases; machine.go what they run on
//	program.go     the real program and its partner; house.go the services alone
//	caller.go      who calls the API; what runs in a process of its own
//	receiver.go    endpoints, and the bare POST to them
//	figures.go     the sections of the table, each in a file of its name or in real.go;
//	               replay.go and queue.go make floors
//	soak.go        the long load; mix.go what is called, sample.go what is looked at
//	beside.go      the same load beside what goes on for long
//	lists.go       the console's lists
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"drawbridge/internal/heap"
)

// errFailed says that a run ended and found what it should not.
var errFailed = errors.New("not everything is as it should be; see above")

// grammar is every command with its options.
type grammar struct {
	Figures figuresCmd `cmd:"" default:"withargs" help:"Measure throughput and latency."`
	Soak    soakCmd    `cmd:"" help:"Load the program for long and judge whether it stays flat."`
	Beside  besideCmd  `cmd:"" help:"Load the program beside a long transaction or the retention of many rows."`
	Lists   listsCmd   `cmd:"" help:"Measure the lists of a running console."`
	Call    callCmd    `cmd:"" hidden:"" help:"Call the API as the figures tell on standard input."`
	Floor   floorCmd   `cmd:"" hidden:"" help:"Be the floor of the door, as the figures tell."`
}

// world is what a command may use.
type world struct {
	ctx       context.Context //nolint:containedctx // of the one command that it is for
	in        io.Reader
	out, errs io.Writer
}

// say tells what takes time.
func (w *world) say(format string, args ...any) {
	fmt.Fprintf(w.errs, "  "+format+"\n", args...)
}

func main() {
	heap.Loosen() // as the program does
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

// parse reads a command line, in which one dash before an option is as good as two.
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
