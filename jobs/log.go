package jobs

import (
	"context"
	"log/slog"
)

// QueueLogger is where the queue's library logs. What it says of its daily work, at INFO, is below
// that here: people want to read of what they asked for.
func QueueLogger() *slog.Logger { return slog.New(quieter{slog.Default().Handler()}) }

// quieter takes what comes at INFO for DEBUG.
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

// WithAttrs is one that adds attributes.
func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{q.Handler.WithAttrs(attrs)}
}

// WithGroup is one that opens a group.
func (q quieter) WithGroup(name string) slog.Handler { return quieter{q.Handler.WithGroup(name)} }

// worth is the level of a job's line: one that did nothing, every hour, is not for people.
func worth(didSomething bool) slog.Level {
	if didSomething {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
