// Command testcount runs `go test` and counts:
//
//	testcount -race ./...
//
// It prints one line for each package, the whole output of each test that
// failed, and as its last line "N passed, N failed, N skipped", in which each
// test and subtest counts once, and so does each package that failed outside
// of its tests. Its exit status is that of `go test`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
	}
	os.Exit(status)
}

func run(arguments []string) (int, error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, arguments...)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return 1, fmt.Errorf("preparing go test: %w", err)
	}
	if err := command.Start(); err != nil {
		return 1, fmt.Errorf("starting go test: %w", err)
	}
	result := newTally(os.Stdout)
	readErr := result.read(output)
	err = command.Wait()
	result.close()
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
