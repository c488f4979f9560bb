// Command drawbridge is the whole service in one binary: the partner API, the
// operator console, the workers, and the commands that set them up.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is stamped by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, environment{
		args:   os.Args[1:],
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.Getenv,
	})
	stop()
	os.Exit(status)
}
