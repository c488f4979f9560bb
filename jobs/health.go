package jobs

import (
	"context"
	"log/slog"
	"time"
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
	// probeFor leaves every probe of a round its own deadline.
	probeFor = 3 * time.Minute
)

// TallyOutcomesArgs asks for the outcomes of attempts to be added up.
type TallyOutcomesArgs struct{}

// Kind names the job in the queue.
func (TallyOutcomesArgs) Kind() string { return "tally_outcomes" }

// tallyOutcomes keeps the summaries of deliveries up to date. It adds up everything that has
// come in, also after a long break.
func (d *Deps) tallyOutcomes(ctx context.Context) error {
	_, err := d.Alerts.Tally(ctx)
	return err
}

// WatchHealthArgs asks for a look at what fails or is missing, which changes the
// states of subscriptions and raises alerts.
type WatchHealthArgs struct{}

// Kind names the job in the queue.
func (WatchHealthArgs) Kind() string { return "watch_health" }

// ProbeEndpointsArgs asks for the probes that are due.
type ProbeEndpointsArgs struct{}

// Kind names the job in the queue.
func (ProbeEndpointsArgs) Kind() string { return "probe_endpoints" }

// probeEndpoints looks at endpoints between events.
func (d *Deps) probeEndpoints(ctx context.Context) error {
	count, err := d.Alerts.Probe(ctx)
	if count > 0 {
		slog.InfoContext(ctx, "probed endpoints", "count", count)
	}
	return err
}
