//go:build linux

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const lockName = "lock"

// lockFolder makes this process the folder's only user until the returned file is closed or the
// process ends. Its error names the process that has the lock.
func lockFolder(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("locking %s: %w (was it made by another user? run as that one, "+
			"remove the folder, or set DATABASE_URL)", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		process := "another process"
		holder, _ := os.ReadFile(path) // best effort: it only improves the message
		if pid := strings.TrimSpace(string(holder)); pid != "" {
			process = "process " + pid
		}
		return nil, errors.Join(fmt.Errorf("the Postgres folder %s is in use by %s: stop that one "+
			"first, or set DATABASE_URL to use another database", dir, process), file.Close())
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintf(file, "%d\n", os.Getpid())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), file.Close())
	}
	return file, nil
}
