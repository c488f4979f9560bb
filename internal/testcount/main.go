// Command testcount runs `go test` and counts:
//
//	testcount -race ./...
//	testcount -apart ./slow/... -apart ./waits -race ./...
//
// It prints one line for each package, the whole output of each test that failed, and as its last
// line "N passed, N failed, N skipped". Each test and subtest counts once, and so does each package
// that failed outside of its tests. Its exit status is that of `go test`.
//
// Packages that match the pattern after an -apart run one at a time, concurrently with those of
// every other -apart and with all the others: they wait more than they compute, so the others yield
// the processors to them.
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

// run runs the tests, prints to writer and returns the exit status.
func run(ctx context.Context, arguments []string, writer io.Writer) (int, error) {
	var apart []string
	for len(arguments) > 1 && arguments[0] == "-apart" {
		apart, arguments = append(apart, arguments[1]), arguments[2:]
	}
	runs, err := split(ctx, apart, arguments)
	if err != nil {
		return 1, err
	}
	result := newTally(writer)
	defer result.close()
	statuses, errs := make([]int, len(runs)), make([]error, len(runs))
	var running sync.WaitGroup
	for i, arguments := range runs {
		running.Go(func() {
			statuses[i], errs[i] = test(ctx, result, arguments)
		})
	}
	running.Wait()
	return slices.Max(statuses), errors.Join(errs...)
}

// split returns the commands that test the packages named by the arguments, from the first folder
// on: one for each -apart pattern, and one for the others, which yields to those. If no folder is
// named, there is a single command.
func split(ctx context.Context, apart, arguments []string) ([][]string, error) {
	command := []string{"go", "test", "-json"}
	first := slices.IndexFunc(arguments, func(argument string) bool {
		return strings.HasPrefix(argument, "./")
	})
	if first < 0 || len(apart) == 0 {
		return [][]string{slices.Concat(command, arguments)}, nil
	}
	flags := arguments[:first]
	beside, err := list(ctx, arguments[first:])
	if err != nil {
		return nil, err
	}
	var runs [][]string
	for _, pattern := range apart {
		matching, err := list(ctx, []string{pattern})
		if err != nil {
			return nil, err
		}
		alone := slices.Concat(command, flags, []string{"-p=1"})
		without := len(alone)
		beside = slices.DeleteFunc(beside, func(name string) bool {
			matches := slices.Contains(matching, name)
			if matches {
				alone = append(alone, name)
			}
			return matches
		})
		if len(alone) > without {
			runs = append(runs, alone)
		}
	}
	if len(beside) == 0 {
		return runs, nil
	}
	if len(runs) > 0 {
		command = append([]string{"nice", "-n", niceness}, command...)
	}
	return append(runs, slices.Concat(command, flags, beside)), nil
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

// niceness is how far a run yields to those apart. It then gets half of the processor time of
// another; with more it would hardly progress while other programs keep the processors busy.
const niceness = "3"

// test runs a command of `go test` and returns its exit status.
func test(ctx context.Context, result *tally, line []string) (int, error) {
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
