// Command withpostgres runs a command alongside a PostgreSQL server for tests:
//
//	withpostgres go test ./...
//
// It starts the server (pgtest.StartServer), passes its URL to the command in
// DRAWBRIDGE_TEST_DATABASE_URL, removes it afterwards, and ends with the command's exit status.
// Where the variable is set already, it starts none.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"drawbridge/internal/postgres/pgtest"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
	}
	os.Exit(status)
}

func run(arguments []string) (status int, err error) {
	if len(arguments) == 0 {
		return 2, errors.New("no command (usage: withpostgres COMMAND ARGUMENTS)")
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	environment := os.Environ()
	if os.Getenv(pgtest.Variable) == "" {
		server, err := pgtest.StartServer(ctx)
		if err != nil {
			return 1, err
		}
		defer func() {
			if stopErr := server.Stop(); stopErr != nil {
				status, err = max(status, 1), stopErr
			}
		}()
		environment = append(environment, pgtest.Variable+"="+server.URL())
	}
	// An interrupt is passed on to the command, and the server stays until the command has ended.
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Env = environment
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("running %s: %w", arguments[0], err)
	}
	return 0, nil
}
