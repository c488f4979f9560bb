//go:build linux

package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// evictPatience is how long a left-over server may take to end after each signal.
const evictPatience = 5 * time.Second

// evict stops the server that a killed process may have left running on the
// same data, so that every start is alike. The caller holds the folder's lock.
func (h home) evict(ctx context.Context) error {
	alone := func() bool { return len(h.processes()) == 0 }
	ended := alone()
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		if ended {
			break
		}
		for _, pid := range h.processes() {
			// Gone meanwhile is what we want; anything else shows below.
			_ = syscall.Kill(pid, signal)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		var err error
		if ended, err = waitFor(ctx, evictPatience, alone); err != nil {
			return fmt.Errorf("waiting for an earlier server to end: %w", err)
		}
	}
	if !ended {
		return fmt.Errorf("an earlier server still runs on %s (processes %v): stop it by hand",
			h.dataDir(), h.processes())
	}
	// With no process left, a process id in this file can only be stale, and may by now belong to
	// another process: PostgreSQL would refuse to start over it.
	err := os.Remove(filepath.Join(h.dataDir(), "postmaster.pid"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing a stale process id: %w", err)
	}
	return nil
}

// processes lists the server processes of this cluster. All of them carry the cluster's name in
// their command line, which any user may read, unlike their working directories.
func (h home) processes() []int {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	mark := []byte(h.clusterName())
	var found []int
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(line, mark) {
			continue // it ended while we looked, or it is not ours
		}
		program, err := os.ReadFile(filepath.Join(filepath.Dir(name), "comm"))
		if err != nil || string(bytes.TrimSpace(program)) != "postgres" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// waitFor polls every few milliseconds whether done holds, for at most limit.
func waitFor(ctx context.Context, limit time.Duration, done func() bool) (bool, error) {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-deadline.C:
			return false, nil
		case <-tick.C:
		}
	}
	return true, nil
}
