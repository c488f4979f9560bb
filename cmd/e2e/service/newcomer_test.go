package service

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/cmd/e2e/e2etest"
)

// nobody is a user without privileges.
var nobody = &syscall.Stat_t{Uid: 65534, Gid: 65534}

// TestANewcomerWithoutPostgresIsToldAtOnce runs make run on a machine without PostgreSQL, as a
// user who may install nothing: within five seconds and before anything is compiled, it prints a
// command to copy.
func TestANewcomerWithoutPostgresIsToldAtOnce(t *testing.T) {
	t.Parallel()
	checkout := newcomersCheckout(t)
	compiled := filepath.Join(checkout, "home", "compiled")
	fastest := time.Hour
	for range 3 { // other programs on this machine may delay one run
		command := exec.Command("make", "run")
		command.Dir = checkout
		command.Env = []string{
			"PATH=" + filepath.Join(checkout, "programs"), "HOME=" + filepath.Join(checkout, "home"),
			"COMPILED=" + compiled,
		}
		begun := time.Now()
		screen, err := e2etest.InMountNamespace(e2etest.AsOrdinaryUser(command, nobody), `
			for place in /usr/lib/postgresql /usr/pgsql-* /usr/libexec/postgresql*; do
				[ ! -d "$place" ] || /bin/mount -t tmpfs tmpfs "$place"
			done`).CombinedOutput()
		fastest = min(fastest, time.Since(begun))
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			t.Fatalf("make run ended with %v: %s", err, screen)
		}
		for _, line := range []string{
			"There is no PostgreSQL (14 or later) on this machine, and it cannot be installed from here.",
			"  sudo apt-get install postgresql                        " +
				"# dnf install postgresql-server on Fedora",
			"  export PGBIN=/folder/of/postgres/bin                   # where it is in another place",
			"  export DATABASE_URL=postgres://user:password@host/name # a server that runs already",
		} {
			if !bytes.Contains(screen, []byte("\n"+line+"\n")) && !bytes.HasPrefix(screen, []byte(line)) {
				t.Errorf("the screen lacks the line %q; it shows %s", line, screen)
			}
		}
		if _, err := os.Stat(compiled); !errors.Is(err, fs.ErrNotExist) {
			t.Error("something was compiled first")
		}
	}
	t.Logf("told after %s", fastest.Round(time.Millisecond))
	if fastest > 5*time.Second {
		t.Errorf("it took %s", fastest)
	}
}

// newcomersCheckout is a folder that every user may enter, with the files that make run reads first
// and the programs that every machine has. Its go command compiles nothing and reports that it ran.
func newcomersCheckout(t *testing.T) string {
	t.Helper()
	checkout, err := os.MkdirTemp("", "drawbridge-newcomer-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(checkout) })
	for _, folder := range []string{"programs", "home"} {
		if err := os.Mkdir(filepath.Join(checkout, folder), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	const root = "../../.."
	if err := os.CopyFS(filepath.Join(checkout, ".ci"), os.DirFS(root+"/.ci")); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"Makefile":    string(makefile),
		"programs/go": "#!/bin/sh\n: >\"$COMPILED\"\n",
	} {
		if err := os.WriteFile(filepath.Join(checkout, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"bash", "sh", "env", "make", "git", "dirname", "cat", "id", "sed", "grep", "mkdir", "mktemp",
	} {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(checkout, "programs", name)); err != nil {
			t.Fatal(err)
		}
	}
	err = filepath.WalkDir(checkout, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSymlink == 0 {
			err = os.Chmod(path, 0o777) // independently of the umask
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return checkout
}

// TestTheDemoBeginsAgain does what the welcome text says: after the folder .data was removed, a
// loan that had a draw waits for its first draw again.
func TestTheDemoBeginsAgain(t *testing.T) {
	t.Parallel()
	w, folder := withEmbedded(t)
	draw := func(s *e2etest.Server) int {
		t.Helper()
		s.WaitForLog("To start over, stop it and remove the folder .data\n")
		return e2etest.RequestDraw(t, s.URL, w.DemoData(), "first_regular")
	}
	s := w.Serve("--demo")
	if first := draw(s); first != http.StatusOK {
		t.Fatalf("the first draw answered %d", first)
	}
	if status := s.Stop(); status != 0 {
		t.Fatalf("it ended with %d: %s", status, s.Logged())
	}
	s = w.Serve("--demo")
	if again := draw(s); again == http.StatusOK {
		t.Error("a draw that was requested before was taken again, though nothing was removed")
	}
	s.Stop()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if first := draw(w.Serve("--demo")); first != http.StatusOK {
		t.Errorf("without the folder the first draw answers %d", first)
	}
}

// withEmbedded is a harness that uses the embedded database, and the folder where that will
// be.
func withEmbedded(t *testing.T) (w *e2etest.Harness, folder string) {
	t.Helper()
	w = e2etest.NewWithoutDatabase(t, map[string]string{"DRAWBRIDGE_LISTEN": "127.0.0.1:0"})
	folder = filepath.Join(w.Folder, ".data")
	t.Cleanup(func() { // the place of root's server, whose user may not enter the test's folder
		if place, err := os.ReadFile(filepath.Join(folder, "postgres", "location")); err == nil {
			_ = os.RemoveAll(strings.TrimSpace(string(place)))
		}
	})
	return w, folder
}

// TestCommandsMakeNoDatabaseToAnswerFor runs commands without the service's settings, as an on-call
// engineer might in a new shell. Only commands that set a service up may create a database.
func TestCommandsMakeNoDatabaseToAnswerFor(t *testing.T) {
	t.Parallel()
	w, folder := withEmbedded(t)
	hold := []string{"restore", "hold", "--reason", "recovered to 09:30"}
	for _, args := range [][]string{
		hold,
		{"restore", "show"},
		{"backup", "record"},
		{"queue", "list"},
		{"environment", "show"},
		{"retention", "run"},
		{"email", "list"},
		{"bulk", "list"},
		{"audit", "list"},
	} {
		got := w.Run("", args...)
		if got.Status != e2etest.ExitUsage || got.Stdout != "" ||
			!strings.Contains(got.Stderr, "DATABASE_URL") {
			t.Errorf("%v ended with %d: %s%s", args, got.Status, got.Stdout, got.Stderr)
		}
	}
	found := e2etest.Doctor(t, w, e2etest.ExitFailed)["database"]
	if !strings.Contains(found.Detail, "no embedded database") {
		t.Errorf("doctor found %+v", found)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the commands left a folder of data (%v)", err)
	}
	for _, args := range [][]string{{"partner", "create", "--name", "Nord Solar"}, hold} {
		got := w.Run("", args...)
		if got.Status != 0 || !strings.Contains(got.Stderr, "using the embedded database in "+folder) {
			t.Errorf("%v ended with %d: %s%s", args, got.Status, got.Stdout, got.Stderr)
		}
	}
}
