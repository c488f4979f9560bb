package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	if isOutside(os.Args) { // the benchmark starts its own program as a caller
		os.Exit(exitStatus(callFromOutside(context.Background(), os.Stdin, os.Stdout)))
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// TestMeasuresEverything runs each section once, small: the real program, real
// sockets, a real server. Sections check their own effects, so that a figure
// without them would be an error here.
func TestMeasuresEverything(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	profile := filepath.Join(folder, "draws.pprof")
	report, err := measure(t.Context(), options{
		sizes: sizes{
			rate: 50, seconds: 1, operations: 32, rounds: 2, events: 60, endpoints: 3,
			isolated: 48, slow: 20, slower: 4, waiting: 400, drained: 60, called: 1,
			starts: 1, visits: 2, seeded: 500,
		},
		sections: sectionNames(), profile: profile, dir: folder, volatile: true,
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range report.Rows {
		if line.Name != "" && !slices.Contains(names, line.Name) {
			names = append(names, line.Name)
		}
		if !isFigure(line.Floor) || line.FloorName == "" || line.Section == "" {
			t.Errorf("%s has the floor %v, named %q", line.Name, line.Floor, line.FloorName)
		}
		// An arrival may come before the commit's return, and memory need not grow.
		if !isFigure(line.Value) && line.Unit == "/s" {
			t.Errorf("%s is %v %s", line.Name, line.Value, line.Unit)
		}
	}
	if diff := cmp.Diff(figures, names); diff != "" {
		t.Errorf("the figures are others (-want +got):\n%s", diff)
	}
	if !isFigure(report.Machine.CommitMS) || report.Machine.Postgres == "" {
		t.Errorf("the machine is described as %+v", report.Machine)
	}
	if stolen := report.Machine.Stolen; !(stolen >= 0 && stolen < 1) {
		t.Errorf("the share that was stolen is %v", stolen)
	}
	if info, err := os.Stat(profile); err != nil || info.Size() == 0 {
		t.Errorf("the profile is missing or empty: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(folder, "drawbridge-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the run left %v behind (%v)", left, err)
	}
}

func isFigure(value float64) bool { return value > 0 && !math.IsInf(value, 0) }

// figures are the names of the table, in its order.
var figures = []string{
	"HTTP, from the commit's return, p50", "HTTP, from the commit's return, p99",
	"HTTP, from sending the commit, p50", "HTTP, from sending the commit, p99",
	"TLS, from the commit's return, p50", "TLS, from the commit's return, p99",
	"TLS, from sending the commit, p50", "TLS, from sending the commit, p99",
	"request-draw", "request-draw, p50", "request-draw, p99",
	"request-draw with an Idempotency-Key", "request-draw with an Idempotency-Key, p50",
	"request-draw with an Idempotency-Key, p99",
	"accept-offer", "accept-offer, p50", "accept-offer, p99",
	"GET loan", "GET loan, p50", "GET loan, p99",
	"HTTP, 1 endpoint", "HTTP, 1 endpoint, processor time each",
	"HTTP, 3 endpoints", "HTTP, 3 endpoints, processor time each",
	"TLS, 1 endpoint", "TLS, 1 endpoint, processor time each",
	"TLS, 3 endpoints", "TLS, 3 endpoints, processor time each",
	"48 events, 1 hanging and 5 failing of 16 endpoints, p50",
	"48 events, 1 hanging and 5 failing of 16 endpoints, p99",
	"two processes, 1 endpoint of 200ms", "two processes, 1 endpoint of 1s",
	"four processes, 1 endpoint of 1s",
	"deliveries, the first 60",
	"request-draw meanwhile, p50", "request-draw meanwhile, p99",
	"grown by an upload of 50 MiB",
	"to the ready line, p50", "to the ready line, slowest",
	"deliveries, p50", "deliveries, p95",
	"deliveries that failed, p50", "deliveries that failed, p95",
	"applications, p50", "applications, p95", "e-mails, p50", "e-mails, p95",
	"subscriptions, p50", "subscriptions, p95",
}

func TestParse(t *testing.T) {
	t.Parallel()
	all := sectionNames()
	tests := []struct {
		args []string
		want options
	}{
		{nil, options{sizes: fullSizes, sections: all}},
		{[]string{"-quick", "-json"}, options{sizes: quickSizes, sections: all, json: true}},
		{
			[]string{"-only", "api,upload", "-profile", "cpu.prof"},
			options{sizes: fullSizes, sections: []string{"api", "upload"}, profile: "cpu.prof"},
		},
		{[]string{"-dir", "/data"}, options{sizes: fullSizes, sections: all, dir: "/data"}},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			if test.want.dir == "" {
				test.want.dir = os.TempDir()
			}
			got, err := parse(test.args, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(options{}, sizes{})); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongUsageIsNamed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		says string
	}{
		{[]string{"-only", "api,uploads"}, `-only names "uploads"; the sections are latency, api,`},
		{[]string{"api"}, `"api" is not an option`},
		{[]string{"-fast"}, "-fast"},
		{[]string{"-only", "upload", "-profile", "cpu.prof"}, "-profile needs the section api"},
	}
	for _, test := range tests {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			err := command(t.Context(), test.args, io.Discard, io.Discard)
			if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one of usage that says %q", err, test.says)
			}
			if status := exitStatus(err); status != 2 {
				t.Errorf("exit status %d, want 2", status)
			}
		})
	}
	err := command(t.Context(), []string{"-h"}, io.Discard, io.Discard)
	if !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h ended with %v", err)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := &report{Machine: machine{Cores: 2, Postgres: "15.18", Fsync: "on", Stolen: 0.021}}
	for _, line := range []row{
		{"API", "draw", "/s", 612.4, 800, "SQL", 0, "> 0.7"},
		{"API", "draw", "/s", 612.4, 12.25, "idle", 0, ""},
		{"memory", "upload", "MiB", 2.071, 0, "none", 0, ""},
	} {
		r.add(line)
	}
	var text bytes.Buffer
	if err := r.writeText(&text); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	want := []string{
		"2.1 % of the processors' time was stolen by other guests of the host",
		"figure value floor ratio floor is aim",
		"API",
		"draw 612 /s 800 /s 0.77 SQL > 0.7",
		"12.2 /s 50.0 idle",
		"memory",
		"upload 2.07 MiB 0.00 MiB 0.00 none",
	}
	if diff := cmp.Diff(want, lines[2:]); diff != "" {
		t.Errorf("the table (-want +got):\n%s\n%s", diff, text.String())
	}
	var document bytes.Buffer
	if err := r.writeJSON(&document); err != nil {
		t.Fatal(err)
	}
	var again report
	if err := json.Unmarshal(document.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &again, cmp.AllowUnexported(report{})); diff != "" {
		t.Errorf("the document reads differently (-want +got):\n%s", diff)
	}
}
