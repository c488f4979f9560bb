package jobs

import (
	"context"
	"log/slog"
	"time"
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

// retain removes what is due by the retention settings, for a while.
func (d *Deps) retain(ctx context.Context) error {
	report, err := forAWhile(ctx, retainFor, d.Retention.Run)
	did := report.Events + report.Attempts + report.Emails + report.Bulks + report.Swept +
		len(report.Months) + len(report.LeftToOwner)
	slog.Log(ctx, worth(did > 0), "retention",
		"event_bodies", report.Events, "attempt_bodies", report.Attempts,
		"email_bodies", report.Emails, "months", report.Months, "bulk_resends", report.Bulks,
		"months_left_to_owner", report.LeftToOwner,
		"released_holds_swept", report.Swept, "busy", report.Busy)
	return err
}
