package faults

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
)

// smallDisk is the size of the disk to be filled: several times that of its database.
const smallDisk = 192 << 20

// smallPostgres is a server whose database is on a separate small disk; disk is its path from
// outside.
type smallPostgres struct{ url, disk string }

// newSmallPostgres starts a server in a mount namespace and moves the database to a disk that only
// the server sees. A user other than root becomes root in a user namespace, and an ordinary user
// again in a nested one, since the server refuses to run as root.
func newSmallPostgres(t *testing.T) smallPostgres {
	t.Helper()
	p := newOwnPostgres(t)
	folder, user := p.owned(func(string) {}), p.owner()
	mount := fmt.Sprintf("mount -t tmpfs -o size=%d,mode=0700", smallDisk)
	if os.Geteuid() == 0 {
		mount += fmt.Sprintf(",uid=%d,gid=%d", user.Uid, user.Gid)
	}
	address, command := p.startedBy(func(server *exec.Cmd) *exec.Cmd {
		return e2etest.InMountNamespace(e2etest.AsOrdinaryUser(server, user), mount+" tmpfs '"+folder+"'")
	}, p.copied())
	base, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(base.Path, "/")
	base.Path = "/template1" // a database can be moved only while it has no connections
	db := opened(t, base.String())
	for _, statement := range []string{
		`CREATE TABLESPACE small LOCATION '` + folder + `'`,
		`ALTER DATABASE "` + name + `" SET TABLESPACE small`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return smallPostgres{address, fmt.Sprintf("/proc/%d/root%s", command.Process.Pid, folder)}
}

// TestNotReadyWhileTheDiskIsFull fills the disk of the database: the process says that it is not
// ready and why, keeps running, and accepts changes as soon as there is room.
func TestNotReadyWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	pg := newSmallPostgres(t)
	w := e2etest.NewOn(t, pg.url)
	data := w.DemoData()
	s := w.Serve()
	watchLife(t, s)
	task := func() int {
		return e2etest.Call(t, data, http.MethodPost, fmt.Sprintf(
			"%s/api/v2/sandbox/application/%s/task", s.URL, data.Loans[0].UID), `{"title":"Measure"}`)
	}
	if status, text := probe(s); status != http.StatusOK {
		t.Fatalf("while there is room the probe says %d: %s", status, text)
	}

	ballast := filepath.Join(pg.disk, "ballast")
	fill(t, ballast)
	waittest.Within(t, 2*time.Minute, "a change is refused", func() bool {
		return task() == http.StatusServiceUnavailable
	})
	waittest.Within(t, time.Minute, "the process is not ready", func() bool {
		status, text := probe(s)
		return status == http.StatusServiceUnavailable &&
			strings.Contains(text, "the disk of the database is full")
	})
	if gauge(t, s, `drawbridge_not_ready{reason="database_unwritable"}`) != 1 {
		t.Error("the metrics do not say that nothing can be written")
	}
	found := e2etest.Doctor(t, w, e2etest.ExitFailed)["writable"]
	if found.Finding != e2etest.FindingFailed || !strings.Contains(found.Detail, "disk") {
		t.Errorf("the doctor says %+v", found)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	waittest.Within(t, time.Minute, "the process is ready again", func() bool {
		status, _ := probe(s)
		return status == http.StatusOK
	})
	if status := task(); status >= http.StatusBadRequest {
		t.Errorf("with room again a change answers %d", status)
	}
}

// TestLivenessDoesNotFlap takes the database away: during all that time the process is not ready,
// but alive at every probe, so that it is not restarted for nothing.
func TestLivenessDoesNotFlap(t *testing.T) {
	t.Parallel()
	pg := newOwnPostgres(t)
	s := e2etest.NewOn(t, pg.url()).Serve()
	watchLife(t, s)
	ready := func(want int) func() bool {
		return func() bool { status, _ := probe(s); return status == want }
	}
	for range 2 {
		waittest.Within(t, time.Minute, "the process is ready", ready(http.StatusOK))
		pg.stop(syscall.SIGQUIT)
		for range 20 {
			if !ready(http.StatusServiceUnavailable)() {
				t.Error("without a database the process says that it is ready")
			}
		}
		pg.start()
	}
	waittest.Within(t, time.Minute, "the process is ready again", ready(http.StatusOK))
}

// watchLife probes the liveness of the process until the end of the test; every probe must
// succeed.
func watchLife(t *testing.T, s *e2etest.Server) {
	t.Helper()
	var asked, wrong atomic.Int64
	done := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		client := &http.Client{Timeout: inTime}
		defer client.CloseIdleConnections()
		every := time.NewTicker(10 * time.Millisecond)
		defer every.Stop()
		for {
			answer, err := client.Get(s.URL + "/healthz")
			asked.Add(1)
			if err != nil || answer.StatusCode != http.StatusOK {
				wrong.Add(1)
			}
			if err == nil {
				_ = answer.Body.Close()
			}
			select {
			case <-done:
				return
			case <-every.C:
			}
		}
	})
	t.Cleanup(func() {
		close(done)
		asking.Wait()
		if asked.Load() < 10 || wrong.Load() > 0 {
			t.Errorf("asked %d times whether it lives, the process gave %d wrong answers",
				asked.Load(), wrong.Load())
		}
	})
}
