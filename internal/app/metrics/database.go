package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drawbridge/internal/postgres"
)

const (
	// scrapeEvery is how old an answer of the database may be: however many
	// scrapers ask, it is asked no more often.
	scrapeEvery = 5 * time.Second
	// scrapeTimeout bounds what a scrape may ask of the database.
	scrapeTimeout = 3 * time.Second
)

// databaseCollector tells what all processes on one database share. Every
// process tells the same, so a rule takes the maximum and not the sum.
type databaseCollector struct {
	db *postgres.DB
	up *prometheus.Desc

	mu    sync.Mutex
	taken time.Time
	kept  []prometheus.Metric
}

// databaseCount is a statement whose rows are labels, a count and the age of
// the oldest in seconds.
type databaseCount struct {
	count, age *prometheus.Desc
	query      string
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("drawbridge_"+name, help, labels, nil)
}

func newDatabaseCollector(db *postgres.DB) *databaseCollector {
	return &databaseCollector{
		db: db,
		up: describe("database_up", "1 when the database answered this scrape, else 0."),
	}
}

// databaseCounts are the statements of a scrape.
var databaseCounts = []databaseCount{
	{
		count: describe("deliveries_open", "Deliveries that have not ended, by state.", "state"),
		age: describe("deliveries_overdue_seconds",
			"How long the longest waiting delivery of the state has been due, paused ones aside.",
			"state"),
		query: `
			SELECT state AS label, '' AS sublabel, count(*) AS count,
			       extract(epoch FROM now() - min(next_attempt_at)
			           FILTER (WHERE NOT parked)) AS age
			  FROM deliveries
			 WHERE state IN ('pending', 'retrying')
			 GROUP BY state`,
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
			SELECT '' AS label, '' AS sublabel, count(*) AS count,
			       extract(epoch FROM now() - min(next_attempt_at)
			           FILTER (WHERE waits_for = '')) AS age
			  FROM emails
			 WHERE state = 'queued'`,
	},
	{
		count: describe("mails_waiting",
			"E-mails that wait for the mail server, which refuses us, or for the welcome e-mail.", "for"),
		query: `
			SELECT what AS label, '' AS sublabel, count(waits_for) AS count, NULL::float8 AS age
			  FROM unnest(ARRAY['server', 'welcome']) AS what
			  LEFT JOIN emails ON state = 'queued' AND waits_for = what
			 GROUP BY what`,
	},
	{
		count: describe("restore_held",
			"1 while a restored database holds everything back until somebody decides, else 0."),
		age: describe("restore_held_seconds", "How long everything has been held back."),
		query: `
			SELECT '' AS label, '' AS sublabel, count(held_at) AS count,
			       extract(epoch FROM now() - min(held_at)) AS age
			  FROM installation`,
	},
	{
		count: describe("subscriptions", "Webhook subscriptions, by state.", "state"),
		query: `
			SELECT state AS label, '' AS sublabel, count(*) AS count, NULL::float8 AS age
			  FROM subscriptions
			 WHERE state <> 'deleted'
			 GROUP BY state`,
	},
	{
		count: describe("database_connections", "Connections to this database, by state.", "state"),
		query: `
			SELECT coalesce(state, 'other') AS label, '' AS sublabel, count(*) AS count,
			       NULL::float8 AS age
			  FROM pg_stat_activity
			 WHERE datname = current_database()
			 GROUP BY state`,
	},
	{
		count: describe("database_max_connections", "Connections that the server allows at most."),
		query: `
			SELECT '' AS label, '' AS sublabel,
			       current_setting('max_connections')::bigint AS count, NULL::float8 AS age`,
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
}

// Collect asks the database, unless it was asked just now.
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
	ctx, cancel := context.WithTimeout(context.Background(), min(scrapeTimeout, c.db.Timeout()/2))
	defer cancel()
	var metrics []prometheus.Metric
	for _, count := range databaseCounts {
		found, err := count.metrics(ctx, c.db)
		if err != nil {
			slog.WarnContext(ctx, "scraping the database", "error", err)
			if c.db.PingContext(ctx) == nil {
				continue // a table that a migration has yet to bring; the rest can be told
			}
			return []prometheus.Metric{prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, 0)}
		}
		metrics = append(metrics, found...)
	}
	return append(metrics, prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, 1))
}

// metrics runs the statement and turns its rows into metrics.
func (c databaseCount) metrics(
	ctx context.Context, db *postgres.DB,
) ([]prometheus.Metric, error) {
	var rows []struct {
		Label    string   `db:"label"`
		Sublabel string   `db:"sublabel"`
		Count    int64    `db:"count"`
		Age      *float64 `db:"age"`
	}
	if err := db.SelectContext(ctx, &rows, c.query); err != nil {
		return nil, err
	}
	var metrics []prometheus.Metric
	for _, row := range rows {
		var labels []string
		for _, label := range []string{row.Label, row.Sublabel} {
			if label != "" {
				labels = append(labels, label)
			}
		}
		metrics = append(metrics, prometheus.MustNewConstMetric(
			c.count, prometheus.GaugeValue, float64(row.Count), labels...))
		if c.age == nil {
			continue
		}
		age := 0.0
		if row.Age != nil {
			age = max(*row.Age, 0)
		}
		metrics = append(metrics, prometheus.MustNewConstMetric(
			c.age, prometheus.GaugeValue, age, labels...))
	}
	return metrics, nil
}
