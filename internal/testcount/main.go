// Command testcount runs `go test` and counts:
//
//	testcount -race ./...
//	testcount -apart ./slow/... -race ./...
//
// It prints one line for each package, the whole output of each test that
// failed, and as its last line "N passed, N failed, N skipped", in which each
// test and subtest counts once, and so does each package that failed outside
// of its tests. Its exit status is that of `go test`.
//
// Packages that match a pattern after -apart (several are parted by commas) run one at a time
// beside all the others: they wait more than they compute, and so the others leave the
// processors to them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
)

func main() {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status, err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
	}
	os.Exit(status)
}

// run tests and prints to writer. It returns the exit status.
func run(ctx context.Context, arguments []string, writer io.Writer) (int, error) {
	runs := [][]string{arguments}
	if len(arguments) > 1 && arguments[0] == "-apart" {
		var err error
		runs, err = split(ctx, strings.Split(arguments[1], ","), arguments[2:])
		if err != nil {
			return 1, err
		}
	}
	result := newTally(writer)
	defer result.close()
	statuses, errs := make([]int, len(runs)), make([]error, len(runs))
	var running sync.WaitGroup
	for i, arguments := range runs {
		running.Go(func() {
			yields := i == 0 && len(runs) > 1
			statuses[i], errs[i] = test(ctx, result, yields, arguments)
		})
	}
	running.Wait()
	return slices.Max(statuses), errors.Join(errs...)
}

// split returns the arguments of the runs in which the packages are tested: those from the first
// that is named by its folder on, and one run where none is. Of two the second is apart.
func split(ctx context.Context, apart, arguments []string) ([][]string, error) {
	var flags, patterns []string
	for _, argument := range arguments {
		if len(patterns) > 0 || strings.HasPrefix(argument, "./") {
			patterns = append(patterns, argument)
		} else {
			flags = append(flags, argument)
		}
	}
	if len(patterns) == 0 {
		return [][]string{arguments}, nil
	}
	wanted, err := list(ctx, patterns)
	if err != nil {
		return nil, err
	}
	alone, err := list(ctx, apart)
	if err != nil {
		return nil, err
	}
	var beside, waiting []string
	for _, name := range wanted {
		if slices.Contains(alone, name) {
			waiting = append(waiting, name)
		} else {
			beside = append(beside, name)
		}
	}
	var runs [][]string
	if len(beside) > 0 {
		runs = append(runs, slices.Concat(flags, beside))
	}
	if len(waiting) > 0 {
		runs = append(runs, slices.Concat(flags, []string{"-p=1"}, waiting))
	}
	return runs, nil
}

// list returns the packages that match patterns.
func list(ctx context.Context, patterns []string) ([]string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	return strings.Fields(string(output)), nil
}

// niceness is how far a run yields to the one apart. It gets half of what the other does then; with
// more it would hardly get on while strangers keep the processors busy.
const niceness = "3"

// test runs `go test`, at a low priority if it yields, and returns its exit status.
func test(ctx context.Context, result *tally, yields bool, arguments []string) (int, error) {
	line := append([]string{"go", "test", "-json"}, arguments...)
	if yields {
		line = append([]string{"nice", "-n", niceness}, line...)
	}
	command := exec.CommandContext(ctx, line[0], line[1:]...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return 1, fmt.Errorf("preparing go test: %w", err)
	}
	if err := command.Start(); err != nil {
		return 1, fmt.Errorf("starting go test: %w", err)
	}
	readErr := result.read(output)
	err = command.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1), nil
	case err != nil:
		return 1, fmt.Errorf("running go test: %w", err)
	case readErr != nil:
		return 1, readErr
	}
	return 0, nil
}
