package service

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"drawbridge/cmd/e2e/e2etest"
)

func TestHealthAsksTheProcess(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	cert, key, _ := e2etest.WritePair(t, w.Folder)
	w.Env["DRAWBRIDGE_TLS_CERT"], w.Env["DRAWBRIDGE_TLS_KEY"] = cert, key
	s := w.Serve()
	_, w.Env["DRAWBRIDGE_LISTEN"], _ = strings.Cut(s.URL, "://")
	for _, args := range [][]string{{"health"}, {"health", "--ready"}} {
		if got := w.Run("", args...); got.Status != 0 || got.Stdout == "" {
			t.Errorf("%v ended with %d: %s%s", args, got.Status, got.Stdout, got.Stderr)
		}
	}
	if got := w.Run("", "migrate", "down"); got.Status != 0 {
		t.Fatalf("migrate down ended with %d: %s", got.Status, got.Stderr)
	}
	if got := w.Run("", "health"); got.Status != 0 {
		t.Errorf("a living process: %d %s", got.Status, got.Stderr)
	}
	got := w.Run("", "health", "--ready")
	if got.Status != 1 || !strings.Contains(got.Stderr, "migrate up") {
		t.Errorf("a process without its schema: %d %s", got.Status, got.Stderr)
	}
	if got := w.Run("", "migrate", "down"); got.Status != 0 {
		t.Fatalf("migrate down ended with %d: %s", got.Status, got.Stderr)
	}
	got = w.Run("", "health", "--ready")
	if got.Status != 1 || !strings.Contains(got.Stderr, "2 migrations are missing, the first is") {
		t.Errorf("a process that lacks two migrations: %d %s", got.Status, got.Stderr)
	}
	s.Stop()
	if got := w.Run("", "health"); got.Status != 1 || strings.Count(got.Stderr, "\n") != 1 {
		t.Errorf("no process: %d %s", got.Status, got.Stderr)
	}
}

// TestStopRightAfterTheStart: it must look like any other stop, however far the worker
// has started.
func TestStopRightAfterTheStart(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	w.DemoData()
	for range 4 {
		s := w.Serve()
		if status := s.Stop(); status != 0 {
			t.Errorf("ended with %d: %s", status, s.Logged())
		}
	}
}

// TestServesOnWhenNobodyReadsItsLog: the service must not end when its log collector does.
func TestServesOnWhenNobodyReadsItsLog(t *testing.T) {
	t.Parallel()
	w := e2etest.New(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := w.Command("serve")
	command.Stderr = writer
	s := w.Start(command)
	if err := errors.Join(reader.Close(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		answer, err := http.Get(s.URL + "/api/v2/loan/x") // this request is logged
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close() // its content does not matter
	}
	if status := s.Stop(); status != 0 {
		t.Errorf("ended with %d", status)
	}
}
