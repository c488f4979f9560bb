package pgtest

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"drawbridge/internal/postgres/pgserver"
)

// A database consists of some nine hundred files, and creating and removing them takes ten times as
// long in a file system on disk as in memory.
const (
	memoryFolder = "/dev/shm"
	// enoughFree is how much must be free there: the tests use a fraction of it, and the machine has
	// as much memory again.
	enoughFree = 6 << 30
)

// StartServer starts a throw-away server below Folder. It ends with this process.
func StartServer(ctx context.Context) (*pgserver.Server, error) {
	return pgserver.StartTemporary(ctx, pgserver.Options{
		Dir: Folder(), Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
}

// Folder is where test servers belong: in memory, or, where TMPDIR is set or memory is short, the
// folder for temporary files, for which Folder is empty.
func Folder() string {
	if os.Getenv("TMPDIR") != "" || freeIn(memoryFolder) < enoughFree {
		return ""
	}
	return memoryFolder
}

// freeIn returns how many bytes are free in a folder, 0 where there is none.
func freeIn(folder string) uint64 {
	var found syscall.Statfs_t
	if err := syscall.Statfs(folder, &found); err != nil {
		return 0
	}
	return found.Bavail * uint64(found.Bsize)
}
