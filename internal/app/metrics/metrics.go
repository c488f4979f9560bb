// Package metrics counts what a process does, and reads what all processes share from the database
// at each scrape.
package metrics

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
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

// prefix begins the name of every metric of ours.
const prefix = "drawbridge_"

// The upper bounds of the histograms, in seconds.
var (
	quickBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	slowBuckets  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 300, 1800}
)

// Meters count what this process does. What all processes share is read from the database at each
// scrape: see databaseCollector.
type Meters struct {
	registry        *prometheus.Registry
	requests        *prometheus.CounterVec
	requestDuration *prometheus.HistogramVec
	rateLimited     prometheus.Counter
	internalErrors  prometheus.Counter
	attempts        *prometheus.CounterVec
	attemptDuration prometheus.Observer
	attemptLag      prometheus.Observer
	finished        *prometheus.CounterVec
	jobRuns         *prometheus.CounterVec
	jobDuration     *prometheus.HistogramVec
	mails           *prometheus.CounterVec
	notReady        *prometheus.GaugeVec
	// pool is the pool of the working queue, nil before there is one.
	pool atomic.Pointer[pgxpool.Pool]
}

// Reason is why a process cannot serve. The list is closed.
type Reason string

// The reasons that a probe of readiness finds.
const (
	// Serves: the process can serve.
	Serves             Reason = ""
	DatabaseAway       Reason = "database_away"
	DatabaseUnwritable Reason = "database_unwritable"
	SchemaBehind       Reason = "schema_behind"
	PartitionsMissing  Reason = "partitions_missing"
	EnvironmentOther   Reason = "environment_other"
)

// Ready records the result of the last readiness probe.
func (m *Meters) Ready(found Reason) {
	for _, reason := range []Reason{
		DatabaseAway, DatabaseUnwritable, SchemaBehind, PartitionsMissing, EnvironmentOther,
	} {
		m.notReady.WithLabelValues(string(reason)).Set(one(reason == found))
	}
}

// Watched are the parts that the meters read at each scrape.
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
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewDBStatsCollector(watched.DB.DB.DB, "drawbridge"),
		&databaseCollector{
			db: watched.DB,
			up: describe("database_up", "1 when the database answered this scrape, else 0."),
		},
	)
	f := factory{promauto.With(registry)}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "drawbridge_build_info",
		Help:        "Always 1; the label names the version that runs.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	f.reading("api_log_stored_total", "Partner requests that were written to the request log.",
		func() float64 { return float64(watched.Recorder.Stored()) })
	f.reading("api_log_dropped_total",
		"Partner requests missing from the request log: full buffer or failing database.",
		func() float64 { return float64(watched.Recorder.Dropped()) })
	f.reading("api_log_passed_over_total",
		"Requests without valid credentials beyond those that the request log keeps of an address.",
		func() float64 { return float64(watched.Recorder.Passed()) })
	f.reading("api_calls_in_flight",
		"Partner requests being answered. Under load webhooks yield to them.",
		func() float64 { return float64(watched.Gate.InFlight()) })
	f.reading("api_calls_waiting",
		"Partner requests that wait until others were answered, up to 128 and 1000 to the feed.",
		func() float64 { return float64(watched.Admission.Waiting()) })
	f.reading("api_calls_refused_total",
		"Partner requests refused with 503 because too many waited.",
		func() float64 { return float64(watched.Admission.Refused()) })
	f.reading("feed_waiting", "Calls that wait for an event of the feed, up to 1000.",
		func() float64 { return float64(watched.Feed.Waiting()) })
	if watched.DB.MostLag() > 0 {
		f.reading("replica_used", "1 while reads that may lag go to the replica, else 0.",
			func() float64 {
				_, used, _ := watched.DB.Replica()
				return one(used)
			})
		f.reading("replica_lag_seconds", "How old what the replica showed at the last look was at "+
			"most, or at least where it is not used. 0 while it does not answer.",
			func() float64 {
				state, _, _ := watched.DB.Replica()
				return state.Lag.Seconds()
			})
	}
	m := f.meters()
	m.registry = registry
	m.begin()
	return m
}

// factory makes meters whose names begin with that of the program.
type factory struct{ promauto.Factory }

// reading adds a meter read at each scrape: a counter if name ends in _total, else a gauge.
func (f factory) reading(name, help string, value func() float64) {
	name = prefix + name
	if strings.HasSuffix(name, "_total") {
		f.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value)
	} else {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
}

func (f factory) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
}

func (f factory) histogram(
	name, help string, buckets []float64, labels ...string,
) *prometheus.HistogramVec {
	return f.NewHistogramVec(
		prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
}

// one is 1 for true, else 0.
func one(so bool) float64 {
	if so {
		return 1
	}
	return 0
}

// meters makes the counters and histograms of requests and background work.
func (f factory) meters() *Meters {
	return &Meters{
		requests: f.counter("http_requests_total",
			"Requests answered, by method, route and status.", "method", "route", "status"),
		requestDuration: f.histogram("http_request_duration_seconds",
			"Time from the head of a request to the end of its answer, by method and route.",
			quickBuckets, "method", "route"),
		notReady: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: prefix + "not_ready",
			Help: "1 for the reason that the last probe of /readyz found the process unable to serve by.",
		}, []string{"reason"}),
		rateLimited: f.counter("rate_limited_total", "Requests refused with 429 whose credentials "+
			"were right: their client asked too often.").WithLabelValues(),
		internalErrors: f.counter("internal_errors_total", "Requests that ended in an error of our "+
			"own. A pending draw's 500 is not one.").WithLabelValues(),
		attempts: f.counter("webhook_attempts_total", "Attempts written down, by outcome: delivered "+
			"or the error class. No test events.", "outcome"),
		attemptDuration: f.histogram("webhook_attempt_duration_seconds",
			"Time of one attempt from the name lookup to the last byte read.",
			slowBuckets).WithLabelValues(),
		attemptLag: f.histogram("webhook_attempt_lag_seconds",
			"How long after it was due an attempt started.", slowBuckets).WithLabelValues(),
		finished: f.counter("deliveries_finished_total",
			"Deliveries that ended, by state: delivered or failed. Test events do not count.", "state"),
		jobRuns: f.counter("job_runs_total",
			"Runs of queued jobs, by kind and outcome: done, put_off, cancelled or error.",
			"kind", "outcome"),
		jobDuration: f.histogram("job_duration_seconds",
			"Time of one run of a queued job, by kind.", slowBuckets, "kind"),
		mails: f.counter("mail_attempts_total",
			"Attempts to hand a mail to the mail server, by outcome.", "outcome"),
	}
}

// begin starts every meter whose labels are known at 0: to a rule that looks for an increase, a
// meter that first appears with a count has not increased.
func (m *Meters) begin() {
	m.Ready(Serves)
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

// Handler serves the metrics.
func (m *Meters) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Request counts one answered request. Requests without a route share one label, so that probing
// for paths cannot fill the memory.
func (m *Meters) Request(r web.Answered) {
	if r.Route == "" {
		r.Method, r.Route = "any", "none"
	}
	m.requests.WithLabelValues(r.Method, r.Route, strconv.Itoa(r.Status)).Inc()
	m.requestDuration.WithLabelValues(r.Method, r.Route).Observe(r.Took.Seconds())
	if r.Status == http.StatusTooManyRequests && r.Client != "" { // not guessed credentials
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
	m.attempts.WithLabelValues(cmp.Or(string(o.Class), string(delivery.StateDelivered))).Inc()
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

// WatchPool adds metrics of the working queue's connections; called again, it switches to the new
// pool.
func (m *Meters) WatchPool(pool *pgxpool.Pool) {
	if m.pool.Swap(pool) != nil {
		return
	}
	f := factory{promauto.With(m.registry)}
	for _, gauge := range []struct {
		name, help string
		value      func(*pgxpool.Stat) int32
	}{
		{"max_connections", "Connections that the pool opens at most.", (*pgxpool.Stat).MaxConns},
		{"connections", "Connections that are open.", (*pgxpool.Stat).TotalConns},
		{"acquired_connections", "Connections that are in use.", (*pgxpool.Stat).AcquiredConns},
	} {
		f.reading("queue_pool_"+gauge.name, gauge.help,
			func() float64 { return float64(gauge.value(m.pool.Load().Stat())) })
	}
}
