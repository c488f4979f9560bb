package jobs

import (
	"context"
	"log/slog"
	"time"
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

// freezeStatements makes the daily statements that are due, for a while.
func (d *Deps) freezeStatements(ctx context.Context) error {
	report, err := forAWhile(ctx, statementFor, d.Statements.Freeze)
	if len(report.Days) > 0 || report.Statements > 0 || report.Corrections > 0 {
		slog.InfoContext(ctx, "statements", "days", report.Days,
			"statements", report.Statements, "corrections", report.Corrections)
	}
	return err
}
