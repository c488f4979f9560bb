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
	// roomy is what must be free there: the tests use a fraction of it, and the machine
	// has as much memory again.
	roomy = 6 << 30
)

// StartServer starts a throw-away server in memory, or where TMPDIR points, or
// where there is too little memory in the folder for temporary files. It ends with
// this process.
func StartServer(ctx context.Context) (*pgserver.Server, error) {
	options := pgserver.Options{
		Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	if os.Getenv("TMPDIR") == "" && freeIn(memoryFolder) >= roomy {
		options.Dir = memoryFolder
	}
	return pgserver.StartTemporary(ctx, options)
}

// freeIn is how many bytes a folder has room for, 0 where there is none.
func freeIn(folder string) uint64 {
	var found syscall.Statfs_t
	if err := syscall.Statfs(folder, &found); err != nil {
		return 0
	}
	return found.Bavail * uint64(found.Bsize)
}
