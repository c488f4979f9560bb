package main

import (
	"strings"
	"testing"
)

func TestHealthAsksTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cert, key, _ := writePair(t, w.folder)
	w.vars["DRAWBRIDGE_TLS_CERT"], w.vars["DRAWBRIDGE_TLS_KEY"] = cert, key
	s := w.serve()
	_, w.vars["DRAWBRIDGE_LISTEN"], _ = strings.Cut(s.url, "://")
	for _, args := range [][]string{{"health"}, {"health", "--ready"}} {
		if got := w.run("", args...); got.status != 0 || got.stdout == "" {
			t.Errorf("%v ended with %d: %s%s", args, got.status, got.stdout, got.stderr)
		}
	}
	if got := w.run("", "migrate", "down"); got.status != 0 {
		t.Fatalf("migrate down ended with %d: %s", got.status, got.stderr)
	}
	if got := w.run("", "health"); got.status != 0 {
		t.Errorf("a living process: %d %s", got.status, got.stderr)
	}
	got := w.run("", "health", "--ready")
	if got.status != 1 || !strings.Contains(got.stderr, "migrate up") {
		t.Errorf("a process without its schema: %d %s", got.status, got.stderr)
	}
	s.stop()
	if got := w.run("", "health"); got.status != 1 || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("no process: %d %s", got.status, got.stderr)
	}
}

// TestStopRightAfterTheStart must look like any other stop, however far the
// worker has come.
func TestStopRightAfterTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.demoData()
	for range 4 {
		s := w.serve()
		if status := s.stop(); status != 0 {
			t.Errorf("ended with %d: %s", status, s.logged())
		}
	}
}
