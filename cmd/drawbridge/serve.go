package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"drawbridge/internal/app"
	"drawbridge/internal/config"
	"drawbridge/internal/demo"
	"drawbridge/internal/heap"
	"drawbridge/internal/postgres"
	"drawbridge/migrations"
)

type serveCmd struct {
	Roles string `help:"What this process runs: api, console, worker; overrides DRAWBRIDGE_ROLES." placeholder:"LIST"`
	Demo  bool   `help:"Load the demo data first and print how to use it (development only)."`
}

// Help lists every setting.
func (serveCmd) Help() string {
	var text strings.Builder
	text.WriteString(
		"Settings are environment variables; an optional file .env may set those that are not set:\n")
	for _, variable := range config.Variables() {
		value := cmp.Or(variable.Default, "empty")
		if variable.Development != "" {
			value += "; in development " + variable.Development
		}
		fmt.Fprintf(&text, "\n  %s (default: %s)\n      %s.\n", variable.Name, value, variable.Meaning)
	}
	return text.String()
}

// Run serves until the context ends, and then drains.
func (cmd serveCmd) Run(env *environment) error {
	heap.Loosen()
	// The process that reads the log may exit; that must not end this one.
	signal.Ignore(syscall.SIGPIPE)
	settings, err := env.config()
	if err != nil {
		return err
	}
	if cmd.Roles != "" {
		if settings.Roles, err = config.ParseRoles(cmd.Roles); err != nil {
			return usagef("--roles %s", err)
		}
	}
	// They are read once, for good: a process without a free file descriptor at that moment would
	// refuse every certificate from then on.
	if _, err := x509.SystemCertPool(); err != nil {
		slog.WarnContext(env.ctx, "reading the roots of the system, or SSL_CERT_FILE", "error", err)
	}
	for _, warning := range settings.Warnings() {
		slog.WarnContext(env.ctx, "doubtful setting", "warning", warning)
	}
	db, end, err := env.open(settings)
	if err != nil {
		return unlessStopped(env.ctx, err)
	}
	if err = db.CheckPooling(env.ctx); err == nil {
		err = cmd.serve(env, settings, db)
	}
	return errors.Join(unlessStopped(env.ctx, err), end())
}

// unlessStopped returns err, or nil if it only means that the program was stopped: a service
// that is stopped while it starts has not failed.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || postgres.IsCancelled(err)) {
		slog.Info("stopped while starting")
		return nil
	}
	return err
}

func (cmd serveCmd) serve(env *environment, settings config.Config, db *postgres.DB) error {
	if cmd.Demo {
		if err := demo.Check(settings.Env); err != nil {
			return err
		}
	}
	if err := app.CheckEnvironment(env.ctx, settings.Env, db); err != nil {
		return err
	}
	if settings.Env == config.Development {
		if err := migrations.Up(env.ctx, db.DB.DB); err != nil {
			return err
		}
	}
	stopTracing, err := app.StartTracing(env.ctx, settings, version)
	if err != nil {
		return err
	}
	defer stopTracing()
	if err := app.ServeProfiles(env.ctx, settings); err != nil {
		return err
	}
	services, err := env.services(settings, db)
	if err != nil {
		return err
	}
	if err := services.Prepare(env.ctx); err != nil {
		return err
	}
	server, err := services.Listen(env.ctx)
	if err != nil {
		return err
	}
	var welcome string
	if cmd.Demo {
		if welcome, err = loadDemo(env, services); err != nil {
			return errors.Join(err, server.Close())
		}
	}
	return server.Run(env.ctx, func() {
		fmt.Fprintf(env.stdout, "ready %s\n", server.URL)
		fmt.Fprint(env.stderr, welcome)
	})
}
