package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"drawbridge/internal/config"
)

const (
	// exportTimeout bounds one message to the collector.
	exportTimeout = 10 * time.Second
	// flushTimeout bounds the last messages when the process stops.
	flushTimeout = 3 * time.Second
)

// StartTracing sends the process's traces to the configured collector until stop is called. Without
// a collector nothing is recorded, but each request still has a trace id, which joins the log lines
// of the request and of its attempts.
func StartTracing(
	ctx context.Context, settings config.Config, version string,
) (stop func(), err error) {
	if settings.OTLPURL == "" {
		otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSampler(trace.NeverSample())))
		return func() {}, nil
	}
	endpoint := settings.OTLPURL
	if parsed, err := url.Parse(endpoint); err == nil && strings.Trim(parsed.Path, "/") == "" {
		endpoint = parsed.JoinPath("v1", "traces").String() // the path on which collectors listen
	}
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(endpoint),
		otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("preparing the traces: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	provider := trace.NewTracerProvider(
		trace.WithBatcher(exporter),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(settings.TraceRatio))),
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "drawbridge"),
			attribute.String("service.version", version),
			attribute.String("service.instance.id", fmt.Sprintf("%s-%d", host, os.Getpid())),
		)))
	otel.SetTracerProvider(provider)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		slog.Warn("exporting traces", "error", err)
	}))
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			slog.WarnContext(ctx, "exporting the last traces", "error", err)
		}
	}, nil
}
