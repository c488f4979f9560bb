package pgserver_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/lib/pq" // the driver that the tests connect with

	"drawbridge/internal/postgres/pgserver"
)

// childDir makes the test binary a process that runs a server in that folder until it is killed,
// for the tests of what a killed process leaves behind.
const childDir = "DRAWBRIDGE_PGSERVER_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		runChild(dir)
	}
	os.Exit(m.Run())
}

func runChild(dir string) {
	server, err := pgserver.Start(context.Background(), pgserver.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(server.URL())
	select {} // the test kills it
}

// startChild runs a server in a separate process and returns that process and the server's URL.
func startChild(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill() // usually dead by then
		_ = child.Wait()
	})
	var url string
	if _, err := fmt.Fscanln(output, &url); err != nil || !strings.HasPrefix(url, "postgres://") {
		t.Fatalf("the child printed %q: %v", url, err)
	}
	return child, url
}

// openFolder returns a new folder that every user may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgserver-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Error(err)
	}
}

// start runs a server until the test ends.
func start(t *testing.T, dir string) *pgserver.Server {
	t.Helper()
	server, err := pgserver.Start(t.Context(), pgserver.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server) })
	return server
}

func stop(t *testing.T, server *pgserver.Server) {
	t.Helper()
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec1(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func query1(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var value string
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// processUID is the real user id of a running process.
func processUID(t *testing.T, pid string) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Uid:" {
			uid, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			return uid
		}
	}
	t.Fatalf("process %s has no user id", pid)
	return 0
}

// postmaster returns the process id of the server on the data in dir.
func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// serverUser returns the user that the server should run as.
func serverUser(t *testing.T) int {
	t.Helper()
	if os.Geteuid() != 0 {
		return os.Geteuid()
	}
	for _, name := range []string{"postgres", "nobody"} {
		if found, err := user.Lookup(name); err == nil {
			uid, err := strconv.Atoi(found.Uid)
			if err != nil {
				t.Fatal(err)
			}
			return uid
		}
	}
	t.Fatal("there is no user that Postgres could run as")
	return 0
}
