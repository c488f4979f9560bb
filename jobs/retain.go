package jobs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
)

const (
	retainEvery = time.Hour
	// retainFor is how long one run removes; what is left waits for the next one.
	retainFor = 20 * time.Minute
)

// RetainArgs asks for the removal of what was kept long enough.
type RetainArgs struct{}

// Kind names the job in the queue.
func (RetainArgs) Kind() string { return "retain" }

// Retain applies the retention settings.
type Retain struct {
	river.WorkerDefaults[RetainArgs]
	Deps
}

// Timeout leaves the last batch time to end.
func (w *Retain) Timeout(*river.Job[RetainArgs]) time.Duration { return retainFor + time.Minute }

// Work removes what is due, for a while.
func (w *Retain) Work(ctx context.Context, _ *river.Job[RetainArgs]) error {
	within, cancel := context.WithTimeout(ctx, retainFor)
	defer cancel()
	report, err := w.Retention.Run(within)
	did := report.Events + report.Attempts + report.Emails + report.Bulks + report.Swept +
		len(report.Months) + len(report.LeftToOwner)
	slog.Log(ctx, worth(did > 0), "retention",
		"event_bodies", report.Events, "attempt_bodies", report.Attempts,
		"email_bodies", report.Emails, "months", report.Months, "bulk_resends", report.Bulks,
		"months_left_to_owner", report.LeftToOwner,
		"released_holds_swept", report.Swept, "busy", report.Busy)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil // its time was up, not the job's
	}
	return err
}
