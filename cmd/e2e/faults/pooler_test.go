//go:build chaos

package faults

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
	"drawbridge/internal/waittest"
)

// newPooler runs PgBouncer in a mode in front of a database and returns the URL of the
// pooler.
func newPooler(t *testing.T, mode, databaseURL string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	behind, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	_ = free.Close()
	name := behind.Path[1:]
	folder, err := os.MkdirTemp("", "drawbridge-pooler-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	config := filepath.Join(folder, "pgbouncer.ini")
	password := ""
	if secret, _ := behind.User.Password(); secret != "" { // an empty one is not accepted
		password = " password='" + secret + "'"
	}
	text := fmt.Sprintf(`[databases]
%s = host=%s port=%s user=%s%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = 120
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`, name, behind.Hostname(), behind.Port(), behind.User.Username(), password, port, mode)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "-q", config)
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.ParseUint(nobody.Uid, 10, 32)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid)}}
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
	address := net.JoinHostPort("127.0.0.1", port)
	waittest.Within(t, time.Minute, "the pooler listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	behind.Host = address
	return behind.String()
}

// TestFaultPooler runs an API and a worker process through PgBouncer. Transaction mode is
// not possible: the driver parses a statement and executes it in two round trips, which
// must use the same connection.
func TestFaultPooler(t *testing.T) {
	t.Parallel()
	r := newRecordingReceiver(t, uint64(time.Now().UnixNano()))
	w := e2etest.New(t)
	l := newLoad(w, r)
	direct := w.Env["DATABASE_URL"]
	w.Env["DATABASE_URL"] = newPooler(t, "session", direct)
	w.Env["DRAWBRIDGE_PREPARED_STATEMENTS"] = "false"
	w.Serve("--roles", "worker")
	l.use(w.Serve("--roles", "api"))
	l.run(2000)
	w.Env["DATABASE_URL"] = direct
	db := w.Open(t)
	waitUntilSettled(t, db, 5*time.Minute)
	found := audit(t, db, r, l.confirmed())
	if failed := l.errors.Load(); failed > 0 {
		t.Errorf("%d calls were not confirmed", failed)
	}
	t.Logf("%+v", found)
}

// TestFaultPoolerLendsConnections: the program reports transaction mode at the start, not by
// requests that fail under load.
func TestFaultPoolerLendsConnections(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2etest.New(t)
			w.Env["DATABASE_URL"] = newPooler(t, mode, w.Env["DATABASE_URL"])
			w.Env["DRAWBRIDGE_PREPARED_STATEMENTS"] = "false"
			got := w.Run("", "serve")
			if got.Status != e2etest.ExitFailed || !strings.Contains(got.Stderr, "pool_mode = session") {
				t.Errorf("serve ended with %d: %s", got.Status, got.Stderr)
			}
			found := e2etest.Doctor(t, w, 1)["database"]
			if found.Finding != e2etest.FindingFailed || !strings.Contains(found.Detail, "pool_mode") {
				t.Errorf("the doctor says %+v", found)
			}
		})
	}
}
