//go:build linux

package pgserver

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// portLine is where postmaster.pid has the port, counted from 0.
const portLine = 3

// Attach returns the URL of the server that another process runs on the data in dir, and false when
// there is none. It is for commands run alongside a service; the server ends with the process that
// runs it.
func Attach(dir string) (string, bool) {
	lock, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return "", false
	}
	defer lock.Close()
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return "", false // nobody holds it
	}
	folder := dir
	if recorded, err := os.ReadFile(filepath.Join(dir, locationName)); err == nil {
		folder = strings.TrimSpace(string(recorded))
	}
	running := home{folder: folder}
	pidFile, err := os.ReadFile(filepath.Join(running.dataDir(), "postmaster.pid"))
	if err != nil {
		return "", false
	}
	lines := strings.Split(string(pidFile), "\n")
	if len(lines) <= portLine {
		return "", false
	}
	port, err := strconv.Atoi(strings.TrimSpace(lines[portLine]))
	if err != nil {
		return "", false
	}
	password, err := running.password()
	if err != nil {
		return "", false
	}
	return serverURL(password, port, superuser), true
}
