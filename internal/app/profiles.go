package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"drawbridge/internal/config"
)

// ServeProfiles serves Go's profiler on a separate port until ctx ends. The port is a local one,
// since profiles show what is in memory.
func ServeProfiles(ctx context.Context, settings config.Config) error {
	if settings.PprofListen == "" {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", settings.PprofListen)
	if err != nil {
		return fmt.Errorf("listening on DRAWBRIDGE_PPROF_LISTEN: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // not worth waiting for a profile
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.ErrorContext(ctx, "serving profiles", "error", err)
		}
	}()
	slog.InfoContext(ctx, "serving profiles", "address", listener.Addr().String())
	return nil
}
