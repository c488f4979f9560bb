//go:build unix

package document

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// keptFree bytes of a file system are left free, or keptShare of its size if that is less: often
// the database is on the same one.
const (
	keptFree  = 256 << 20
	keptShare = 20
)

// checkFreeSpace refuses content that does not fit into a folder. Its error wraps
// syscall.ENOSPC.
func checkFreeSpace(folder string, size int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return nil //nolint:nilerr // writing shows it otherwise
	}
	block := uint64(stat.Bsize)
	free, kept := stat.Bavail*block, min(keptFree, stat.Blocks*block/keptShare)
	if free < uint64(size)+kept {
		return fmt.Errorf("%d MiB are free: %w", free>>20, syscall.ENOSPC)
	}
	return nil
}
