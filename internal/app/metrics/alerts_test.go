package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// alertsFile is the file for Prometheus.
const alertsFile = "../../../docs/deploy/alerts.yaml"

// alertNames are the names of the rules.
func alertNames(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
		}
	}
	return names
}

// series are metrics over four hours, one value a minute in the notation of promtool.
type series map[string]string

const (
	up       = `up{job="drawbridge",instance="a"}`
	always   = "x240" // repeats the value before it
	attempts = "drawbridge_webhook_attempts_total"
	latency  = `drawbridge_http_request_duration_seconds_bucket{route="/api/v2/loan/:uid",`
)

// alertCases are series that make each alert fire, and similar ones that do not. A counter that
// goes from 0 to 1 after an hour and a half is the first failure of a process: it must count
// although the process had no such series before.
var alertCases = map[string]struct{ fires, quiet series }{
	"DrawbridgeDown": {series{up: "1x60 0x180"}, series{up: "1x120 0 1x118"}},
	"NotScraped":     {series{`up{job="node"}`: "1" + always}, series{up: "0" + always}},
	"DrawsWait": {
		series{`drawbridge_draw_oldest_seconds{state="FUNDING_REQUESTED"}`: "345601" + always},
		series{`drawbridge_draw_oldest_seconds{state="FUNDING_REQUESTED"}`: "345600" + always},
	},
	"NotReady": {
		series{`drawbridge_not_ready{instance="a",reason="database_unwritable"}`: "1" + always},
		series{`drawbridge_not_ready{instance="a",reason="database_unwritable"}`: "0x119 1 0x119"},
	},
	"NoWorker": {
		series{`drawbridge_workers{instance="a"}`: "0" + always},
		series{
			`drawbridge_workers{instance="a"}`: "1" + always,
			`drawbridge_workers{instance="b"}`: "0" + always,
		},
	},
	"DatabaseDown": {
		series{`drawbridge_database_up{instance="a"}`: "0" + always},
		series{
			`drawbridge_database_up{instance="a"}`: "0" + always,
			`drawbridge_database_up{instance="b"}`: "1" + always,
		},
	},
	"InternalErrors": {
		series{`drawbridge_internal_errors_total{instance="a"}`: "0x115 0 10x124"},
		series{`drawbridge_internal_errors_total{instance="a"}`: "0x115 0 4x124"},
	},
	"ApiSlow": {
		series{
			latency + `le="1"}`: "0" + always, latency + `le="2.5"}`: "0+60" + always,
			latency + `le="+Inf"}`: "0+60" + always,
		},
		series{
			latency + `le="0.5"}`: "0+60" + always, latency + `le="1"}`: "0+60" + always,
			latency + `le="+Inf"}`: "0+60" + always,
		},
	},
	"DeliveriesOverdue": {
		series{`drawbridge_deliveries_overdue_seconds{state="pending"}`: "0x100 0+60x140"},
		series{`drawbridge_deliveries_overdue_seconds{state="pending"}`: "100" + always},
	},
	"OutboxStuck": {
		series{"drawbridge_outbox_oldest_seconds": "0x100 0+60x140"},
		series{"drawbridge_outbox_oldest_seconds": "30" + always},
	},
	"QueueStuck": {
		series{`drawbridge_queue_oldest_seconds{queue="email",state="available"}`: "0x100 0+60x140"},
		series{`drawbridge_queue_oldest_seconds{queue="email",state="scheduled"}`: "0x100 0+60x140"},
	},
	"RestoreHeld": {
		series{"drawbridge_restore_held": "1" + always}, series{"drawbridge_restore_held": "0" + always},
	},
	"AttemptsFailing": {
		series{
			attempts + `{outcome="delivered"}`: "0+4" + always,
			attempts + `{outcome="timeout"}`:   "0+6" + always,
		},
		series{ // nothing is sent at all
			attempts + `{outcome="delivered"}`: "0" + always,
			attempts + `{outcome="timeout"}`:   "0" + always,
		},
	},
	"DeliveriesUsedUp": {
		series{`drawbridge_deliveries_finished_total{state="failed"}`: "0x90 1x150"},
		series{`drawbridge_deliveries_finished_total{state="delivered"}`: "0x90 1x150"},
	},
	"OutcomesUnknown": {
		series{attempts + `{outcome="unknown"}`: "0x90 1x150"},
		series{attempts + `{outcome="unknown"}`: "0x20 1x220"},
	},
	"SubscriptionsFailing": {
		series{`drawbridge_subscriptions{state="failing"}`: "1" + always},
		series{`drawbridge_subscriptions{state="failing"}`: "0" + always},
	},
	"SubscriptionsStopped": {
		// One process lacks the key and stops it, another has the key and lets it go on.
		series{`drawbridge_subscriptions{state="stopped"}`: "1 0 0 1" + strings.Repeat(" 0 0 1", 79)},
		series{`drawbridge_subscriptions{state="stopped"}`: "0x119 1 0x119"},
	},
	"JobErrors": {
		series{`drawbridge_job_runs_total{kind="retain",outcome="error"}`: "0x110 8x130"},
		series{`drawbridge_job_runs_total{kind="retain",outcome="done"}`: "0x110 8x130"},
	},
	"MailsOverdue": {
		series{"drawbridge_mails_overdue_seconds": "1000" + always},
		series{"drawbridge_mails_overdue_seconds": "800" + always},
	},
	"MailsRefused": {
		series{`drawbridge_mail_attempts_total{outcome="permanent"}`: "0x90 12x150"},
		series{`drawbridge_mail_attempts_total{outcome="sent"}`: "0x90 12x150"},
	},
	"MailServerRefusesUs": {
		series{`drawbridge_mails_waiting{for="server"}`: "3" + always},
		series{`drawbridge_mails_waiting{for="welcome"}`: "3" + always},
	},
	"ConnectionsRunOut": {
		series{
			`drawbridge_database_connections{instance="a",state="idle"}`:   "60" + always,
			`drawbridge_database_connections{instance="a",state="active"}`: "30" + always,
			`drawbridge_database_max_connections{instance="a"}`:            "100" + always,
		},
		series{ // two processes report the same connections
			`drawbridge_database_connections{instance="a",state="idle"}`: "60" + always,
			`drawbridge_database_connections{instance="b",state="idle"}`: "60" + always,
			`drawbridge_database_max_connections{instance="a"}`:          "100" + always,
		},
	},
	"ReplicaNotUsed": {
		series{
			`drawbridge_replica_used{instance="a"}`: "1" + always,
			`drawbridge_replica_used{instance="b"}`: "0" + always,
		},
		series{`drawbridge_replica_used{instance="a"}`: "1x100 0 1x139"},
	},
	"PartitionsRunOut": {
		series{"drawbridge_partitions_ahead_months": "1" + always},
		series{"drawbridge_partitions_ahead_months": "2" + always},
	},
	"TransactionOpenTooLong": {
		series{"drawbridge_oldest_transaction_seconds": "0x90 0+60x150"},
		series{"drawbridge_oldest_transaction_seconds": "600" + always},
	},
	"TransactionIdsRunOut": {
		series{"drawbridge_xid_age": "600000000" + always},
		series{"drawbridge_xid_age": "200000000" + always},
	},
	"BackupOld": {
		series{"drawbridge_backup_age_seconds": "100000+60" + always},
		series{"drawbridge_backup_age_seconds": "0+60" + always},
	},
	"LogArchiveFails": {
		series{"drawbridge_wal_archive_failing": "1" + always},
		series{"drawbridge_wal_archive_failing": "0" + always},
	},
	"RequestLogIncomplete": {
		series{"drawbridge_api_log_dropped_total": "0x112 3x128"},
		series{"drawbridge_api_log_dropped_total": "0x20 3x220"},
	},
	"CallsRefused": {
		series{"drawbridge_api_calls_refused_total": "0+10" + always},
		series{"drawbridge_api_calls_refused_total": "0x100 9x140"},
	},
	"ClientsRateLimited": {
		series{"drawbridge_rate_limited_total": "0+120" + always},
		series{"drawbridge_rate_limited_total": "0+30" + always},
	},
}

// TestAlertsFire checks with Prometheus's own tool that each alert fires two hours into its first
// case, and stays quiet in the other.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	type sample map[string]any
	var tests []map[string]any
	for _, name := range alertNames(t) {
		one, there := alertCases[name]
		if !there {
			t.Errorf("%s has no case", name)
		}
		for want, given := range []series{one.quiet, one.fires} {
			var input []sample
			for metric, values := range given {
				input = append(input, sample{"series": metric, "values": values})
			}
			tests = append(tests, map[string]any{
				"name": fmt.Sprintf("%s, firing %d", name, want), "interval": "1m", "input_series": input,
				"promql_expr_test": []sample{{
					"expr": fmt.Sprintf(
						`count(ALERTS{alertname=%q,alertstate="firing"}) or vector(0)`, name),
					"eval_time": "2h", "exp_samples": []sample{{"labels": "{}", "value": want}},
				}},
			})
		}
	}
	text, err := json.Marshal(map[string]any{ // JSON is YAML, too
		"rule_files": []string{rules}, "evaluation_interval": "1m", "tests": tests,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tests.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", rules}, {"test", "rules", file},
	} {
		if output, err := exec.Command("promtool", arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", arguments[:2], err, output)
		}
	}
}
