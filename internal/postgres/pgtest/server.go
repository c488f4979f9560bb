package pgtest

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"drawbridge/internal/postgres/pgserver"
)

// A database is some nine hundred files, and to make and remove them takes a disk's
// file system ten times as long as one in memory.
const (
	memoryFolder = "/dev/shm"
	// enoughFree is what must be free there: the tests use a fraction of it, and the machine
	// has as much memory again.
	enoughFree = 6 << 30
)

// StartServer starts a throw-away server below Folder. It ends with this process.
func StartServer(ctx context.Context) (*pgserver.Server, error) {
	return pgserver.StartTemporary(ctx, pgserver.Options{
		Dir: Folder(), Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
}

// Folder is where servers of tests belong: in memory, or, where TMPDIR is set or there is too
// little of it, empty for the folder of temporary files.
func Folder() string {
	if os.Getenv("TMPDIR") != "" || freeIn(memoryFolder) < enoughFree {
		return ""
	}
	return memoryFolder
}

// freeIn is how many bytes a folder has room for, 0 where there is none.
func freeIn(folder string) uint64 {
	var found syscall.Statfs_t
	if err := syscall.Statfs(folder, &found); err != nil {
		return 0
	}
	return found.Bavail * uint64(found.Bsize)
}
