//go:build chaos

package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/email/emailtest"
	"drawbridge/internal/postgres/pgtest"
	"drawbridge/views/paths"
	"drawbridge/views/ui"
)

// steppedTime is added to the standard library's time package, and steppedMain to the
// program: together they add the number of seconds in a file to every reading of the wall
// clock, and leave the monotonic clock unchanged, as a step of a machine's clock does. A
// time namespace cannot step the wall clock, libfaketime does not work on a static
// program, and the clock of the machine is shared.
const (
	steppedTime = `package time

import "sync/atomic"

// SteppedSeconds is how far the wall clock was stepped.
var SteppedSeconds atomic.Int64
`
	steppedMain = `package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

func init() {
	read := func() {
		text, _ := os.ReadFile(os.Getenv("STEPPED_CLOCK"))
		seconds, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		time.SteppedSeconds.Store(seconds)
	}
	read()
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			read()
		}
	}()
}
`
	// reading is the line in the time package that reads both clocks for Now.
	reading = "sec, nsec, mono := runtimeNow()\n"
)

// steppedProgram builds the program with a wall clock that can be stepped.
func steppedProgram(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	original, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(original), "func Now() Time {\n\t"+reading)
	if !found {
		t.Fatalf("the time package reads its clocks in another way than %q", reading)
	}
	commands, err := filepath.Abs("../../drawbridge")
	if err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{}
	for path, text := range map[string]string{
		filepath.Join(library, "time.go"): before + "func Now() Time {\n\t" + reading +
			"\tsec += SteppedSeconds.Load()\n" + after,
		filepath.Join(library, "stepped.go"):        steppedTime,
		filepath.Join(commands, "stepped_clock.go"): steppedMain,
	} {
		copied := filepath.Join(folder, strconv.Itoa(len(replaced))+".go")
		replaced[path] = copied
		if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "drawbridge")
	output, err := exec.Command("go", "build", "-overlay", list, "-o", program,
		"drawbridge/cmd/drawbridge").CombinedOutput()
	if err != nil {
		t.Fatalf("building the program with a clock that steps: %v\n%s", err, output)
	}
	return program
}

// stepped is a process with a clock that can be stepped.
type stepped struct {
	*e2etest.Server
	clock string
}

// step sets how far its clock is ahead.
func (s stepped) step(ahead time.Duration) {
	s.T.Helper()
	text := fmt.Sprint(int64(ahead / time.Second))
	if err := os.WriteFile(s.clock, []byte(text), 0o644); err != nil {
		s.T.Fatal(err)
	}
}

// serveStepped starts the program with a clock that is ahead.
func serveStepped(
	w *e2etest.Harness, program, name string, ahead time.Duration, args ...string,
) stepped {
	w.T.Helper()
	s := stepped{&e2etest.Server{T: w.T}, filepath.Join(w.Folder, name)}
	s.step(ahead)
	own := &e2etest.Harness{T: w.T, Folder: w.Folder, Program: program, Env: map[string]string{
		"STEPPED_CLOCK": s.clock,
	}}
	maps.Copy(own.Env, w.Env)
	s.Server = own.Serve(args...)
	return s
}

// TestFaultClock runs processes whose clocks are an hour ahead, an hour behind,
// and right, on one database; one of each role steps back and forth under load.
func TestFaultClock(t *testing.T) {
	t.Parallel()
	program := steppedProgram(t)
	const events, hour = 2000, time.Hour
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	w := e2etest.New(t)
	mails := emailtest.NewServer(t, emailtest.Options{})
	w.Env["DRAWBRIDGE_SMTP_URL"] = mails.URL()
	l := newLoad(w, r)
	began := time.Now()
	ahead := serveStepped(w, program, "ahead", hour, "--roles", "api,worker,console")
	behind := serveStepped(w, program, "behind", -hour, "--roles", "api,worker,console")
	stepping := serveStepped(w, program, "stepping", 0, "--roles", "api,worker,console")
	l.use(ahead.Server, behind.Server, stepping.Server)
	v := visit(t, stepping.URL)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	for i, to := range []time.Duration{hour, 0, -hour, 12 * hour, -12 * hour, 0} {
		l.reached(r, int64(i+1)*events*18/10/7)
		stepping.step(to)
		v.read(paths.Home) // the clock must not sign anybody out
	}
	loading.Wait()
	db := w.Open(t)
	waitUntilSettled(t, db, 5*time.Minute) // no retry waits for an hour
	found := audit(t, db, r, l.confirmed())
	if found.unknown+found.late > 0 || l.errors.Load() > 0 {
		t.Errorf("a clock made jobs look lost: %+v, %d calls failed", found, l.errors.Load())
	}
	e2etest.WaitForMails(t, db)
	sent, failed := checkMails(t, db, mails)
	if failed > 0 {
		t.Errorf("%d mails failed", failed)
	}
	checkTimes(t, w, began)
	for _, process := range []stepped{ahead, behind, stepping} {
		one := visit(t, process.URL)
		one.says(paths.Deliveries+"?event=task.created&state=delivered",
			ui.Number(found.delivered)+" deliveries")
		one.shareSession(t, v)
	}
	v.says(paths.System, "1 h") // the clocks that differ
	t.Logf("%d mails; %+v in %s", sent, found, time.Since(began).Round(time.Second))
}

// shareSession reads a page of one process with the session of another one.
func (v *visitor) shareSession(t *testing.T, of *visitor) {
	t.Helper()
	to, _ := url.Parse(v.base) // it has been parsed before
	from, _ := url.Parse(of.base)
	v.client.Jar.SetCookies(to, of.client.Jar.Cookies(from))
	answer, err := v.client.Get(v.base + paths.Home)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Request.URL.Path != paths.Home {
		t.Errorf("a session of another process leads to %s", answer.Request.URL)
	}
}

// checkTimes looks for rows with a time outside the test.
func checkTimes(t *testing.T, w *e2etest.Harness, began time.Time) {
	t.Helper()
	db := w.Open(t)
	for table, column := range map[string]string{
		"events": "occurred_at", "deliveries": "created_at", "attempts": "started_at",
		"emails": "created_at", "tasks": "created_at", "audit_log": "at", "user_sessions": "started_at",
	} {
		off := pgtest.Count(t, db, fmt.Sprintf(`
			SELECT count(*) FROM %s WHERE %s < $1 OR %s > $2`, table, column, column),
			began.Add(-5*time.Minute), time.Now().Add(5*time.Minute))
		if off > 0 {
			t.Errorf("%d times of %s are off", off, table)
		}
	}
}
