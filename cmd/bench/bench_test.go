package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMain(m *testing.M) {
	// Sections start this test binary for work in a separate process.
	if len(os.Args) == 2 && slices.Contains([]string{"call", "floor"}, os.Args[1]) {
		os.Exit(run(&world{context.Background(), os.Stdin, os.Stdout, os.Stderr}, os.Args[1:]))
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// TestMeasuresEverything runs each section once with small sizes: the real program, real sockets,
// a real server. Sections check their own effects, so a measurement without the effect fails
// here.
func TestMeasuresEverything(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	profile := filepath.Join(folder, "draws.pprof")
	b := &bench{
		world: &world{t.Context(), nil, io.Discard, io.Discard},
		sizes: sizes{
			rate: 50, seconds: 1, operations: 32, rounds: 2, settled: 20, published: 300,
			merchants: 20, events: 40, endpoints: 3,
			isolated: 48, hanging: 60, door: 40, beside: 4, slow: 10, slower: 4, waiting: 200,
			drained: 40, called: 1,
			starts: 1, visits: 2, seeded: 500,
		},
		profile: profile, server: serverOptions{dir: folder, volatile: true},
	}
	if err := b.measure(); err != nil {
		t.Fatal(err)
	}
	report := b.report
	var names []string
	for _, line := range report.Rows {
		if line.Name != "" && !slices.Contains(names, line.Name) {
			names = append(names, line.Name)
		}
		if !isFigure(line.Floor) || line.FloorName == "" || line.Section == "" {
			t.Errorf("%s has the floor %v, named %q", line.Name, line.Floor, line.FloorName)
		}
		// A webhook may arrive before the commit returns, and memory need not grow.
		if !isFigure(line.Value) && line.Unit != "ms" && line.Unit != "MiB" {
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

// figures are the names in the table, in order.
var figures = []string{
	"HTTP, request-draw", "HTTP, request-draw, processor time each",
	"HTTP, processors busy", "HTTP, call to arrival, p50", "HTTP, call to arrival, p99",
	"HTTP, at 50/s, call to arrival, p50", "HTTP, at 50/s, call to arrival, p99",
	"TLS, request-draw", "TLS, request-draw, processor time each",
	"TLS, processors busy", "TLS, call to arrival, p50", "TLS, call to arrival, p99",
	"TLS, at 50/s, call to arrival, p50", "TLS, at 50/s, call to arrival, p99",
	"calls answered", "calls answered, p50", "calls answered, p99",
	"another client's 4 a second, all answered, p50",
	"another client's 4 a second, all answered, slowest", "memory at its most",
	"HTTP, from the commit's return, p50", "HTTP, from the commit's return, p99",
	"HTTP, from sending the commit, p50", "HTTP, from sending the commit, p99",
	"TLS, from the commit's return, p50", "TLS, from the commit's return, p99",
	"TLS, from sending the commit, p50", "TLS, from sending the commit, p99",
	"request-draw", "request-draw, p50", "request-draw, p99",
	"request-draw with an Idempotency-Key", "request-draw with an Idempotency-Key, p50",
	"request-draw with an Idempotency-Key, p99",
	"accept-offer", "accept-offer, p50", "accept-offer, p99",
	"GET loan", "GET loan, p50", "GET loan, p99",
	"a batch of 20, p50", "a batch of 20, slowest",
	"from the commit's return to the answer, p50", "from the commit's return to the answer, p99",
	"a busy merchant, p50", "a busy merchant, p95",
	"one of many merchants, p50", "one of many merchants, p95",
	"all merchants, p50", "all merchants, p95",
	"a rare kind of all merchants, p50", "a rare kind of all merchants, p95",
	"HTTP, 1 endpoint", "HTTP, 1 endpoint, processor time each",
	"HTTP, 3 endpoints", "HTTP, 3 endpoints, processor time each",
	"TLS, 1 endpoint", "TLS, 1 endpoint, processor time each",
	"TLS, 3 endpoints", "TLS, 3 endpoints, processor time each",
	"48 events, 1 hanging and 5 failing of 16 endpoints, p50",
	"48 events, 1 hanging and 5 failing of 16 endpoints, p99",
	"48 events, 60 waiting at 1 hanging of 101 endpoints, p50",
	"48 events, 60 waiting at 1 hanging of 101 endpoints, p99",
	"two processes, 1 endpoint of 20ms", "two processes, 1 endpoint of 20ms, processors busy",
	"four processes, 1 endpoint of 20ms", "four processes, 1 endpoint of 20ms, processors busy",
	"two processes, 1 endpoint of 200ms", "two processes, 1 endpoint of 200ms, processors busy",
	"two processes, 1 endpoint of 1s", "two processes, 1 endpoint of 1s, processors busy",
	"four processes, 1 endpoint of 1s", "four processes, 1 endpoint of 1s, processors busy",
	"deliveries, the first 40",
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
	for line, want := range map[string]figuresCmd{
		"":                               {},
		"-quick -out all.jsonl":          {Quick: true, Out: "all.jsonl"},
		"--quick":                        {Quick: true},
		"-only api,upload -profile a.cp": {Only: []string{"api", "upload"}, Profile: "a.cp"},
		"figures -dir /data":             {Dir: "/data"},
	} {
		if want.Dir == "" {
			want.Dir = os.TempDir()
		}
		command, err := parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		got := command.Model.Target.Addr().Interface().(*grammar).Figures
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

func TestWrongUsageIsNamed(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"-only api,uploads":              `-only names "uploads"; the sections are door, overload,`,
		"api":                            "unexpected argument api",
		"-fast":                          "-fast",
		"-only upload -profile cpu.prof": "-profile needs the section api",
		"soak -minutes 0":                "times must be positive",
		"soak -share 1.5":                "-share at most 1",
		"soak -every 0s":                 "times must be positive",
		"soak more":                      "unexpected argument more",
		"lists -what":                    "-what",
	} {
		var said strings.Builder
		status := run(&world{t.Context(), nil, io.Discard, &said}, strings.Fields(line))
		if status != 2 || !strings.Contains(said.String(), says) {
			t.Errorf("%s ends with %d and %q, want 2 and %q", line, status, said.String(), says)
		}
	}
}

// documented matches options of this program in a document, given to make or to go run.
var documented = regexp.MustCompile(
	`make (?:bench|(soak)(?: MINUTES=\d+)?|(lists)) (?:BENCH|SOAK|LISTS)=(?:'([^']*)'|(\S+))|` +
		`go run \./cmd/bench ([^` + "`\n&]*)")

// TestDocumentedOptionsAreTaken parses the command lines that the documents show.
func TestDocumentedOptionsAreTaken(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen, performance := 0, ""
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(page) == "PERFORMANCE.md" {
			performance = string(text)
		}
		for _, found := range documented.FindAllStringSubmatch(string(text), -1) {
			seen++
			line, _, _ := strings.Cut(strings.Join(found[1:], " "), " #")
			line = strings.ReplaceAll(line, "...", "x")
			if strings.HasPrefix(strings.TrimSpace(line), "lists x") {
				line = strings.Replace(line, "x", "", 1) // as in the line before
			}
			if _, err := parse(strings.Fields(strings.Trim(line, " `"))); err != nil {
				t.Errorf("%s names the options %q: %v", page, line, err)
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d calls were found", seen)
	}
	for _, name := range sectionNames() {
		if !strings.Contains(performance, name) {
			t.Errorf("docs/PERFORMANCE.md does not name the section %s", name)
		}
	}
}

// readLines reads a file of JSON lines.
func readLines(t *testing.T, path string) []map[string]any {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var lines []map[string]any
	for decoder := json.NewDecoder(file); decoder.More(); {
		line := map[string]any{}
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// cellsOf are the lines of a printed table with single spaces between cells.
func cellsOf(printed string) []string {
	var lines []string
	for line := range strings.Lines(printed) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return lines
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
	var text strings.Builder
	if err := r.print(&text); err != nil {
		t.Fatal(err)
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
	if diff := cmp.Diff(want, cellsOf(text.String())[2:]); diff != "" {
		t.Errorf("the table (-want +got):\n%s\n%s", diff, text.String())
	}
	path := filepath.Join(t.TempDir(), "bench.jsonl")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	lines := readLines(t, path)
	if len(lines) != 4 || lines[0]["cores"] != 2.0 || lines[1]["value"] != 612.4 ||
		lines[2]["floor_name"] != "idle" {
		t.Errorf("the file holds %v", lines)
	}
}
