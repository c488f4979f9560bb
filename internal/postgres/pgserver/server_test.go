package pgserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drawbridge/internal/postgres/pgserver"
	"drawbridge/internal/waittest"
)

func TestDataSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openFolder(t), "made", "as needed")
	first := start(t, dir)
	db := open(t, first.URL())
	exec1(t, db, `CREATE TABLE kept AS SELECT 'row' AS what`)
	stop(t, first)
	second := start(t, dir)
	if got := query1(t, open(t, second.URL()), `SELECT what FROM kept`); got != "row" {
		t.Errorf("after a restart the table holds %q", got)
	}
	stop(t, second)
	if err := second.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		start func(context.Context, pgserver.Options) (*pgserver.Server, error)
		want  map[string]string
	}{
		{"development data is durable", pgserver.Start, map[string]string{
			"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on",
			"listen_addresses": "127.0.0.1", "unix_socket_directories": "",
			"password_encryption": "scram-sha-256", "server_encoding": "UTF8", "TimeZone": "UTC",
			"max_wal_size": "4GB", "shared_buffers": "256MB",
		}},
		{"test data is fast", pgserver.StartTemporary, map[string]string{
			"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
			"max_connections": "300", "wal_compression": "off", "listen_addresses": "127.0.0.1",
			"autovacuum_naptime": "1d", "password_encryption": "md5",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server, err := test.start(t.Context(), pgserver.Options{Dir: openFolder(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stop(t, server) })
			db := open(t, server.URL())
			got := map[string]string{}
			for name := range test.want {
				got[name] = query1(t, db, fmt.Sprintf("SELECT current_setting('%s')", name))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusesAWrongPassword(t *testing.T) {
	t.Parallel()
	server := start(t, openFolder(t))
	for _, password := range []string{"", "wrong"} {
		address, err := url.Parse(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		address.User = url.UserPassword(address.User.Username(), password)
		err = open(t, address.String()).PingContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), "password") {
			t.Errorf("with password %q: got %v, want a refusal", password, err)
		}
	}
}

func TestNeverRunsAsRoot(t *testing.T) {
	t.Parallel()
	open755, closed := openFolder(t), openFolder(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{
		"open folder":       filepath.Join(open755, "pg"),
		"folder below 0700": filepath.Join(closed, "pg"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, dir)
			t.Cleanup(func() { removeAll(t, server.Folder()) })
			db := open(t, server.URL())
			exec1(t, db, `CREATE TABLE kept AS SELECT 'row' AS what`)
			want := serverUser(t)
			if got := processUID(t, query1(t, db, `SELECT pg_backend_pid()`)); got != want {
				t.Errorf("a backend runs as user %d, want %d", got, want)
			}
			stop(t, server)
			again := start(t, dir)
			if again.Folder() != server.Folder() {
				t.Errorf("the second start uses %s, the first %s", again.Folder(), server.Folder())
			}
			if got := query1(t, open(t, again.URL()), `SELECT what FROM kept`); got != "row" {
				t.Errorf("after a restart the table holds %q", got)
			}
			stop(t, again)
		})
	}
}

// Deleting the development data is meant to start over, also where the data had to be outside the
// deleted folder.
func TestDeletingTheFolderDeletesTheData(t *testing.T) {
	t.Parallel()
	closed := openFolder(t)
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "pg")
	first := start(t, dir)
	t.Cleanup(func() { removeAll(t, first.Folder()) })
	exec1(t, open(t, first.URL()), `CREATE TABLE old ()`)
	stop(t, first)
	removeAll(t, dir)
	second := start(t, dir)
	const query = `SELECT count(*) FROM pg_tables WHERE tablename = 'old'`
	if got := query1(t, open(t, second.URL()), query); got != "0" {
		t.Error("the table of the deleted folder is back")
	}
	stop(t, second)
}

func TestTwoStartsOnOneFolder(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	server := start(t, dir)
	link := filepath.Join(openFolder(t), "another name")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, link} {
		_, err := pgserver.Start(t.Context(), pgserver.Options{Dir: name})
		want := fmt.Sprintf("%s is in use by process %d", dir, os.Getpid())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("second start in %s: got %v, want %q", name, err, want)
		}
	}
	if got := query1(t, open(t, server.URL()), `SELECT 1`); got != "1" {
		t.Errorf("the first server answers %q", got)
	}
}

// A SIGKILL of our process must cost neither data nor the next start, which may come at once: while
// the server goes down with its process, or when it survives because it was stopped just then.
func TestSurvivesKills(t *testing.T) {
	t.Parallel()
	for name, freeze := range map[string]bool{
		"server dies along": false, "server is left over": true,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := openFolder(t)
			const kills = 4
			for kill := range kills {
				killChild(t, dir, fmt.Sprintf("CREATE TABLE committed_%d ()", kill), freeze)
			}
			db := open(t, start(t, dir).URL())
			const query = `SELECT count(*) FROM pg_tables WHERE tablename LIKE 'committed_%'`
			if got := query1(t, db, query); got != fmt.Sprint(kills) {
				t.Errorf("of %d committed tables %s are there", kills, got)
			}
		})
	}
}

// killChild runs a server in a separate process and kills that once the statement is committed.
func killChild(t *testing.T, dir, statement string, freeze bool) {
	t.Helper()
	child, address := startChild(t, dir)
	exec1(t, open(t, address), statement)
	if freeze {
		if err := syscall.Kill(postmaster(t, dir), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it reports the kill
}

func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(status), ") Z ")
}

// The server must not survive a killed process until the next start.
func TestServerDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	child, _ := startChild(t, dir)
	server := postmaster(t, dir)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it reports the kill
	waittest.Within(t, 20*time.Second, "the server ends", func() bool { return !alive(server) })
}

func TestStartsOverLeftovers(t *testing.T) {
	t.Parallel()
	stale := fmt.Sprintf("%d\n/elsewhere\n0\n5432\n\n127.0.0.1\n0 0\nready\n", os.Getpid())
	tests := []struct {
		name, path, text string
		afterFirstStart  bool
	}{
		{"process id of somebody else", "data/postmaster.pid", stale, true},
		{"interrupted initdb", "data.new/PG_VERSION", "15\n", false},
		{"interrupted password", "data.password", "half", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := openFolder(t)
			if test.afterFirstStart {
				stop(t, start(t, dir))
			}
			path := filepath.Join(dir, test.path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			server := start(t, dir)
			if got := query1(t, open(t, server.URL()), `SELECT 1`); got != "1" {
				t.Errorf("the server answers %q", got)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	otherVersion, noVersion := openFolder(t), openFolder(t)
	for dir, files := range map[string]string{otherVersion: "PG_VERSION", noVersion: "other"} {
		if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "data", files)
		if err := os.WriteFile(path, []byte("13\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(openFolder(t), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		dir  string
		want string
	}{
		{"no folder", t.Context(), "", "Dir is empty"},
		{"a file as folder", t.Context(), file, "creating the Postgres folder"},
		{"data of an old version", t.Context(), otherVersion, "PostgreSQL 13, and 14 or later"},
		{"a folder that is not data", t.Context(), noVersion, "not a PostgreSQL data folder"},
		{"cancelled", cancelled, openFolder(t), context.Canceled.Error()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server, err := pgserver.Start(test.ctx, pgserver.Options{Dir: test.dir})
			if err == nil {
				stop(t, server)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestTemporaryServerLeavesNothing(t *testing.T) {
	t.Parallel()
	parent := openFolder(t)
	server, err := pgserver.StartTemporary(t.Context(), pgserver.Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	stop(t, server)
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) > 0 {
		t.Errorf("after Stop there is %v, %v", entries, err)
	}
	if _, err := os.Stat(server.Folder()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data is still there: %v", err)
	}
}

// TestLockOutlivesItsServersOwner drops the reference to a running server: a garbage collection
// must not release its folder to others.
func TestLockOutlivesItsServersOwner(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	options := pgserver.Options{Dir: dir, Volatile: true}
	if _, err := pgserver.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	pid := postmaster(t, dir)
	defer func() {
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
			t.Error(err)
		}
		waittest.Within(t, 20*time.Second, "the server ends", func() bool {
			return syscall.Kill(pid, 0) != nil
		})
	}()
	for range 20 {
		runtime.GC()
		second, err := pgserver.Start(t.Context(), options)
		if err == nil {
			stop(t, second)
			t.Fatal("a second server got the folder of one that runs")
		}
		if !strings.Contains(err.Error(), "in use by process") {
			t.Fatalf("the refusal says %q", err)
		}
	}
}
