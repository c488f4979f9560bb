// Package metrics counts what a process does, and asks the database at each scrape
// what all processes share.
package metrics

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"drawbridge/internal/admission"
	"drawbridge/internal/apilog"
	"drawbridge/internal/email"
	"drawbridge/internal/feed"
	"drawbridge/internal/postgres"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/jobs"
	"drawbridge/web"
)

// The upper bounds of the histograms, in seconds.
var (
	quickBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	slowBuckets  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 300, 1800}
)

// Meters count what this process does. What all processes share is asked of the
// database when it is scraped: see databaseCollector.
type Meters struct {
	registry        *prometheus.Registry
	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec
	rateLimited     prometheus.Counter
	internalErrors  prometheus.Counter
	attempts        *prometheus.CounterVec
	attemptDuration prometheus.Histogram
	attemptLag      prometheus.Histogram
	finished        *prometheus.CounterVec
	jobRuns         *prometheus.CounterVec
	jobDuration     *prometheus.HistogramVec
	mails           *prometheus.CounterVec
	notReady        *prometheus.GaugeVec
	// pool is that of the working queue, nil before.
	pool atomic.Pointer[pgxpool.Pool]
}

// Reason is why a process cannot serve. The list is closed.
type Reason string

// The reasons that a probe of readiness finds.
const (
	// Serves: there is none.
	Serves             Reason = ""
	DatabaseAway       Reason = "database_away"
	DatabaseUnwritable Reason = "database_unwritable"
	SchemaBehind       Reason = "schema_behind"
	PartitionsMissing  Reason = "partitions_missing"
	EnvironmentOther   Reason = "environment_other"
)

// Ready keeps what the last probe of readiness found.
func (m *Meters) Ready(found Reason) {
	for _, reason := range []Reason{
		DatabaseAway, DatabaseUnwritable, SchemaBehind, PartitionsMissing, EnvironmentOther,
	} {
		value := 0.0
		if reason == found {
			value = 1
		}
		m.notReady.WithLabelValues(string(reason)).Set(value)
	}
}

// Watched is what the meters ask when they are read.
type Watched struct {
	DB        *postgres.DB
	Recorder  *apilog.Writer
	Gate      *delivery.Gate
	Admission *admission.Limiter
	Feed      *feed.Service
}

// New makes the meters of a process.
func New(watched Watched, version string) *Meters {
	registry := prometheus.NewRegistry()
	factory := promauto.With(registry)
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "drawbridge_build_info",
		Help:        "Always 1; the label names the version that runs.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewDBStatsCollector(watched.DB.DB.DB, "drawbridge"),
		&databaseCollector{
			db: watched.DB,
			up: describe("database_up", "1 when the database answered this scrape, else 0."),
		},
	)
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "drawbridge_api_log_stored_total",
		Help: "Partner requests that were written to the request log.",
	}, func() float64 { return float64(watched.Recorder.Stored()) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "drawbridge_api_log_dropped_total",
		Help: "Partner requests missing from the request log: full buffer or failing database.",
	}, func() float64 { return float64(watched.Recorder.Dropped()) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "drawbridge_api_log_passed_over_total",
		Help: "Requests without valid credentials beyond those that the request log keeps of an address.",
	}, func() float64 { return float64(watched.Recorder.Passed()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "drawbridge_api_calls_in_flight",
		Help: "Partner requests being answered. Under load webhooks yield to them.",
	}, func() float64 { return float64(watched.Gate.InFlight()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "drawbridge_api_calls_waiting",
		Help: "Partner requests that wait until others were answered, up to 128 and 1000 to the feed.",
	}, func() float64 { return float64(watched.Admission.Waiting()) })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "drawbridge_api_calls_refused_total",
		Help: "Partner requests refused with 503 because too many waited.",
	}, func() float64 { return float64(watched.Admission.Refused()) })
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "drawbridge_feed_waiting",
		Help: "Calls that wait for an event of the feed, up to 1000.",
	}, func() float64 { return float64(watched.Feed.Waiting()) })
	watchReplica(factory, watched.DB)
	m := &Meters{registry: registry}
	m.countRequests(factory)
	m.countWork(factory)
	m.begin()
	return m
}

// watchReplica makes the meters of the replica, if there is one.
func watchReplica(factory promauto.Factory, db *postgres.DB) {
	if db.MostLag() == 0 {
		return
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "drawbridge_replica_used",
		Help: "1 while reads that may lag go to the replica, else 0.",
	}, func() float64 {
		if _, used, _ := db.Replica(); used {
			return 1
		}
		return 0
	})
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "drawbridge_replica_lag_seconds",
		Help: "How old what the replica showed at the last look was at most, or at least where it is " +
			"not used. 0 while it does not answer.",
	}, func() float64 {
		state, _, _ := db.Replica()
		return state.Lag.Seconds()
	})
}

// begin lets every counter whose labels are known begin at 0: to a rule that looks for
// an increase, one that appears with its first count has not increased.
func (m *Meters) begin() {
	m.attempts.WithLabelValues(string(delivery.StateDelivered))
	for _, class := range sender.ErrorClasses() {
		m.attempts.WithLabelValues(string(class))
	}
	m.finished.WithLabelValues(string(delivery.StateDelivered))
	m.finished.WithLabelValues(string(delivery.StateFailed))
	for _, outcome := range email.Outcomes() {
		m.mails.WithLabelValues(string(outcome))
	}
	for _, kind := range jobs.Kinds() {
		for _, outcome := range jobs.Outcomes() {
			m.jobRuns.WithLabelValues(kind, string(outcome))
		}
	}
}

// countRequests makes the meters of what is asked of the process.
func (m *Meters) countRequests(factory promauto.Factory) {
	m.requests = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "drawbridge_http_requests_total",
		Help: "Requests answered, by method, route and status.",
	}, []string{"method", "route", "status"})
	m.requestDuration = factory.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "drawbridge_http_request_duration_seconds",
		Help:    "Time from the head of a request to the end of its answer, by method and route.",
		Buckets: quickBuckets,
	}, []string{"method", "route"})
	m.notReady = factory.NewGaugeVec(prometheus.GaugeOpts{
		Name: "drawbridge_not_ready",
		Help: "1 for the reason that the last probe of /readyz found the process unable to serve by.",
	}, []string{"reason"})
	m.Ready(Serves)
	m.rateLimited = factory.NewCounter(prometheus.CounterOpts{
		Name: "drawbridge_rate_limited_total",
		Help: "Requests refused with 429 whose credentials were right: their client asked too often.",
	})
	m.internalErrors = factory.NewCounter(prometheus.CounterOpts{
		Name: "drawbridge_internal_errors_total",
		Help: "Requests that ended in an error of our own. A pending draw's 500 is not one.",
	})
}

// countWork makes the meters of what the process does by itself.
func (m *Meters) countWork(factory promauto.Factory) {
	m.attempts = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "drawbridge_webhook_attempts_total",
		Help: "Attempts written down, by outcome: delivered or the error class. No test events.",
	}, []string{"outcome"})
	m.attemptDuration = factory.NewHistogram(prometheus.HistogramOpts{
		Name:    "drawbridge_webhook_attempt_duration_seconds",
		Help:    "Time of one attempt from the name lookup to the last byte read.",
		Buckets: slowBuckets,
	})
	m.attemptLag = factory.NewHistogram(prometheus.HistogramOpts{
		Name:    "drawbridge_webhook_attempt_lag_seconds",
		Help:    "How long after it was due an attempt started.",
		Buckets: slowBuckets,
	})
	m.finished = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "drawbridge_deliveries_finished_total",
		Help: "Deliveries that ended, by state: delivered or failed. Test events do not count.",
	}, []string{"state"})
	m.jobRuns = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "drawbridge_job_runs_total",
		Help: "Runs of queued jobs, by kind and outcome: done, put_off, cancelled or error.",
	}, []string{"kind", "outcome"})
	m.jobDuration = factory.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "drawbridge_job_duration_seconds",
		Help:    "Time of one run of a queued job, by kind.",
		Buckets: slowBuckets,
	}, []string{"kind"})
	m.mails = factory.NewCounterVec(prometheus.CounterOpts{
		Name: "drawbridge_mail_attempts_total",
		Help: "Attempts to hand a mail to the mail server, by outcome.",
	}, []string{"outcome"})
}

// Handler serves the metrics.
func (m *Meters) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts one answered request. Requests without a route share one
// label, so that anyone who probes for paths cannot fill the memory.
func (m *Meters) Request(r web.Answered) {
	if r.Route == "" {
		r.Method, r.Route = "any", "none"
	}
	m.requests.WithLabelValues(r.Method, r.Route, strconv.Itoa(r.Status)).Inc()
	m.requestDuration.WithLabelValues(r.Method, r.Route).Observe(r.Took.Seconds())
	if r.Status == http.StatusTooManyRequests && r.Client != "" { // no guesses of credentials
		m.rateLimited.Inc()
	}
	if r.InternalError {
		m.internalErrors.Inc()
	}
}

// Attempt counts one attempt of a delivery.
func (m *Meters) Attempt(o delivery.Observation) {
	if o.Test {
		return
	}
	outcome := string(o.Class)
	if outcome == "" {
		outcome = string(delivery.StateDelivered)
	}
	m.attempts.WithLabelValues(outcome).Inc()
	m.attemptDuration.Observe(o.Took.Seconds())
	m.attemptLag.Observe(o.Lag.Seconds())
	if o.State.IsFinal() {
		m.finished.WithLabelValues(string(o.State)).Inc()
	}
}

// Run counts one run of a job.
func (m *Meters) Run(r jobs.Run) {
	m.jobRuns.WithLabelValues(r.Kind, string(r.Outcome)).Inc()
	m.jobDuration.WithLabelValues(r.Kind).Observe(r.Took.Seconds())
}

// Mail counts one attempt to send a mail.
func (m *Meters) Mail(outcome email.Outcome) { m.mails.WithLabelValues(string(outcome)).Inc() }

// WatchPool adds the connections of the working queue's client, the last one's if the queue is
// worked again.
func (m *Meters) WatchPool(pool *pgxpool.Pool) {
	if m.pool.Swap(pool) != nil {
		return
	}
	factory := promauto.With(m.registry)
	for _, gauge := range []struct {
		name, help string
		value      func(*pgxpool.Stat) int32
	}{
		{"max_connections", "Connections that the pool opens at most.", (*pgxpool.Stat).MaxConns},
		{"connections", "Connections that are open.", (*pgxpool.Stat).TotalConns},
		{"acquired_connections", "Connections that are in use.", (*pgxpool.Stat).AcquiredConns},
	} {
		factory.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "drawbridge_queue_pool_" + gauge.name, Help: gauge.help,
		}, func() float64 { return float64(gauge.value(m.pool.Load().Stat())) })
	}
}
