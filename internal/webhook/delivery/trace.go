package delivery

import (
	"context"
	"net/url"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"drawbridge/internal/webhook/sender"
)

// traceparent returns the trace of ctx for an event's row, nil without one.
func traceparent(ctx context.Context) *string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return new(carrier[sender.TraceHeader])
}

// inTraceOf continues the trace of the request that caused the event.
func inTraceOf(ctx context.Context, task assignment) context.Context {
	if task.Traceparent == nil {
		return ctx
	}
	carrier := propagation.MapCarrier{sender.TraceHeader: *task.Traceparent}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}

// startSpan begins the span of one attempt. Nothing is recorded unless an exporter is
// configured.
func startSpan(ctx context.Context, task assignment, number int) (context.Context, trace.Span) {
	ctx, span := otel.Tracer("drawbridge/webhook").Start(ctx, "webhook attempt",
		trace.WithSpanKind(trace.SpanKindClient))
	if !span.IsRecording() {
		return ctx, span
	}
	span.SetAttributes(
		attribute.String("drawbridge.delivery", task.UID.String()),
		attribute.String("drawbridge.subscription", task.Subscription.String()),
		attribute.String("drawbridge.event", string(task.Event)),
		attribute.Int("drawbridge.attempt", number),
	)
	// Path and query may hold what the partner keeps secret.
	if endpoint, err := url.Parse(task.URL); err == nil {
		span.SetAttributes(attribute.String("server.address", endpoint.Hostname()))
	}
	return ctx, span
}

func endSpan(span trace.Span, attempt sender.Attempt) {
	defer span.End()
	if attempt.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", attempt.Status))
	}
	if !attempt.Delivered() {
		span.SetAttributes(attribute.String("error.type", string(attempt.Class)))
		span.SetStatus(codes.Error, attempt.Error)
	}
}
