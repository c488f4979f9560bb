package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
)

const (
	statementEvery = 15 * time.Minute
	// statementFor is how long one round goes on; what is left waits for the next one.
	statementFor = 10 * time.Minute
)

// FreezeStatementsArgs asks for the statements of the days that are over.
type FreezeStatementsArgs struct{}

// Kind names the job in the queue.
func (FreezeStatementsArgs) Kind() string { return "freeze_statements" }

// FreezeStatements makes the daily statements.
type FreezeStatements struct {
	river.WorkerDefaults[FreezeStatementsArgs]
	Deps
}

// Timeout leaves the last batch time to end.
func (w *FreezeStatements) Timeout(*river.Job[FreezeStatementsArgs]) time.Duration {
	return statementFor + time.Minute
}

// Work makes what is due, for a while.
func (w *FreezeStatements) Work(ctx context.Context, _ *river.Job[FreezeStatementsArgs]) error {
	within, cancel := context.WithTimeout(ctx, statementFor)
	defer cancel()
	report, err := w.Statements.Freeze(within)
	if len(report.Days) > 0 || report.Statements > 0 || report.Corrections > 0 {
		slog.InfoContext(ctx, "statements", "days", report.Days,
			"statements", report.Statements, "corrections", report.Corrections)
	}
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil // its time was up, not the job's
	}
	return err
}
