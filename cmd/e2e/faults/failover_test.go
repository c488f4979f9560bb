package faults

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/postgres"
)

// pair is a primary server and one that follows it by streaming replication.
type pair struct {
	*ownPostgres

	// standby is the follower's URL, data its folder.
	standby, data string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{ownPostgres: newOwnPostgres(t)}
	p.data = p.copied("--write-recovery-conf")
	p.standby = p.started(p.data)
	return p
}

// owner is the user that the server runs as.
func (p *ownPostgres) owner() *syscall.Stat_t {
	p.t.Helper()
	found, err := os.Stat(filepath.Join(p.server.Folder(), "data"))
	if err != nil {
		p.t.Fatal(err)
	}
	return found.Sys().(*syscall.Stat_t)
}

// tool is the path of one of the server's programs.
func (p *ownPostgres) tool(name string) string {
	p.t.Helper()
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.process()))
	if err != nil {
		p.t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(program), name)
}

// owned makes a folder that belongs to the server's user, with what fill puts into it.
func (p *ownPostgres) owned(fill func(folder string)) string {
	p.t.Helper()
	folder, err := os.MkdirTemp(p.folder, "owned-*")
	if err != nil {
		p.t.Fatal(err)
	}
	fill(folder)
	user := p.owner()
	err = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chown(path, int(user.Uid), int(user.Gid))
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return folder
}

// copied makes a base backup and returns its folder.
func (p *ownPostgres) copied(options ...string) string {
	p.t.Helper()
	return filepath.Join(p.owned(func(folder string) {
		output, err := exec.Command(p.tool("pg_basebackup"), append(options,
			"--dbname", p.server.URL(), "--pgdata", filepath.Join(folder, "data"),
			"--wal-method", "stream", "--checkpoint", "fast")...).CombinedOutput()
		if err != nil {
			p.t.Fatalf("copying the server: %v: %s", err, output)
		}
	}), "data")
}

// started starts a server on a copy, with settings beyond the copy's, and returns its URL.
func (p *ownPostgres) started(data string, settings ...string) string {
	p.t.Helper()
	address, _ := p.startedBy(func(command *exec.Cmd) *exec.Cmd {
		if os.Geteuid() == 0 {
			user := p.owner()
			command.SysProcAttr = &syscall.SysProcAttr{
				Credential: &syscall.Credential{Uid: user.Uid, Gid: user.Gid},
			}
		}
		return command
	}, data, settings...)
	return address
}

// startedBy is started by another command, made of the server's.
func (p *ownPostgres) startedBy(
	changed func(*exec.Cmd) *exec.Cmd, data string, settings ...string,
) (string, *exec.Cmd) {
	p.t.Helper()
	address, err := url.Parse(p.server.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	address.Host = port.Addr().String()
	_ = port.Close() // which gives it to the server
	command := changed(exec.Command(p.tool("postgres"), append([]string{
		"-D", data, "--listen_addresses=127.0.0.1", "--port=" + address.Port(),
		"--unix_socket_directories=", "--max_connections=200", "--jit=off",
	}, settings...)...))
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGQUIT) // an immediate stop; it may have ended
		_ = command.Wait()
		if p.t.Failed() {
			p.t.Logf("the server on the copy said:\n%s", &said)
		}
	})
	return address.String(), command
}

// synchronise has the primary confirm no commit that the standby does not have.
func (p *pair) synchronise() {
	p.t.Helper()
	db, err := postgres.Open(p.t.Context(), p.server.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`,
	} {
		if _, err := db.ExecContext(p.t.Context(), statement); err != nil {
			p.t.Fatal(err)
		}
	}
	e2etest.Until(p.t, time.Minute, "the standby is waited for", func() bool {
		var synchronous int
		err := db.GetContext(p.t.Context(), &synchronous,
			`SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`)
		return err == nil && synchronous == 1
	})
}

// url names both, so that whichever can be written is used.
func (p *pair) url() string {
	primary, _ := url.Parse(p.ownPostgres.url()) // both were parsed before
	standby, _ := url.Parse(p.standby)
	primary.Host += "," + standby.Host
	return primary.String()
}

// promote makes the standby the primary.
func (p *pair) promote() {
	p.t.Helper()
	db := opened(p.t, p.standby) // it may have been copied a moment ago
	if _, err := db.ExecContext(p.t.Context(), `SELECT pg_promote()`); err != nil {
		p.t.Fatal(err)
	}
}

// probe asks whether the service is ready, and what it says.
func probe(s *e2etest.Server) (int, string) {
	answer, err := http.Get(s.URL + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// TestFaultFailOver loses the primary under load: what was confirmed is on the promoted
// standby and sent from there, and calls are confirmed again soon after.
func TestFaultFailOver(t *testing.T) {
	t.Parallel()
	events := int64(200)
	if *chaos {
		events = 5_000
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	pg, r := newPair(t), newRecordingReceiver(t, seed)
	pg.synchronise()
	w := e2etest.NewOn(t, pg.url())
	l := newLoad(w, r)
	s := w.Serve()
	l.use(s)
	var loading sync.WaitGroup
	loading.Go(func() { l.run(events) })
	l.reached(r, events/2)
	pg.stop(syscall.SIGQUIT)
	pg.promote()
	promoted, before := time.Now(), l.accepted.Load()
	e2etest.Until(t, time.Minute, "a call is confirmed by the promoted server", func() bool {
		return l.accepted.Load() > before
	})
	t.Logf("calls were confirmed %s after the promotion",
		time.Since(promoted).Round(time.Millisecond))
	loading.Wait()
	db, err := postgres.Open(t.Context(), pg.standby)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	waitUntilSettled(t, db, 3*time.Minute)
	t.Logf("%+v", audit(t, db, r, l.confirmed()))
}

// TestFaultReadOnlyPrimary turns the primary into a server that lets nobody write, without
// cutting a connection, and promotes the other: the process says that it is not ready
// and why, and finds the one that can be written by itself.
func TestFaultReadOnlyPrimary(t *testing.T) {
	t.Parallel()
	pg := newPair(t)
	w := e2etest.NewOn(t, pg.url())
	data := w.DemoData()
	s := w.Serve()
	if status, text := probe(s); status != http.StatusOK {
		t.Fatalf("at first the probe says %d: %s", status, text)
	}
	db, err := postgres.Open(t.Context(), pg.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	e2etest.Until(t, time.Minute, "the process is not ready", func() bool {
		status, text := probe(s)
		return status == http.StatusServiceUnavailable && strings.Contains(text, "database")
	})
	if got := gauge(t, s, `drawbridge_not_ready{reason="database_unwritable"}`) +
		gauge(t, s, `drawbridge_not_ready{reason="database_away"}`); got != 1 {
		t.Errorf("%v reasons in the metrics, want 1", got)
	}
	pg.promote()
	e2etest.Until(t, time.Minute, "the process is ready again", func() bool {
		status, _ := probe(s)
		return status == http.StatusOK
	})
	if status := e2etest.RequestDraw(t, s.URL, data, "first_regular"); status != http.StatusOK {
		t.Errorf("a draw answered %d", status)
	}
	promoted, err := postgres.Open(t.Context(), pg.standby)
	if err != nil {
		t.Fatal(err)
	}
	defer promoted.Close()
	e2etest.WaitForCount(t, promoted, 0, `
		SELECT count(*)
		  FROM river_job
		 WHERE queue = 'webhook'`)
}
