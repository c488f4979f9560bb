package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
)

// queueHealth is apart from the chores, so that a long one delays no alarm.
const queueHealth = "health"

// How often health is looked after, and how many of its jobs a process works at
// a time. Each kind runs one at a time, in whichever process the queue gives it.
const (
	tallyEvery    = 10 * time.Second
	watchEvery    = time.Minute
	probeEvery    = time.Minute
	healthWorkers = 3
)

// TallyOutcomesArgs asks for the outcomes of attempts to be added up.
type TallyOutcomesArgs struct{}

// Kind names the job in the queue.
func (TallyOutcomesArgs) Kind() string { return "tally_outcomes" }

// TallyOutcomes keeps the summaries of deliveries up to date.
type TallyOutcomes struct {
	river.WorkerDefaults[TallyOutcomesArgs]
	Deps
}

// Work adds up everything that has come in, also after a long break.
func (w *TallyOutcomes) Work(ctx context.Context, _ *river.Job[TallyOutcomesArgs]) error {
	_, err := w.Alerts.Tally(ctx)
	return err
}

// WatchHealthArgs asks for a look at what fails or is missing.
type WatchHealthArgs struct{}

// Kind names the job in the queue.
func (WatchHealthArgs) Kind() string { return "watch_health" }

// WatchHealth changes the states of subscriptions and raises alarms.
type WatchHealth struct {
	river.WorkerDefaults[WatchHealthArgs]
	Deps
}

// Work makes every check.
func (w *WatchHealth) Work(ctx context.Context, _ *river.Job[WatchHealthArgs]) error {
	return w.Alerts.Watch(ctx)
}

// ProbeEndpointsArgs asks for the probes that are due.
type ProbeEndpointsArgs struct{}

// Kind names the job in the queue.
func (ProbeEndpointsArgs) Kind() string { return "probe_endpoints" }

// ProbeEndpoints looks at endpoints between events.
type ProbeEndpoints struct {
	river.WorkerDefaults[ProbeEndpointsArgs]
	Deps
}

// Timeout leaves every probe of a round its own deadline.
func (w *ProbeEndpoints) Timeout(*river.Job[ProbeEndpointsArgs]) time.Duration {
	return 3 * time.Minute
}

// Work makes the probes.
func (w *ProbeEndpoints) Work(ctx context.Context, _ *river.Job[ProbeEndpointsArgs]) error {
	count, err := w.Alerts.Probe(ctx)
	if count > 0 {
		slog.InfoContext(ctx, "probed endpoints", "count", count)
	}
	return err
}
