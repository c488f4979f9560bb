package e2etest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Alone waits until no other package of the kind runs its tests on this machine, and keeps
// the place until leave is called: those that start programs, servers and browsers take no
// longer one after the other than side by side, where what they wait for times out.
func Alone() (leave func() error, err error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("drawbridge-tests-%d.lock", os.Getuid()))
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the tests: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		switch {
		case err == nil:
			return file.Close, nil
		case !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(
				fmt.Errorf("waiting for the tests of other packages: %w", err), file.Close())
		}
	}
}
