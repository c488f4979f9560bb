package jobs

import (
	"context"
	"log/slog"
)

// QueueLogger is the logger for the queue's library. What the library logs at INFO about its
// routine work is logged at DEBUG here: operators want to read about what they asked for.
func QueueLogger() *slog.Logger { return slog.New(quieter{slog.Default().Handler()}) }

// quieter logs INFO records at DEBUG.
type quieter struct{ slog.Handler }

func quieterLevel(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}

// Enabled reports whether anything of the level is logged.
func (q quieter) Enabled(ctx context.Context, level slog.Level) bool {
	return q.Handler.Enabled(ctx, quieterLevel(level))
}

// Handle logs a record.
func (q quieter) Handle(ctx context.Context, record slog.Record) error {
	record.Level = quieterLevel(record.Level)
	return q.Handler.Handle(ctx, record)
}

// WithAttrs returns a handler that adds attributes.
func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler that opens a group.
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }

// levelFor returns a job's log level: DEBUG for a run that did nothing, which no operator need see.
func levelFor(didSomething bool) slog.Level {
	if didSomething {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
