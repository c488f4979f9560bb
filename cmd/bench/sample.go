package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"drawbridge/internal/postgres"
)

// sampler takes samples of all series and keeps them.
type sampler struct {
	machine machine
	program *program
	db      *postgres.DB
	traffic *traffic
	outside *outside
	series  []*series
	// before are the counters at the last sample, used the processor times.
	before  counters
	used    procfs.CPUStat
	started time.Time
}

// counters only ever grow.
type counters struct {
	at                     time.Time
	calls, arrived, mailed int64
}

// measures are the series that do not depend on the mix, in the order of the table, with
// their bounds.
var measures = []struct {
	name, unit, why string
	bound           bound
}{
	{"memory", "MiB", "resident set of the program's process", bound{Share: .10, Slack: 16}},
	{"heap in use", "MiB", "go_memstats_heap_inuse_bytes", bound{Share: .15, Slack: 16}},
	{"goroutines", "", "go_goroutines", bound{Share: .10, Slack: 50}},
	{"file descriptors", "", "process_open_fds", bound{Share: .10, Slack: 20}},
	{"connections", "", "those of every client to Postgres", bound{Share: .05, Slack: 5}},
	{
		"work offered and done", "/s", "pieces of the mix that ended",
		bound{Share: .10, Slack: 1, Both: true},
	},
	{
		"deliveries", "/s", "requests that arrived at the endpoints, retries included",
		bound{Share: .10, Slack: 2, Both: true},
	},
	{"mails", "/s", "messages that the mail server accepted", bound{Share: .15, Slack: 1, Both: true}},
	{"jobs waiting", "", "jobs of all queues that could run now", bound{Share: .25, Slack: 20}},
	{"deliveries open", "", "pending or retrying", bound{Share: .25, Slack: 50}},
	{
		"dead rows", "%", "of the rows of all tables, as the statistics count them",
		bound{Share: .25, Slack: 5},
	},
	{
		"bytes per row", "B", "tables and indexes of the database, over their live rows",
		bound{Share: .10, Slack: 50},
	},
	{
		"tables", "MiB", "all tables without their indexes; they grow with what is kept",
		bound{None: true},
	},
	{"indexes", "MiB", "all indexes; they grow with what is kept", bound{None: true}},
	{
		"processors busy", "%",
		"of all processors, by everything that runs there: near 100 every wait is long",
		bound{None: true},
	},
	{
		"load of the machine", "",
		"its load average of a minute: what else runs there goes into everything above",
		bound{None: true},
	},
}

// latencyBounds are the bounds of the 50th and the 99th percentile.
var latencyBounds = map[string]bound{
	"p50": {Share: .25, Slack: 5}, "p99": {Share: .50, Slack: 50},
}

// run takes samples until ctx ends.
func (s *sampler) run(ctx context.Context, every time.Duration, say func(string, ...any)) error {
	for _, m := range measures {
		s.series = append(s.series, &series{Name: m.name, Unit: m.unit, Why: m.why, Bound: m.bound})
	}
	for _, one := range mix {
		for _, name := range []string{"p50", "p99"} {
			s.series = append(s.series, &series{
				Name: one.name + ", " + name, Unit: "ms", Bound: latencyBounds[name],
				Why: "from when it was due to the end of its last answer",
			})
		}
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	s.started, s.before = time.Now(), s.count()
	for reported := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := s.sample(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if time.Since(reported) >= time.Minute {
			say("%s have passed", time.Since(s.started).Round(time.Second))
			reported = time.Now()
		}
	}
}

// add adds a point to the series with a name.
func (s *sampler) add(name string, value float64) {
	for _, one := range s.series {
		if one.Name == name {
			one.Points = append(one.Points, point{time.Since(s.started).Seconds(), value})
		}
	}
}

func (s *sampler) count() counters {
	return counters{
		time.Now(), s.traffic.made.Load(), s.outside.arrived.Load(), s.outside.mails.Load(),
	}
}

// sample measures everything once.
func (s *sampler) sample(ctx context.Context) error {
	now := s.count()
	length := now.at.Sub(s.before.at).Seconds()
	s.add("work offered and done", float64(now.calls-s.before.calls)/length)
	s.add("deliveries", float64(now.arrived-s.before.arrived)/length)
	s.add("mails", float64(now.mailed-s.before.mailed)/length)
	s.before = now
	for name, took := range s.traffic.times() {
		s.add(name+", p50", milliseconds(quantile(took, 0.5)))
		s.add(name+", p99", milliseconds(quantile(took, 0.99)))
	}
	resident, _, err := s.program.memory()
	s.add("memory", resident)
	load, loadErr := loadAverage()
	s.add("load of the machine", load)
	used, usedErr := processors()
	if all := wholeTime(used) - wholeTime(s.used); s.used != (procfs.CPUStat{}) && all > 0 {
		s.add("processors busy", 100*(busyTime(used)-busyTime(s.used))/all)
	}
	s.used = used
	return errors.Join(err, loadErr, usedErr, s.scrape(ctx), s.queryDatabase(ctx))
}

// scrape reads the program's metrics.
func (s *sampler) scrape(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.program.origin+"/metrics",
		http.NoBody)
	if err != nil {
		return fmt.Errorf("reading the metrics: %w", err)
	}
	response, err := s.program.api.Do(request)
	if err != nil {
		return fmt.Errorf("reading the metrics: %w", err)
	}
	defer response.Body.Close()
	wanted := map[string]struct {
		name string
		unit float64
	}{
		"go_goroutines":                {"goroutines", 1},
		"go_memstats_heap_inuse_bytes": {"heap in use", mebi},
		"process_open_fds":             {"file descriptors", 1},
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if measure, ok := wanted[name]; ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("reading the metric %s: %w", name, err)
			}
			s.add(measure.name, value/measure.unit)
		}
	}
	return lines.Err()
}

// queryDatabase reads the state of the database.
func (s *sampler) queryDatabase(ctx context.Context) error {
	var found []struct {
		Name  string
		Value float64
	}
	err := s.db.SelectContext(ctx, &found, `
		WITH kept AS (
			SELECT coalesce(sum(n_live_tup), 0) AS live,
			       coalesce(sum(n_dead_tup), 0) AS dead,
			       coalesce(sum(pg_table_size(relid)), 0) AS tables,
			       coalesce(sum(pg_indexes_size(relid)), 0) AS indexes
			  FROM pg_stat_user_tables
		)
		SELECT 'connections' AS name, count(*)::float AS value
		  FROM pg_stat_activity
		 WHERE datname = current_database()
		 UNION ALL
		SELECT 'jobs waiting', count(*) FROM river_job WHERE state = 'available'
		 UNION ALL
		SELECT 'deliveries open', count(*)
		  FROM deliveries
		 WHERE state IN ('pending', 'retrying')
		 UNION ALL
		SELECT 'tables', tables / $1 FROM kept
		 UNION ALL
		SELECT 'indexes', indexes / $1 FROM kept
		 UNION ALL
		SELECT 'dead rows', 100 * dead / greatest(live + dead, 1) FROM kept
		 UNION ALL
		SELECT 'bytes per row', (tables + indexes) / greatest(live, 1) FROM kept`, mebi)
	if err != nil {
		return fmt.Errorf("asking the database: %w", err)
	}
	for _, one := range found {
		s.add(one.Name, one.Value)
	}
	return nil
}
