package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/postgres"
	"drawbridge/internal/postgres/pgtest"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	folder, err := os.MkdirTemp("", "drawbridge-test")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "drawbridge")
	if output, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, output)
		return 1
	}
	return m.Run()
}

// world is a database and a folder of a test's own, in which commands run.
type world struct {
	t      *testing.T
	folder string
	vars   map[string]string
	// program is the one under test, or an earlier release.
	program string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, pgtest.URL(t))
}

// newWorldOn is a world on a database that the test brings.
func newWorldOn(t *testing.T, databaseURL string) *world {
	t.Helper()
	return &world{t: t, folder: t.TempDir(), program: binary, vars: map[string]string{
		"DATABASE_URL":             databaseURL,
		"DRAWBRIDGE_LISTEN":        "127.0.0.1:0",
		"DRAWBRIDGE_WEBHOOK_RETRY": "100ms,200ms",
	}}
}

func (w *world) command(args ...string) *exec.Cmd {
	command := exec.Command(w.program, args...)
	command.Dir = w.folder
	command.Env = append(command.Env, "PATH="+os.Getenv("PATH"), "HOME="+w.folder)
	for name, value := range w.vars {
		command.Env = append(command.Env, name+"="+value)
	}
	return command
}

// run runs a command to its end.
func (w *world) run(stdin string, args ...string) result {
	w.t.Helper()
	command := w.command(args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Stdin = strings.NewReader(stdin)
	err := command.Run()
	if err != nil && command.ProcessState == nil {
		w.t.Fatalf("running %v: %v", args, err)
	}
	return result{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// json runs a command that must succeed and reads its one document.
func (w *world) json(into any, args ...string) {
	w.t.Helper()
	got := w.run("", append(args, "--json")...)
	if got.status != 0 {
		w.t.Fatalf("%v ended with %d: %s", args, got.status, got.stderr)
	}
	decoder := json.NewDecoder(strings.NewReader(got.stdout))
	if err := decoder.Decode(into); err != nil {
		w.t.Fatalf("%v printed %q: %v", args, got.stdout, err)
	}
	if decoder.More() {
		w.t.Fatalf("%v printed more than one document: %q", args, got.stdout)
	}
}

// server is a running service.
type server struct {
	t       *testing.T
	url     string
	command *exec.Cmd
	ended   chan struct{}
	mu      sync.Mutex
	log     bytes.Buffer
}

// Write collects the service's log.
func (s *server) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(text)
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// serve starts the service and waits for its ready line.
func (w *world) serve(args ...string) *server {
	w.t.Helper()
	return w.start(w.command(append([]string{"serve"}, args...)...))
}

// start runs a command that serves, and waits for its ready line.
func (w *world) start(command *exec.Cmd) *server {
	w.t.Helper()
	s := &server{t: w.t, command: command}
	s.ended = make(chan struct{})
	s.command.Stderr = s
	stdout, err := s.command.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		w.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	s.url = url
	go func() {
		_ = s.command.Wait() // the status is read from ProcessState
		close(s.ended)
	}()
	w.t.Cleanup(s.kill)
	if err != nil || !found {
		w.t.Fatalf("serve printed %q (%v) and logged %s", line, err, s.logged())
	}
	return s
}

// kill ends the service as a crash would.
func (s *server) kill() {
	_ = s.command.Process.Signal(syscall.SIGKILL) // it may have ended already
	<-s.ended
}

// stop asks the service to end and returns its exit status.
func (s *server) stop() int {
	s.t.Helper()
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.ended:
	case <-time.After(35 * time.Second):
		s.t.Fatalf("the service did not end within 35 s; it logged %s", s.logged())
	}
	return s.command.ProcessState.ExitCode()
}

// demoData is what a test uses of the demo data set.
func (w *world) demoData() demoJSON {
	w.t.Helper()
	var data demoJSON
	w.json(&data, "demo")
	return data
}

// open connects to the world's database.
func (w *world) open(t *testing.T) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), w.vars["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
