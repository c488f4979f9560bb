package metrics

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drawbridge/internal/postgres"
	"drawbridge/internal/processes"
)

const (
	// scrapeEvery is how long the results of a scrape are kept: more frequent scrapes, from however
	// many scrapers, do not reach the database.
	scrapeEvery = 5 * time.Second
	// scrapeTimeout bounds a scrape's time in the database, well below the ten seconds after which
	// Prometheus gives up.
	scrapeTimeout = 5 * time.Second
	// statementTimeout bounds one statement of a scrape, so that a locked table costs its own gauges.
	statementTimeout = 2 * time.Second
)

// databaseCollector reports what all processes on one database share. Every process reports the
// same, so an alert rule takes the maximum and not the sum.
type databaseCollector struct {
	db *postgres.DB
	up *prometheus.Desc

	mu    sync.Mutex
	taken time.Time
	kept  []prometheus.Metric
}

// databaseCount is a statement whose rows have labels, if any, a count and maybe the age of the
// oldest in seconds.
type databaseCount struct {
	count, age *prometheus.Desc
	query      string
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

// databaseCounts are the statements of a scrape.
var databaseCounts = []databaseCount{
	{
		count: describe("deliveries_open", "Deliveries that have not ended, by state.", "state"),
		age: describe("deliveries_overdue_seconds",
			"How long the longest waiting delivery of the state has been due. Those aside that are being "+
				"sent, and those that wait for a paused subscription or for a slot at their endpoint.",
			"state"),
		query: `
			SELECT k.state AS label, count(d.state) AS count,
			       extract(epoch FROM now() - min(d.next_attempt_at)
			           FILTER (WHERE NOT d.parked AND NOT d.held AND b.number IS NULL)) AS age
			  FROM unnest(ARRAY['pending', 'retrying']) AS k (state)
			  LEFT JOIN (SELECT delivery_uid, state, next_attempt_at, parked, held, attempt_count
			               FROM deliveries
			              WHERE state IN ('pending', 'retrying')) AS d USING (state)
			  LEFT JOIN begun_attempts b
			    ON b.delivery_uid = d.delivery_uid AND b.number = d.attempt_count + 1
			 GROUP BY k.state`,
	},
	{
		count: describe("outbox_events",
			"Events whose change has committed and which have no place in the feed and no deliveries yet."),
		age: describe("outbox_oldest_seconds", "How long the oldest of them has waited."),
		query: `
			SELECT count(*) AS count,
			       extract(epoch FROM now() - min(recorded_at)) AS age
			  FROM outbox`,
	},
	{
		count: describe("queue_jobs", "Jobs in the queue, by queue and state.", "queue", "state"),
		age: describe("queue_oldest_seconds",
			"How long the oldest job of the queue and state has been due.", "queue", "state"),
		query: `
			SELECT queue AS label, state::text AS sublabel, count(*) AS count,
			       extract(epoch FROM now() - min(scheduled_at)) AS age
			  FROM river_job
			 WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled')
			 GROUP BY queue, state`,
	},
	{
		count: describe("mails_queued", "E-mails that wait for their next attempt."),
		age: describe("mails_overdue_seconds",
			"How long the longest waiting e-mail has been due, those aside that wait for another reason."),
		query: `
			SELECT count(*) AS count,
			       extract(epoch FROM now() - min(next_attempt_at)
			           FILTER (WHERE waits_for = '')) AS age
			  FROM emails
			 WHERE state = 'queued'`,
	},
	{
		count: describe("mails_waiting",
			"E-mails that wait for the mail server, which refuses us, or for the welcome e-mail.", "for"),
		query: `
			SELECT what AS label, count(waits_for) AS count
			  FROM unnest(ARRAY['server', 'welcome']) AS what
			  LEFT JOIN emails ON state = 'queued' AND waits_for = what
			 GROUP BY what`,
	},
	{
		count: describe("draws_pending", "Draws whose money is under way, by state.", "state"),
		age: describe("draw_oldest_seconds",
			"How long the longest waiting draw has been in the state; weekends count, too.", "state"),
		query: `
			SELECT what AS label, count(d.status) AS count,
			       extract(epoch FROM now() - min(coalesce(d.processing_at, d.requested_at))) AS age
			  FROM unnest(ARRAY['FUNDING_REQUESTED', 'FUNDING_PROCESSING']) AS what
			  LEFT JOIN disbursements d ON d.status = what
			       AND d.status IN ('FUNDING_REQUESTED', 'FUNDING_PROCESSING')
			 GROUP BY what`,
	},
	{
		count: describe("restore_held",
			"1 while a restored database holds everything back until somebody decides, else 0."),
		age: describe("restore_held_seconds", "How long everything has been held back."),
		query: `
			SELECT count(held_at) AS count,
			       extract(epoch FROM now() - min(held_at)) AS age
			  FROM installation`,
	},
	{
		count: describe("subscriptions",
			"Webhook subscriptions, by state. Nothing is sent to stopped ones: no key opens their secret "+
				"or headers, or those are damaged.", "state"),
		query: `
			SELECT state AS label, count(known.state) AS count
			  FROM unnest(ARRAY['active', 'failing', 'paused', 'stopped']) AS state
			  LEFT JOIN (SELECT CASE WHEN stopped_at IS NOT NULL AND state IN ('active', 'failing')
			                         THEN 'stopped' ELSE state END AS state
			               FROM subscriptions) AS known USING (state)
			 GROUP BY state`,
	},
	{
		count: describe("database_connections",
			"Connections to the server, of all its databases, by state; other where that is not for us "+
				"to see.", "state"),
		query: `
			SELECT coalesce(state, 'other') AS label, count(*) AS count
			  FROM pg_stat_activity
			 WHERE datid IS NOT NULL
			   AND coalesce(backend_type, 'client backend') = 'client backend'
			 GROUP BY state`,
	},
	{
		count: describe("database_max_connections",
			"Connections to the server at which it refuses us another: as many as it allows, or fewer "+
				"where the role or the database has a limit that is nearer."),
		query: `
			SELECT max(taken) FILTER (WHERE kind = 'server') + min(most - taken) AS count
			  FROM (` + postgres.ConnectionLimitsQuery + `) AS limits`,
	},
}

// conditionGauges report the condition of the database and the processes.
var conditionGauges = []struct {
	gauge *prometheus.Desc
	value func(c processes.Condition) float64
}{
	{
		describe("workers", "Processes that work the queues and show life."),
		func(c processes.Condition) float64 { return float64(c.Workers) },
	},
	{
		describe("partitions_ahead_months",
			"For how many months beyond this one events have tables; -1 when this month lacks one."),
		func(c processes.Condition) float64 { return float64(c.PartitionsAhead) },
	},
	{
		describe("oldest_transaction_seconds", "How long the longest open transaction has been open."),
		func(c processes.Condition) float64 { return c.Seconds },
	},
	{
		describe("xid_age", "How many transactions ago the oldest row was frozen, of 2e9 possible ones."),
		func(c processes.Condition) float64 { return float64(c.XIDAge) },
	},
	{
		describe("backup_age_seconds",
			"How long ago a backup was recorded, and before the first how long the database serves."),
		func(c processes.Condition) float64 {
			if c.BackedUpAt == nil {
				return 0
			}
			return max(c.Now.Sub(*c.BackedUpAt).Seconds(), 0)
		},
	},
	{
		describe("wal_archive_failing", "1 while the server fails to archive its log, else 0."),
		func(c processes.Condition) float64 { return one(c.ArchiveFailing) },
	},
}

// Describe names every metric.
func (c *databaseCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.up
	for _, count := range databaseCounts {
		out <- count.count
		if count.age != nil {
			out <- count.age
		}
	}
	for _, condition := range conditionGauges {
		out <- condition.gauge
	}
}

// Collect queries the database, unless the kept results are recent enough.
func (c *databaseCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.taken) > scrapeEvery {
		c.kept, c.taken = c.ask(), time.Now()
	}
	for _, metric := range c.kept {
		out <- metric
	}
}

func (c *databaseCollector) ask() []prometheus.Metric {
	whole := min(scrapeTimeout, c.db.Timeout()/2)
	each := min(statementTimeout, whole/2)
	ctx, cancel := context.WithTimeout(context.Background(), whole)
	defer cancel()
	var metrics []prometheus.Metric
	for _, count := range databaseCounts {
		found, err := count.metrics(ctx, each, c.db)
		if err != nil {
			slog.WarnContext(ctx, "scraping the database", "error", err)
			if !c.answers(each) {
				return []prometheus.Metric{gauge(c.up, 0)}
			}
			// The table may not exist before a migration, or may be locked; the rest can still be reported.
		}
		metrics = append(metrics, found...)
	}
	within, stop := context.WithTimeout(ctx, each)
	defer stop()
	condition, err := (&processes.Service{DB: c.db}).Condition(within)
	if err != nil {
		slog.WarnContext(ctx, "scraping the condition of the database", "error", err)
	} else {
		for _, of := range conditionGauges {
			metrics = append(metrics, gauge(of.gauge, of.value(condition)))
		}
	}
	return append(metrics, gauge(c.up, 1))
}

func gauge(of *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
}

// answers pings the database, with a separate time limit and over the engine's connections: neither
// the time used by the scrape nor requests waiting for a lock count.
func (c *databaseCollector) answers(within time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.db.Engine().PingContext(ctx) == nil
}

// metrics runs the statement and turns its rows into metrics.
func (c databaseCount) metrics(
	ctx context.Context, within time.Duration, db *postgres.DB,
) ([]prometheus.Metric, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var rows []struct {
		Label    string
		Sublabel string
		Count    float64
		Age      *float64
	}
	if err := db.SelectContext(ctx, &rows, c.query); err != nil {
		return nil, err
	}
	var metrics []prometheus.Metric
	for _, row := range rows {
		labels := slices.DeleteFunc([]string{row.Label, row.Sublabel},
			func(label string) bool { return label == "" })
		metrics = append(metrics, gauge(c.count, row.Count, labels...))
		if c.age != nil {
			metrics = append(metrics, gauge(c.age, max(postgres.OrZero(row.Age), 0), labels...))
		}
	}
	return metrics, nil
}
