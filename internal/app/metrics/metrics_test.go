package metrics

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"drawbridge/internal/admission"
	"drawbridge/internal/apilog"
	"drawbridge/internal/email"
	"drawbridge/internal/feed"
	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/internal/restore"
	"drawbridge/internal/webhook/delivery"
	"drawbridge/internal/webhook/sender"
	"drawbridge/jobs"
	"drawbridge/web"
)

// metricName finds the names of metrics in an expression.
var metricName = regexp.MustCompile(`\b(?:drawbridge|go|process)_[a-z0-9_]+\b`)

// described returns the names of every metric of the registry, including those of a histogram's
// series, and fails for a metric without a help text.
func described(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	pattern := regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]*)"`)
	var names []string
	for description := range descriptions {
		found := pattern.FindStringSubmatch(description.String())
		if len(found) < 3 || found[2] == "" {
			t.Errorf("%s has no help text", description)
			continue
		}
		names = append(names, found[1], found[1]+"_bucket", found[1]+"_sum", found[1]+"_count")
	}
	return names
}

func newMeters(db *postgres.DB) *Meters {
	return New(Watched{
		DB: db, Recorder: apilog.NewWriter(db), Gate: new(delivery.Gate),
		Admission: new(admission.Limiter), Feed: feed.New(db),
	}, "dev")
}

// TestDashboardAndAlertsNameMetricsThatExist checks the files for Grafana and Prometheus against
// the metrics that the process exposes.
func TestDashboardAndAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	db, err := postgres.Open(t.Context(), url, postgres.WithReplica(url, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	names := described(t, newMeters(db).registry)
	for _, file := range []string{
		"../../../docs/deploy/grafana.json", "../../../docs/deploy/alerts.yaml",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		used := metricName.FindAllString(string(text), -1)
		if len(used) < 10 {
			t.Errorf("%s names only the metrics %v", file, used)
		}
		for _, name := range used {
			if !slices.Contains(names, name) {
				t.Errorf("%s names %s, which nothing exposes", file, name)
			}
		}
	}
}

// TestEveryAlertIsInTheRunbook: whoever an alert wakes must find it there.
func TestEveryAlertIsInTheRunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile("../../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			count++
			if !strings.Contains(string(runbook), "### "+rule.Alert+"\n") {
				t.Errorf("docs/OPERATIONS.md has no section on %s", rule.Alert)
			}
			if rule.Expr == "" || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" {
				t.Errorf("%s lacks an expression, a severity or a summary", rule.Alert)
			}
		}
	}
	if count < 10 {
		t.Errorf("only %d alerts", count)
	}
}

// scrape returns what the meters expose.
func scrape(t *testing.T, m *Meters) string {
	t.Helper()
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	answer, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("scraping answered %d: %v\n%s", answer.StatusCode, err, text)
	}
	return string(text)
}

func TestMetersCount(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	m := newMeters(db)
	born := scrape(t, m) // a rule that looks for an increase needs the 0 before it
	for _, counter := range []string{
		`drawbridge_webhook_attempts_total{outcome="unknown"}`,
		`drawbridge_webhook_attempts_total{outcome="delivered"}`,
		`drawbridge_deliveries_finished_total{state="failed"}`, `drawbridge_rate_limited_total`,
		`drawbridge_job_runs_total{kind="webhook_deliver",outcome="error"}`,
		`drawbridge_job_runs_total{kind="resume_mail",outcome="put_off"}`,
		`drawbridge_mail_attempts_total{outcome="refused"}`, `drawbridge_internal_errors_total`,
		`drawbridge_api_log_dropped_total`, `drawbridge_subscriptions{state="failing"}`,
		`drawbridge_deliveries_open{state="retrying"}`,
	} {
		if !strings.Contains(born, counter+" 0\n") {
			t.Errorf("%s is not born at 0", counter)
		}
	}
	m.Request(web.Answered{Method: "GET", Route: "/api/v2/loan/:uid", Status: 200, Took: time.Second})
	m.Request(web.Answered{
		Method: "POST", Route: "/api/v2/application", Status: 429, Client: "client-a",
	})
	m.Request(web.Answered{Method: "POST", Route: "/api/v2/application", Status: 429}) // a stranger's
	m.Request(web.Answered{Method: "BREW", Status: 404})
	m.Request(web.Answered{Method: "GET", Route: "/console", Status: 500, InternalError: true})
	m.Attempt(delivery.Observation{State: delivery.StateDelivered, Lag: time.Second})
	m.Attempt(delivery.Observation{Class: sender.ClassTimeout, State: delivery.StateFailed})
	m.Attempt(delivery.Observation{Class: sender.ClassDNS, State: delivery.StateRetrying})
	m.Attempt(delivery.Observation{State: delivery.StateDelivered, Test: true})
	m.Run(jobs.Run{Kind: "housekeep", Outcome: jobs.OutcomeDone})
	m.Mail(email.OutcomeSent)
	text := scrape(t, m)
	for _, line := range []string{
		`drawbridge_http_requests_total{method="GET",route="/api/v2/loan/:uid",status="200"} 1`,
		`drawbridge_http_requests_total{method="any",route="none",status="404"} 1`,
		`drawbridge_rate_limited_total 1`,
		`drawbridge_internal_errors_total 1`,
		`drawbridge_webhook_attempts_total{outcome="delivered"} 1`,
		`drawbridge_webhook_attempts_total{outcome="timeout"} 1`,
		`drawbridge_deliveries_finished_total{state="failed"} 1`,
		`drawbridge_webhook_attempt_lag_seconds_count 3`,
		`drawbridge_job_runs_total{kind="housekeep",outcome="done"} 1`,
		`drawbridge_mail_attempts_total{outcome="sent"} 1`,
		`drawbridge_mails_queued 0`,
		`drawbridge_database_up 1`,
		`drawbridge_build_info{version="dev"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%q is missing", line)
		}
	}
}

// TestScrapeOutlivesTheDatabase: the scrape must not fail, because an alert needs to learn that the
// database is gone.
func TestScrapeOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	m := newMeters(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if text := scrape(t, m); !strings.Contains(text, "drawbridge_database_up 0\n") {
		t.Errorf("the scrape does not tell:\n%s", text)
	}
}

// TestScrapeTellsOfAQuarantine covers the metric of the alert RestoreHeld.
func TestScrapeTellsOfAQuarantine(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	free := scrape(t, newMeters(db))
	if !strings.Contains(free, "drawbridge_restore_held 0\n") {
		t.Errorf("without a quarantine:\n%s", free)
	}
	err := db.InTx(t.Context(), func(tx *postgres.Tx) error {
		return (&restore.Service{DB: db}).Quarantine(t.Context(), tx, "recovered to 09:30")
	})
	if err != nil {
		t.Fatal(err)
	}
	held := scrape(t, newMeters(db))
	if !strings.Contains(held, "drawbridge_restore_held 1\n") ||
		!strings.Contains(held, "drawbridge_restore_held_seconds ") {
		t.Errorf("with a quarantine:\n%s", held)
	}
}

// TestScrapeBeforeTheMigrations reports what exists, and that the database is up.
func TestScrapeBeforeTheMigrations(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.ExecContext(t.Context(), `DROP TABLE installation`); err != nil {
		t.Fatal(err)
	}
	text := scrape(t, newMeters(db))
	for _, line := range []string{"drawbridge_database_up 1\n", "drawbridge_mails_queued 0\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is missing", line)
		}
	}
}
