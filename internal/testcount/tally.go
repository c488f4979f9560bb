package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
)

// event is one line of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// scope is a package, or a test in it.
type scope struct{ name, test string }

// tally counts results and keeps output until it is known to be needed. Several streams may be read
// concurrently.
type tally struct {
	writer io.Writer
	mu     sync.Mutex
	// output is what each test has written so far; the output of a package outside of its tests is
	// under an empty test name.
	output map[scope]*strings.Builder
	// counts is the number of tests by result, in total and for each package.
	counts map[scope]int
}

func newTally(writer io.Writer) *tally {
	return &tally{writer: writer, output: map[scope]*strings.Builder{}, counts: map[scope]int{}}
}

// read counts the events of a stream until its end. Lines that are not events are passed on: the go
// command prints some before the tests begin.
func (t *tally) read(stream io.Reader) error {
	reader := bufio.NewReader(stream)
	for {
		line, err := reader.ReadBytes('\n')
		t.take(line)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the output of go test: %w", err)
		}
	}
}

func (t *tally) take(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		if len(line) > 0 {
			t.printf("%s", line)
		}
		return
	}
	where := scope{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		t.printf("%s", e.Output)
	case "output":
		if t.output[where] == nil {
			t.output[where] = &strings.Builder{}
		}
		t.output[where].WriteString(e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
			return
		}
		t.counts[scope{test: e.Action}]++
		t.counts[scope{e.Package, e.Action}]++
		if e.Action == "fail" {
			t.show(where)
		}
		delete(t.output, where)
	}
}

// endPackage prints the package's line. A package that failed although none of its tests did could
// not be built, ended early, or has no tests that ran.
func (t *tally) endPackage(e event) {
	if e.Action == "fail" {
		if t.counts[scope{e.Package, "fail"}] == 0 {
			t.counts[scope{test: "fail"}]++
		}
		// What is left is the output of tests that never ended, as after a panic or a timeout, and that
		// of the package.
		for where := range t.output {
			if where.name == e.Package && where.test != "" {
				t.show(where)
			}
		}
		t.show(scope{e.Package, ""})
		t.printf("FAIL %s (%.1f s)\n", e.Package, e.Elapsed)
	} else if passes := t.counts[scope{e.Package, "pass"}]; passes > 0 {
		t.printf("ok   %s (%.1f s, %d tests)\n", e.Package, e.Elapsed, passes)
	}
	maps.DeleteFunc(t.output, func(where scope, _ *strings.Builder) bool {
		return where.name == e.Package
	})
}

func (t *tally) show(where scope) {
	if text := t.output[where]; text != nil {
		t.printf("%s", text)
	}
}

// close prints the last line.
func (t *tally) close() {
	t.printf("%d passed, %d failed, %d skipped\n", t.counts[scope{test: "pass"}],
		t.counts[scope{test: "fail"}], t.counts[scope{test: "skip"}])
}

func (t *tally) printf(format string, arguments ...any) {
	// Without a terminal to write to, nobody would see the error.
	_, _ = fmt.Fprintf(t.writer, format, arguments...)
}
