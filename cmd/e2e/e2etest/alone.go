package e2etest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Alone waits until no other package of the kind runs its tests on this machine, and keeps
// the place until this process ends: those that start programs, servers and browsers take
// no longer one after the other than side by side, where what they wait for times out.
func Alone() error {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("drawbridge-tests-%d.lock", os.Getuid()))
	//nolint:gosec // a name for this user alone, of a file in which nothing is written
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening the lock of the tests: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if err == nil {
			place = file // whose closing, by the garbage collector too, would give the place up
			return nil
		}
		if err != syscall.EINTR { //nolint:errorlint // a system call returns just this
			return fmt.Errorf("waiting for the tests of other packages: %w", err)
		}
	}
}

// place is the lock that this process holds.
var place *os.File
